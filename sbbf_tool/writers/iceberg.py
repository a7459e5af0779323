"""Writers of Iceberg tables (Spark, Trino, Flink, Impala), by the properties of the table.

    write.parquet.bloom-filter-enabled.column.C = true           also -fpp.column.C, -ndv.column.C and write.parquet.bloom-filter-max-bytes

Source: https://iceberg.apache.org/docs/latest/configuration/#write-properties
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

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


_OURS = "sbbf.set-properties"
"""Property of a table: those that `sbbf` has set, as JSON."""


def record_properties(before: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str | None]:
    """Return these properties with a record of those that the table does not have already, for `take_back`."""
    ours = _ours(before)
    ours |= {name: text for name, text in properties.items() if before.get(name) != text}
    return {**properties, **({_OURS: json.dumps(ours, sort_keys=True)} if ours else {})}


def take_back(before: Mapping[str, str], columns: Sequence[str]) -> dict[str, str | None]:
    """Return the change that removes the properties that `sbbf` has set for these columns (all if empty) and that are still as it set them.

    `columns` are named as in properties.
    """
    ours = _ours(before)
    about = {name: name.partition(".column.")[2] for name in ours}
    left = {name for name in ours if columns and about[name] not in ("", *columns)}
    # What is for all columns stays as long as one of them is left.
    left |= {name for name in ours if left and not about[name]}
    removed: dict[str, str | None] = {name: None for name, text in ours.items() if name not in left and before.get(name) == text}
    if ours.keys() > left:
        removed[_OURS] = json.dumps({name: ours[name] for name in left}, sort_keys=True) if left else None
    return removed


def _ours(properties: Mapping[str, str]) -> dict[str, str]:
    try:
        record = json.loads(properties.get(_OURS, "{}"))
    except (ValueError, RecursionError):
        return {}
    return {name: text for name, text in record.items() if isinstance(text, str)} if isinstance(record, dict) else {}
