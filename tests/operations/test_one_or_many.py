"""Every parameter of the Python interface that takes several texts or values takes one of them alone: never its characters.

The parameters are collected from the signatures, so that one without a case here fails.
"""

from __future__ import annotations

import functools
import inspect
import io
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool import open_files
from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.engine_runs.reports import EngineRunsReport
from sbbf_tool.extensions.paimon.build_index import build_index
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.tables.open_table import TableFiles
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.rules.rule import Limits
from sbbf_tool.runner.open_files import Files as OpenFiles
from support.paimon_tables import NewFile, TableMaker
from support.tables import each

SEVERAL = re.compile(r"\b(Iterable|Sequence|Collection|tuple|list|set|frozenset)\[")
ITEMS = re.compile(r"\b(str|object|PathLike|Readable|IndexRequest|Query)\b")
"""What a person gives. Rows and pieces that one stage hands to the next are lists by themselves."""

NOT_GIVEN_BY_PEOPLE = {
    "explain.value": "one value by its meaning",
    "run_engines.value": "one value by its meaning",
    "Files.explain.value": "one value by its meaning",
}


def public_signatures() -> Iterator[tuple[str, inspect.Signature]]:
    """The functions, classes and methods of the package's public names, and of the files that they open."""
    members = {name: getattr(sbbf_tool, name) for name in sbbf_tool.__all__} | {"Files": OpenFiles, "TableFiles": TableFiles}
    for name, member in members.items():
        if inspect.isfunction(member):
            yield name, inspect.signature(member)
        elif inspect.isclass(member):
            if "__init__" in vars(member):
                yield name, inspect.signature(member)
            for method in vars(member):
                if not method.startswith("_") and callable(getattr(member, method)):
                    yield f"{name}.{method}", inspect.signature(getattr(member, method))


def parameters() -> list[str]:
    """Those that take several things, as `function.parameter`."""
    return [
        f"{name}.{parameter.name}"
        for name, signature in public_signatures()
        for parameter in signature.parameters.values()
        if (text := str(parameter.annotation)) == "object" or (SEVERAL.search(text) and ITEMS.search(text) and "Callable" not in text)
        if f"{name}.{parameter.name}" not in NOT_GIVEN_BY_PEOPLE and "BuiltColumn" not in text
    ]


VALUE = "abc"
ENGINE = "duckdb"
QUERY = "ab = 'abc'"


@functools.cache
def _bytes() -> bytes:
    rows = 200
    columns = {"ab": [VALUE, *(f"value {at}" for at in range(rows - 1))], "a": range(rows), "b": range(rows)}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


