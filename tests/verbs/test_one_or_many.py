"""Parameters that take several texts or values take one of them alone: never its characters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.arguments import as_names
from sbbf_tool.errors import UsageError
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.rules.rule import Limits
from support.tables import each

ROWS = 200


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "filtered.parquet"
    columns = {"ab": ["abc", *(f"value {at}" for at in range(ROWS - 1))], "a": range(ROWS), "b": range(ROWS)}
    pq.write_table(pa.table(columns), path)
    sbbf_tool.add_filters(path, ["ab", "a", "b"], in_place=True)
    return path


CASES: dict[str, tuple[str, Callable[[Path, Any], object]]] = {
    "Policy.select": ("fpp-above-limit", lambda path, argument: Policy(Limits(max_fpp=0.5), select=argument)),
    "Policy.ignore": ("format", lambda path, argument: Policy(ignore=argument)),
    "FilterSpec.columns": ("ab", lambda path, argument: FilterSpec(argument)),
    "FilterSpec.paths": ("PATH", lambda path, argument: FilterSpec("ab", paths=argument)),
    "add_filters": ("ab", lambda path, argument: sbbf_tool.add_filters(path, argument, dry_run=True, rebuild="all")),
    "advise.names": ("PATH", lambda path, argument: sbbf_tool.advise(argument)),
    "advise.queries": ("ab = 'abc'", lambda path, argument: sbbf_tool.advise(path, queries=argument)),
    "advise.engine_names": ("duckdb", lambda path, argument: sbbf_tool.advise(path, engine_names=argument)),
    "engines": ("duckdb-1.4", lambda path, argument: sbbf_tool.engines(mine=argument)),
    "inspect": ("ab", lambda path, argument: sbbf_tool.inspect(path, argument)),
    "probe": ("abc", lambda path, argument: sbbf_tool.probe(path, "ab", argument)),
    "prune.data": ("PATH", lambda path, argument: sbbf_tool.prune(argument, "ab", ["abc"])),
    "prune.values": ("abc", lambda path, argument: sbbf_tool.prune(path, "ab", argument)),
    "remove_filters": ("ab", lambda path, argument: sbbf_tool.remove_filters(path, argument, dry_run=True)),
    "repair": ("ab", lambda path, argument: sbbf_tool.repair(path, argument, dry_run=True)),
    "resize_filters": ("ab", lambda path, argument: sbbf_tool.resize_filters(path, argument, fpp=0.3, dry_run=True)),
    "verify": ("ab", lambda path, argument: sbbf_tool.verify(path, argument)),
}


def comparable(result: Any) -> Any:
    """A result without what two runs never have in common."""
    varying = {"seconds": 0.0, "_dataset": None}
    names = {field.name for field in fields(result)} if is_dataclass(result) else set()
    return replace(result, **{name: value for name, value in varying.items() if name in names}) if names else result


@each("name", list(CASES), every=8)
def test_a_single_value_is_accepted_for_a_list(path, name):
    value, call = CASES[name]
    alone = [str(path), path] if value == "PATH" else [value, np.str_(value)]
    expected = comparable(call(path, iter(alone[:1])))
    for argument in alone:
        assert comparable(call(path, argument)) == expected


@each("columns", [b"ab", 5, None, ["ab", None], [b"ab"]])
def test_a_column_s_name_is_text(columns):
    with pytest.raises(UsageError, match="the name of a column is text"):
        as_names(columns)


def test_a_buffer_that_is_filled_again_is_another_value(path):
    buffer = bytearray(b"not")
    values = (buffer,)
    assert sbbf_tool.probe(path, "ab", values).is_absent
    buffer[:] = b"abc"
    assert not sbbf_tool.probe(path, "ab", values).is_absent
