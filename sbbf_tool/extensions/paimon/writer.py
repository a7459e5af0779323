"""Paimon, by options of the table for its own file index; they promise nothing for Parquet files.

file-index.bloom-filter.columns = C,D           also file-index.bloom-filter.C.items and .fpp
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.parquet.columns import Column
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.writers.writer import Request, Setting, Writer, write_table_properties

_PREFIX = "file-index.bloom-filter."


def build_properties(specs: Sequence[FilterSpec]) -> dict[str, str]:
    """Build the options; an NDV is the number of items in a data file."""
    properties = {f"{_PREFIX}columns": ",".join(column for spec in specs for column in spec.columns)}
    for spec in specs:
        for column in spec.columns:
            properties |= {f"{_PREFIX}{column}.items": str(spec.ndv), f"{_PREFIX}{column}.fpp": str(spec.fpp)}
    return properties


def _write_paimon(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    items = [FilterSpec((setting.path,), setting.fpp, setting.ndv * max(1, request.row_groups)) for setting in settings]
    yield from write_table_properties(build_properties(items))


def _problem_of_paimon(column: Column) -> str | None:
    if column.nested:
        return "only top-level columns"
    if any(character in column.path[0] for character in ".,"):
        return "an option cannot name a column with a dot or a comma"
    kind = column.logical.kind if column.logical else column.physical
    return f"Paimon hashes no values of type {column.type_name}" if kind in ("BOOLEAN", "DECIMAL") else None


PAIMON = Writer(
    _write_paimon,
    "--",
    ("Paimon builds file indexes of its own; items are per data file: at most NDV per row group times row groups",),
    _problem_of_paimon,
    uses_formula=False,
)
