"""Writers of Iceberg tables (Spark, Trino, Flink, Impala), by the properties of the table.

    write.parquet.bloom-filter-enabled.column.C = true           also -fpp.column.C, -ndv.column.C and write.parquet.bloom-filter-max-bytes

Source: https://iceberg.apache.org/docs/latest/configuration/#write-properties
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.parquet.columns import Column
from sbbf_tool.writers.properties import Properties
from sbbf_tool.writers.writer import DICTIONARIES, Request, Setting, Writer, specs_of, write_table_properties

_PROPERTIES = Properties("write.parquet.bloom-filter-", ".column.")
parse_properties, build_properties = _PROPERTIES.parse, _PROPERTIES.build


def _write_iceberg(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    # Releases that do not know the NDV build filters of the largest size.
    yield from write_table_properties(build_properties(specs_of(settings, max(setting.num_bytes for setting in settings))))


def _problem_of_iceberg(column: Column) -> str | None:
    return "columns in lists and maps have other names in the table" if column.max_repetition else None


ICEBERG = Writer(
    _write_iceberg,
    "--",
    (DICTIONARIES, "Iceberg 1.10 and older do not know the property -ndv: all their filters have -max-bytes"),
    _problem_of_iceberg,
)