class Files:
    """Fresh files for one call: `plain`, `filtered`, and a Paimon table."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.plain, self.filtered = folder / "plain.parquet", folder / "filtered.parquet"
        self.out = folder / "out.parquet"
        self.page = folder / "page.html"
        for path in (self.plain, self.filtered):
            path.write_bytes(_bytes())
        sbbf_tool.add_filters(self.filtered, ["ab", "a", "b"], in_place=True)

    @functools.cached_property
    def table(self) -> str:
        maker = TableMaker(self.plain.parent / "table", (("ab", "STRING"), ("a", "BIGINT")))
        rows = {"ab": pa.array([VALUE, "d"]), "a": pa.array([1, 2])}
        sink = io.BytesIO()
        pq.write_table(pa.table(rows), sink)
        index = build_index(sink.getvalue(), "x.parquet", [IndexRequest("ab", 100)]).container
        maker.commit(NewFile(rows, name="one.parquet", embedded=index), NewFile(rows, name="two.parquet"))
        return str(maker.root)

    def delta_table(self, path: Path) -> Path:
        """A Delta table with one file: a copy of this one."""
        folder = path.parent / "delta"
        deltalake.write_deltalake(folder, pq.read_table(path))
        (file,) = folder.glob("*.parquet")
        file.rename(folder / "part.parquet")
        shutil.copy(path, folder / "part.parquet")
        (log,) = (folder / "_delta_log").glob("*.json")
        text = log.read_text().replace(file.name, "part.parquet")
        log.write_text(re.sub(r'"size":\d+', f'"size":{path.stat().st_size}', text))
        return folder


Call = Callable[[Files, Any], object]


def outcomes(report: EngineRunsReport) -> list[tuple[str, str, int]]:
    """What two runs have in common."""
    return [(run.engine, run.outcome, run.with_filters.rows) for run in report.engines if run.with_filters is not None]


CASES: dict[str, tuple[object, Call]] = {
    "Policy.select": ("fpp-above-limit", lambda files, argument: Policy(Limits(max_fpp=0.5), select=argument)),
    "Policy.ignore": ("format", lambda files, argument: Policy(ignore=argument)),
    "FilterSpec.columns": ("ab", lambda files, argument: FilterSpec(argument)),
    "FilterSpec.paths": ("PATH", lambda files, argument: FilterSpec("ab", paths=argument)),
    "check_paimon.select": ("format", lambda files, argument: sbbf_tool.check_paimon(files.table, select=argument)),
    "check_paimon.ignore": ("format", lambda files, argument: sbbf_tool.check_paimon(files.table, ignore=argument)),
    "add_filters.columns": ("ab", lambda files, argument: sbbf_tool.add_filters(files.plain, argument, output=files.out)),
    "add_paimon_index.columns": ("ab", lambda files, argument: sbbf_tool.add_paimon_index(files.table, argument, dry_run=True)),
    "remove_paimon_index.columns": ("ab", lambda files, argument: sbbf_tool.remove_paimon_index(files.table, argument, dry_run=True)),
    "advise.names": ("PATH", lambda files, argument: sbbf_tool.advise(argument)),
    "run_engines.engines": ("pyarrow", lambda files, argument: outcomes(sbbf_tool.run_engines(files.filtered, "a", 7, argument))),
    "run_engines.names": ("PATH", lambda files, argument: outcomes(sbbf_tool.run_engines(argument, "a", 7, "pyarrow"))),
    "advise.queries": (QUERY, lambda files, argument: sbbf_tool.advise(files.filtered, queries=argument)),
    "advise.engine_names": (ENGINE, lambda files, argument: sbbf_tool.advise(files.filtered, engine_names=argument)),
    "engines.mine": ("duckdb-1.4", lambda files, argument: sbbf_tool.engines(mine=argument)),
    "build_paimon_index.columns": ("ab", lambda files, argument: sbbf_tool.build_paimon_index(files.plain, argument, dry_run=True)),
    "make_corpus.only": ("types/int8.parquet", lambda files, argument: sbbf_tool.make_corpus(str(files.out), only=argument)),
    "run_conformance.only": (
        "booleans/empty.parquet",
        lambda files, argument: sbbf_tool.run_conformance(reader="false {file} {column} {value}", only=argument),
    ),
    "inspect.columns": ("ab", lambda files, argument: sbbf_tool.inspect(files.filtered, argument)),
    "probe.values": (VALUE, lambda files, argument: sbbf_tool.probe(files.filtered, "ab", argument)),
    "probe_paimon.values": (VALUE, lambda files, argument: sbbf_tool.probe_paimon(files.table, "ab", argument)),
    "prune.data": ("PATH", lambda files, argument: sbbf_tool.prune(argument, "ab", ["abc"])),
    "prune.values": (VALUE, lambda files, argument: sbbf_tool.prune(files.filtered, "ab", argument)),
    "remove_filters.columns": ("ab", lambda files, argument: sbbf_tool.remove_filters(files.filtered, argument, output=files.out)),
    "repair.columns": ("ab", lambda files, argument: sbbf_tool.repair(files.filtered, argument, output=files.out)),
    "resize_filters.columns": ("ab", lambda files, argument: sbbf_tool.resize_filters(files.filtered, argument, fpp=0.3, output=files.out)),
    "verify.columns": ("ab", lambda files, argument: sbbf_tool.verify(files.filtered, argument)),
    "write_report.paths": ("PATH", lambda files, argument: sbbf_tool.write_report(argument, files.page)),
    "write_report.queries": (QUERY, lambda files, argument: sbbf_tool.write_report(files.filtered, files.page, queries=argument)),
    "Files.inspect.columns": ("ab", lambda files, argument: list(open_files(files.filtered).inspect(argument))),
    "Files.probe.values": (VALUE, lambda files, argument: list(open_files(files.filtered).probe("ab", argument))),
    "Files.verify.columns": ("ab", lambda files, argument: list(open_files(files.filtered).verify(argument))),
    "Files.add_filters.columns": (
        "ab",
        lambda files, argument: list(open_files(files.plain).add_filters(argument, in_place=True)),
    ),
    "Files.remove_filters.columns": (
        "ab",
        lambda files, argument: list(open_files(files.filtered).remove_filters(argument, in_place=True)),
    ),
    "Files.repair.columns": ("ab", lambda files, argument: list(open_files(files.filtered).repair(argument, in_place=True))),
    "Files.resize_filters.columns": (
        "ab",
        lambda files, argument: list(open_files(files.filtered).resize_filters(argument, fpp=0.3, in_place=True)),
    ),
    "open_files.paths": ("PATH", lambda files, argument: list(open_files(argument).inspect())),
    **{
        f"TableFiles.{verb}.columns": (
            "ab",
            lambda files, argument, verb=verb, options=options: list(
                getattr(sbbf_tool.open_table(files.delta_table(files.plain if verb == "add_filters" else files.filtered)), verb)(
                    argument, in_place=True, dry_run=True, **options
                )
            ),
        )
        for verb, options in {"add_filters": {}, "remove_filters": {}, "resize_filters": {"fpp": 0.3}, "repair": {}}.items()
    },
}


def comparable(result: Any) -> Any:
    """A result without what two runs never have in common: seconds of work, and when a file was made."""
    if isinstance(result, list):
        return [comparable(entry) for entry in result]
    if is_dataclass(result) and "seconds" in {field.name for field in fields(result)}:
        return replace(result, seconds=0.0)
    if is_dataclass(result) and "_dataset" in {field.name for field in fields(result)}:
        return replace(result, _dataset=None)
    return result


def forms_of(value: object, files: Files) -> tuple[list[object], list[object]]:
    """One thing alone, in the forms that it has, and as the only member of collections."""
    if value == "PATH":
        path = files.filtered
        return [str(path), path], [iter([path])]
    alone = [value, np.str_(value)] if isinstance(value, str) else [value]
    return alone, [iter([value])]


def test_every_parameter_has_a_case():
    assert sorted(parameters()) == sorted(CASES)
    signatures = {f"{name}.{parameter}" for name, signature in public_signatures() for parameter in signature.parameters}
    assert signatures >= NOT_GIVEN_BY_PEOPLE.keys()


@each("name", list(CASES))
def test_a_single_value_is_accepted_for_a_list(tmp_path, name):
    value, call = CASES[name]
    folder = tmp_path / "files"
    results = []
    for form in range(len(forms_of(value, Files(tmp_path / "forms"))[0]) + 1):
        # Always the same name, because reports contain it.
        files = Files(folder)
        alone, of_list = forms_of(value, files)
        results.append(comparable(call(files, [*of_list, *alone][form])))
        folder.rename(tmp_path / f"done {form}")
    assert all(result == results[0] for result in results)


@each("value", [5, 5.5, None, True, b"abc", bytearray(b"abc"), memoryview(b"abc"), "abc", Path("abc"), np.int64(5), np.array(5)])
def test_single_values(value):
    (item,) = as_iterable(value)
    assert item is value


@each("several", [[1, 2], (1, 2), {1: 0, 2: 0}, range(1, 3), np.array([1, 2]), iter([1, 2])])
def test_lists_of_values(several):
    assert list(as_iterable(several)) == [1, 2]


@each("columns", [b"ab", 5, None, ["ab", None], [b"ab"]])
def test_a_column_s_name_is_text(tmp_path, columns):
    with pytest.raises(UsageError, match="the name of a column is text"):
        as_names(columns)
    files = Files(tmp_path / "files")
    with pytest.raises(UsageError, match="the name of a column is text"):
        sbbf_tool.inspect(files.filtered, columns)


@each("value", [7, np.int64(7), None])
def test_a_number_or_null_alone_is_a_value(tmp_path, value):
    files = Files(tmp_path / "files")
    for ask in (sbbf_tool.probe, sbbf_tool.prune):
        assert comparable(ask(files.filtered, "a", value)) == comparable(ask(files.filtered, "a", [value]))
    assert sbbf_tool.probe_paimon(files.table, "a", value) == sbbf_tool.probe_paimon(files.table, "a", [value])


def test_a_buffer_that_is_filled_again_is_another_value(tmp_path):
    files = Files(tmp_path / "files")
    buffer = bytearray(b"not")
    assert sbbf_tool.probe(files.filtered, "ab", buffer).is_absent
    values = (buffer,)
    assert sbbf_tool.probe(files.filtered, "ab", values).is_absent
    buffer[:] = b"abc"
    assert not sbbf_tool.probe(files.filtered, "ab", values).is_absent
