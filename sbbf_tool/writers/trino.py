"""Trino, by a property of the table: `parquet_bloom_filter_columns = ARRAY['C']`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sbbf_tool.parquet.columns import Column
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.writers.properties import declare
from sbbf_tool.writers.writer import Request, Setting, Writer, write_sql

_COLUMNS = "parquet_bloom_filter_columns"


def parse_properties(settings: Mapping[str, str]) -> tuple[FilterSpec, ...]:
    """Parse the property: `a, b`, `["a", "b"]` or `ARRAY['a', 'b']`."""
    value = settings.get(_COLUMNS, "")
    match = re.fullmatch(r"\s*(?:ARRAY)?\s*\[(.*)\]\s*", value, re.IGNORECASE | re.DOTALL)
    parts = (match[1] if match else value).split(",")
    return tuple(declare(name) for part in parts if (name := part.strip().strip("'\"")))


def build_properties(specs: Iterable[FilterSpec]) -> dict[str, str]:
    """Build the property, which has the names of the columns alone."""
    return {_COLUMNS: f"ARRAY[{', '.join(write_sql(column) for spec in specs for column in spec.columns)}]"}


def _write_trino(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "ALTER TABLE my_table SET PROPERTIES"
    properties = build_properties(declare(setting.path.lower()) for setting in settings)
    yield from (f"    {name} = {value};" for name, value in properties.items())


_TYPES_OF_TRINO = ("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY")


def _problem_of_trino(column: Column) -> str | None:
    if column.nested:
        return "only top-level columns"
    logical = column.logical
    is_written = logical is None and column.physical in _TYPES_OF_TRINO
    if logical is not None:
        is_written = logical.kind in ("STRING", "UUID") or (logical.kind == "INT" and logical.signed and logical.bits in (32, 64))
    return None if is_written else f"Trino writes no filters for {column.type_name}"


TRINO = Writer(
    _write_trino,
    "--",
    (
        "Trino takes neither NDV nor FPP; the property is one of Iceberg tables, and of Hive tables when they are created",
        "Trino writes no filter length, without which parquet-java 1.14.0 to 1.15.2 may lose rows; a repair adds it",
    ),
    _problem_of_trino,
    uses_formula=False,
    takes_ndv=False,
    takes_fpp=False,
)
