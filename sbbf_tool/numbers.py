"""Numbers in text: percentages, sizes, counts with their nouns, and numbers of row groups."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MOST_NAMES = 8
_SMALLEST = 0.0001
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_BYTES_PER_UNIT = {
    "": 1,
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "K": 1 << 10,
    "M": 1 << 20,
    "G": 1 << 30,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}


def format_percent(ratio: float | None) -> str:
    """Format a ratio as a percentage with three significant digits, and at most four decimals."""
    if ratio is None:
        return ""
    value = ratio * 100
    if 0 < value < _SMALLEST:
        return f"<{_SMALLEST} %"
    return f"{format_number(value)} %"


def format_number(value: float, *, exact: bool = False) -> str:
    """Format a number with three significant digits, but no fewer than all digits before the point;
    `exact` omits zero decimals."""
    if value == 0:
        return "0"
    decimals = 4
    # Numbers just below a power of ten are rounded to it.
    for limit, places in ((99.95, 0), (9.995, 1), (0.9995, 2), (0.09995, 3)):
        if abs(value) >= limit:
            decimals = places
            break
    text = f"{value:,.{decimals}f}"
    if exact and decimals:
        text = text.rstrip("0").rstrip(".")
    return text


def format_size(count: int) -> str:
    """Format a number of bytes with a decimal unit, such as 3.1 kB."""
    value = float(count)
    power = 0
    while abs(value) >= 999.95 and power < len(_UNITS) - 1:
        value /= 1000
        power += 1
    if power == 0:
        return f"{count} {_UNITS[0]}"
    return f"{value:.1f} {_UNITS[power]}"


def parse_ratio(text: str) -> float | None:
    """Return the ratio in text such as `0.01` or `1 %`; None for other text."""
    text = text.strip()
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text)
    except ValueError:
        return None


def parse_size(text: str) -> int | None:
    """Return the bytes of a size such as `65536`, `64KiB` or `1MB`; None for other text."""
    match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text.strip(), re.ASCII)
    if match is None:
        return None
    factor = _BYTES_PER_UNIT.get(match[2].upper())
    if factor is None:
        return None
    return int(match[1]) * factor


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """Format a count, such as `2 data files`; without `plural`, the noun gets an s."""
    if count != 1:
        noun = plural or f"{noun}s"
    return f"{count:,} {noun}"


def format_columns(names: Sequence[str]) -> str:
    """Format names of columns, such as `column a` or `columns a, b`."""
    noun = "column" if len(names) == 1 else "columns"
    return f"{noun} {', '.join(names)}"


def format_row_groups(numbers: Sequence[int]) -> str:
    """Format numbers, such as `row groups 0-3, 7`."""
    if len(numbers) == 1:
        return f"row group {numbers[0]}"
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    text = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)
    return f"row groups {text}"


def some_of(names: Sequence[str]) -> str:
    """Join the first names, and count the others."""
    text = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        text += f" and {len(names) - _MOST_NAMES} more"
    return text
