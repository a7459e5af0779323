"""`engines`: list which query engines use Bloom filters, and on which columns; see
`query_engines.verdicts`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.query_engines.verdicts import (
    find_engine,
    find_release,
    is_match,
    load_table,
    suggest_names,
)

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import ColumnFamily, EnginesReport


def engines(
    type_name: str | None = None, engine_name: str | None = None, *, mine: str | Iterable[str] = ()
) -> EnginesReport:
    """Return the table of query engines, or only the families of columns of `type_name` and the
    engine `engine_name`.

    A type is a name that `inspect` prints, or a part of it: `INT64 TIMESTAMP(MILLIS,UTC)`,
    `timestamp`, `float16`. `mine` are releases of engines (`duckdb-1.4`, `spark-4.0`); the verdicts
    are then those on the newest release up to each that was run. Raises UsageError, with similar
    names, for an unknown name.
    """
    report = load_table()
    indexes = [report.families.index(family) for family in _find_families(type_name)]
    releases = as_names(mine, "release")
    if releases and engine_name is not None:
        raise UsageError("give either the name of an engine or releases")
    reports = tuple(map(find_release, releases)) or (
        report.engines if engine_name is None else (find_engine(engine_name),)
    )
    return replace(
        report,
        families=tuple(report.families[index] for index in indexes),
        engines=tuple(
            replace(engine, verdicts=tuple(engine.verdicts[index] for index in indexes))
            for engine in reports
        ),
    )


def _find_families(name: str | None) -> list[ColumnFamily]:
    families = load_table().families
    if name is None:
        return list(families)
    text = " ".join(name.split()).casefold()
    candidates = families if text else ()
    exact = [
        family
        for family in candidates
        if text in (family.id, family.name.casefold(), *(kind.casefold() for kind in family.types))
    ]
    partial = [
        family
        for family in candidates
        if any(text in kind.casefold() for kind in (family.id, family.name, *family.types))
    ]
    if not exact and not partial:
        # This may be a type with parameters: INT32 DECIMAL(9,2) or DECIMAL(9,2). The last family's
        # types would match any name.
        partial = [
            family
            for family in families[:-1]
            if any(_is_type(text, kind.casefold()) for kind in family.types)
        ]
    if not exact and not partial:
        names = {
            spelling.casefold() for family in families for spelling in (family.name, family.id)
        }
        raise UsageError(
            f"unknown type {name!r}",
            hint=suggest_names(name, names, (family.name for family in families)),
        )
    return exact or partial


def _is_type(text: str, pattern: str) -> bool:
    logical = pattern.partition(" ")[2]
    return is_match(pattern, text) or (logical not in ("", "*") and is_match(logical, text))
