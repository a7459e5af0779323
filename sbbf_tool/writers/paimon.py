"""Paimon, by options of the table for its own file index; they promise nothing for Parquet files.

file-index.bloom-filter.columns = C,D           also file-index.bloom-filter.C.items and .fpp
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sbbf_tool.parquet.columns import Column
from sbbf_tool.writers.properties import FilterSetting, FilterSettings, parse_count, parse_fpp, parse_names
from sbbf_tool.writers.writer import Request, Setting, Writer, write_table_properties

_PREFIX = "file-index.bloom-filter."


def parse_properties(settings: Mapping[str, str]) -> FilterSettings:
    """Parse the options; an NDV is the number of items. Raises UsageError for a value with no meaning."""

    def parse(name: str, parse_value: Callable[[str, str], float]) -> float | None:
        return parse_value(_PREFIX + name, settings[_PREFIX + name]) if _PREFIX + name in settings else None

    names = parse_names(settings.get(f"{_PREFIX}columns", ""))
    columns = ((name, parse(f"{name}.items", parse_count), parse(f"{name}.fpp", parse_fpp)) for name in names)
    return FilterSettings(tuple(FilterSetting(name, None if items is None else int(items), fpp) for name, items, fpp in columns))


def build_properties(settings: FilterSettings) -> dict[str, str]:
    properties = {f"{_PREFIX}columns": ",".join(setting.column for setting in settings.columns)}
    for setting in settings.columns:
        values = {"items": setting.ndv, "fpp": setting.fpp}
        properties |= {f"{_PREFIX}{setting.column}.{name}": str(value) for name, value in values.items() if value is not None}
    return properties


def _write_paimon(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    items = (FilterSetting(setting.path, setting.ndv * max(1, request.row_groups), setting.fpp) for setting in settings)
    yield from write_table_properties(build_properties(FilterSettings(tuple(items))))


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
