"""Paimon, by options of the table for its own file index; they promise nothing for Parquet files.

file-index.bloom-filter.columns = C,D           also file-index.bloom-filter.C.items and .fpp
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.parquet.columns import Column
from sbbf_tool.writers.writer import Request, Setting, Writer, write_table_properties

_PREFIX = "file-index.bloom-filter."


def _write_paimon(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    """Yield the lines of the options; an NDV is the number of items in a data file."""
    properties = {f"{_PREFIX}columns": ",".join(setting.path for setting in settings)}
    for setting in settings:
        items = setting.ndv * max(1, request.row_groups)
        properties[f"{_PREFIX}{setting.path}.items"] = str(items)
        properties[f"{_PREFIX}{setting.path}.fpp"] = str(setting.fpp)
    yield from write_table_properties(properties)


def _problem_of_paimon(column: Column) -> str | None:
    if column.nested:
        return "only top-level columns"
    if any(character in column.path[0] for character in ".,"):
        return "an option cannot name a column with a dot or a comma"
    kind = column.logical.kind if column.logical else column.physical
    if kind in ("BOOLEAN", "DECIMAL"):
        return f"Paimon hashes no values of type {column.type_name}"
    return None


PAIMON = Writer(
    _write_paimon,
    "--",
    (
        "Paimon builds file indexes of its own; "
        "items are per data file: at most NDV per row group times row groups",
    ),
    _problem_of_paimon,
    uses_formula=False,
)
