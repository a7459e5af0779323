"""The properties of an Iceberg table by which its writers (Spark, Trino, Flink, Impala) add filters to new files.

Source: https://iceberg.apache.org/docs/latest/configuration/#write-properties
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sbbf_tool.editing.filter_spec import FilterSpec
    from sbbf_tool.tables.table import Table

_PREFIX = "write.parquet.bloom-filter"


def write_properties(table: Table, spec: FilterSpec) -> dict[str, str]:
    """Return the properties of a table for the columns, target FPP and number of distinct values of a filter spec."""
    properties = {}
    for column in map(table.name_for_property, spec.columns):
        properties[f"{_PREFIX}-enabled.column.{column}"] = "true"
        properties[f"{_PREFIX}-fpp.column.{column}"] = f"{spec.fpp:g}"
        if spec.ndv is not None:
            properties[f"{_PREFIX}-ndv.column.{column}"] = str(spec.ndv)
    return properties
