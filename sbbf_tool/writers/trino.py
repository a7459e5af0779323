"""Trino, by a property of the table: `parquet_bloom_filter_columns = ARRAY['C']`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sbbf_tool.parquet.columns import Column
from sbbf_tool.writers.properties import FilterSetting, FilterSettings, parse_names
from sbbf_tool.writers.writer import Request, Setting, Writer, write_sql

_COLUMNS = "parquet_bloom_filter_columns"


def parse_properties(settings: Mapping[str, str]) -> FilterSettings:
    return FilterSettings(tuple(map(FilterSetting, parse_names(settings.get(_COLUMNS, "")))))


def build_properties(settings: FilterSettings) -> dict[str, str]:
    """Build the property, which has the names of the columns alone."""
    return {_COLUMNS: f"ARRAY[{', '.join(write_sql(setting.column) for setting in settings.columns)}]"}


def _write_trino(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "ALTER TABLE my_table SET PROPERTIES"
    properties = build_properties(FilterSettings(tuple(FilterSetting(setting.path.lower()) for setting in settings)))
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
