"""The query engines that can be run, and how to install them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import NamedTuple

from sbbf_tool.errors import UsageError
from sbbf_tool.query_engines.verdicts import find_engine, suggest_names


class Runnable(NamedTuple):
    """An engine of the table of engines, and the Python package that has it."""

    id: str
    driver_class: str
    module: str
    install: str
    tables: frozenset[str] = frozenset()
    """Formats of local tables that it reads."""
    ignores_filters: bool = False
    """Whether a setting makes it ignore filters; otherwise it reads a copy of the table without
    filters."""

    @property
    def driver(self) -> str:
        """The name of its driver, as `load` takes it."""
        return f"sbbf_tool.extensions.engine_runs.drivers.{self.id}:{self.driver_class}"

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None


RUNNABLE = {
    engine.id: engine
    for engine in (
        Runnable("duckdb", "DuckDBDriver", "duckdb", "pip install duckdb"),
        Runnable("datafusion", "DataFusionDriver", "datafusion", "pip install datafusion"),
        Runnable("spark", "SparkDriver", "pyspark", "pip install pyspark"),
        Runnable(
            "clickhouse",
            "ClickHouseDriver",
            "chdb",
            "pip install chdb",
            frozenset({"Delta", "Iceberg"}),
            ignores_filters=True,
        ),
        Runnable("polars", "PolarsDriver", "polars", "pip install polars", frozenset({"Delta"})),
        Runnable(
            "pyarrow", "PyArrowDriver", "pyarrow", "pip install pyarrow", frozenset({"Delta"})
        ),
    )
}
ALL = "all"
"""The name that stands for every installed engine."""


def choose_engines(names: Iterable[str]) -> list[Runnable]:
    """Return the engines with these names, each once. A system that reads through an engine, such
    as pandas, is not that engine.

    Raises UsageError: an unknown engine, or one that cannot be run here.
    """
    chosen: dict[str, Runnable] = {}
    for name in names:
        if name.casefold() == ALL:
            chosen |= {engine.id: engine for engine in RUNNABLE.values() if engine.is_installed}
            continue
        try:
            report = find_engine(name)
        except UsageError as error:
            names_of_all = (*RUNNABLE, ALL)
            hint = suggest_names(name, names_of_all, names_of_all)
            raise UsageError(error.message, hint=hint) from None
        if report.id not in RUNNABLE:
            raise UsageError(
                f"{report.name} cannot be run",
                hint=f"engines that can be run: {', '.join(RUNNABLE)}",
            )
        engine = RUNNABLE[report.id]
        if name.casefold() not in (engine.id, engine.module, report.name.casefold()):
            raise UsageError(
                f"{name} cannot be run; it reads through {report.name}",
                hint=f"to run that, name {engine.id}",
            )
        chosen[engine.id] = engine
    if not chosen:
        raise UsageError(
            "no query engine was named", hint=f"engines that can be run: {', '.join(RUNNABLE)}"
        )
    return list(chosen.values())
