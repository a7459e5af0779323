"""Properties of writers, as names and values: parse what they say of filters, and build them.

A module of a writer has both as `parse_properties` and `build_properties`, which are inverse to each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sbbf_tool.errors import UsageError


class FilterSetting(NamedTuple):
    """The settings of a writer for the filters of one column, under the name that the writer uses; None where nothing is set."""

    column: str
    ndv: int | None = None
    fpp: float | None = None
    max_bytes: int | None = None


class FilterSettings(NamedTuple):
    """What properties say of filters."""

    columns: tuple[FilterSetting, ...] = ()
    is_for_all: bool = False
    """Whether all columns get filters."""

    @classmethod
    def of(cls, columns: Iterable[str], ndv: int | None, fpp: float | None) -> FilterSettings:
        """Return the same setting for each of these columns."""
        return cls(tuple(FilterSetting(column, ndv, fpp) for column in columns))


class Properties(NamedTuple):
    """The names of a writer's properties: `prefix`, what is set, and after `separator` the column; without a column, they hold for all."""

    prefix: str
    separator: str
    ndv: str = "ndv"
    max_bytes: str = "max-bytes"

    def parse(
        self, settings: Mapping[str, str], column_of: Callable[[str], str] = str, names: Sequence[str] | None = None
    ) -> FilterSettings:
        """Parse the properties among these settings, for the columns that they enable, or for `names`.

        `column_of` returns the name of the column that a property names. Raises UsageError for a value with no meaning.
        """
        parsers = {"enabled": parse_flag, self.ndv: parse_count, "fpp": parse_fpp, self.max_bytes: parse_count}
        values: dict[str, dict[str, float]] = {name: {} for name in parsers}
        for key, value in settings.items():
            # Spark takes settings for Hadoop with this prefix.
            name = key.removeprefix("spark.hadoop.")
            setting, _, column = name.removeprefix(self.prefix).partition(self.separator)
            if name.startswith(self.prefix) and setting in parsers:
                values[setting][column_of(column) if column else ""] = parsers[setting](key, value)

        def find(setting: str, column: str) -> float | None:
            return values[setting].get(column, values[setting].get(""))

        if names is None:
            names = [column for column, is_enabled in values["enabled"].items() if column and is_enabled]
        columns = (
            FilterSetting(column, _int(find(self.ndv, column)), find("fpp", column), _int(find(self.max_bytes, column))) for column in names
        )
        return FilterSettings(tuple(columns), bool(values["enabled"].get("")))

    def build(self, settings: FilterSettings) -> dict[str, str]:
        """Build the properties. The largest of the limits in bytes holds for all columns."""
        properties = {f"{self.prefix}enabled": "true"} if settings.is_for_all else {}
        for column in settings.columns:
            values = {"enabled": "true", self.ndv: column.ndv, "fpp": column.fpp}
            properties |= {
                f"{self.prefix}{name}{self.separator}{column.column}": str(value) for name, value in values.items() if value is not None
            }
        limits = [column.max_bytes for column in settings.columns if column.max_bytes is not None]
        return properties | ({f"{self.prefix}{self.max_bytes}": str(max(limits))} if limits else {})


def _int(value: float | None) -> int | None:
    return None if value is None else int(value)


def parse_flag(key: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise UsageError(f"{key} must be true or false, not {value!r}")
    return value.strip().lower() == "true"


def parse_count(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{key} must be a whole number, not {value!r}") from None


def parse_fpp(key: str, value: str) -> float:
    try:
        if 0 < float(value) < 1:
            return float(value)
    except ValueError:
        pass
    raise UsageError(f"{key} must be a number above 0 and below 1, not {value!r}")


def parse_names(value: str) -> tuple[str, ...]:
    """Return the names of a list: `a, b`, `["a", "b"]` or `ARRAY['a', 'b']`."""
    match = re.fullmatch(r"\s*(?:ARRAY)?\s*\[(.*)\]\s*", value, re.IGNORECASE | re.DOTALL)
    parts = (match[1] if match else value).split(",")
    return tuple(name for part in parts if (name := part.strip().strip("'\"")))
