"""Properties of writers, as names and values: read them into filter specs, and build them.

A module of a writer has both as `parse_properties` and `build_properties`, which are inverse to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.errors import UsageError
from sbbf_tool.rules.filter_spec import FilterSpec, Judge


class Properties(NamedTuple):
    """The names of a writer's properties: `prefix`, what is set, and after `separator` the column; without a column, they hold for all."""

    prefix: str
    separator: str
    ndv: str = "ndv"
    max_bytes: str = "max-bytes"

    def parse(self, settings: Mapping[str, str], column_of: Callable[[str], str] = str) -> tuple[FilterSpec, ...]:
        """Parse the properties among these settings, as one spec for each column that they enable.

        `column_of` returns the name of the column that a property names. Raises UsageError for a value with no meaning.
        """
        parsers = {"enabled": _parse_flag, self.ndv: _parse_count, "fpp": _parse_fpp, self.max_bytes: _parse_count}
        values: dict[str, dict[str, Any]] = {name: {} for name in parsers}
        for key, value in settings.items():
            setting, _, column = key.removeprefix(self.prefix).partition(self.separator)
            if key.startswith(self.prefix) and setting in parsers:
                values[setting][column_of(column) if column else ""] = parsers[setting](key, value)

        def find(setting: str, column: str) -> Any:
            return values[setting].get(column, values[setting].get(""))

        return tuple(
            declare(column, find("fpp", column), find(self.ndv, column), find(self.max_bytes, column))
            for column, is_enabled in values["enabled"].items()
            if column and is_enabled
        )

    def build(self, specs: Iterable[FilterSpec], name_of: Callable[[str], str] = str) -> dict[str, str]:
        """Build the properties, in which a column has the name that `name_of` returns. The largest of the limits holds for all columns."""
        properties: dict[str, str] = {}
        limits: list[int] = []
        for spec in specs:
            fpp = None if spec.judge == "existence" and spec.ndv is None else spec.fpp
            values = {"enabled": "true", self.ndv: spec.ndv, "fpp": fpp}
            properties |= {
                f"{self.prefix}{name}{self.separator}{name_of(column)}": str(value)
                for column in spec.columns
                for name, value in values.items()
                if value is not None
            }
            limits += [spec.max_bytes] if isinstance(spec.max_bytes, int) else []
        return properties | ({f"{self.prefix}{self.max_bytes}": str(max(limits))} if limits else {})


def declare(column: str, fpp: float | None = None, ndv: int | None = None, max_bytes: int | None = None) -> FilterSpec:
    """Return the spec of a column for which a writer adds filters. Filters have the FPP unless the number of values sets their size."""
    judge: Judge = "existence" if fpp is None or ndv is not None else "fpp"
    return FilterSpec((column,), DEFAULT_FPP if fpp is None else fpp, ndv, max_bytes, judge=judge)


def _parse_flag(key: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise UsageError(f"{key} must be true or false, not {value!r}")
    return value.strip().lower() == "true"


def _parse_count(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{key} must be a whole number, not {value!r}") from None


def _parse_fpp(key: str, value: str) -> float:
    try:
        if 0 < float(value) < 1:
            return float(value)
    except ValueError:
        pass
    raise UsageError(f"{key} must be a number above 0 and below 1, not {value!r}")
