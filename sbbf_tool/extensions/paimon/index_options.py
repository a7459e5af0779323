"""Table options that request Bloom filter indexes (fileindex/FileIndexOptions.java, options/MemorySize.java).

    file-index.bloom-filter.columns           a,b,m[key]
    file-index.bloom-filter.<column>.items    expected distinct values per data file (default: 1000000)
    file-index.bloom-filter.<column>.fpp      target false-positive rate (default: 0.1)
    file-index.in-manifest-threshold          largest container that is stored in the manifest (default: 500 B)

The options of a map apply to all its keys; options of a key override them. An option for a column whose name has a dot is ignored, as in
Paimon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.paimon.bloom64_sizing import DEFAULT_FPP, DEFAULT_ITEMS
from sbbf_tool.extensions.paimon.data_types import DataType
from sbbf_tool.extensions.paimon.table_schema import parse_indexed_column

DEFAULT_THRESHOLD = 500
"""In bytes; Paimon's default is the MemorySize "500 B"."""

_Number = TypeVar("_Number", int, float)
_PREFIX = "file-index.bloom-filter."
_UNITS = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """Request for a filter: a column, `m[key]` for an entry of a map, and the size."""

    column: str
    items: int | None = None
    """Expected distinct values; None for the number in the file."""
    fpp: float = DEFAULT_FPP
    """Target false-positive rate."""
    type: DataType | None = None
    """The Paimon type of the column's values, if neither a table nor the file determines it."""


def parse_bloom_columns(options: Mapping[str, str]) -> dict[str, IndexRequest]:
    """Return the filters that table options request for every data file, with Paimon's sizes, by column and in order.

    Raises UnreadableError for invalid numbers.
    """
    names = [name.strip() for name in options.get(_PREFIX + "columns", "").split(",")]
    return {
        name: IndexRequest(
            name, _parse_number(options, name, "items", int, DEFAULT_ITEMS), _parse_number(options, name, "fpp", float, DEFAULT_FPP)
        )
        for name in names
        if name
    }


def _parse_number(options: Mapping[str, str], name: str, option: str, parse: Callable[[str], _Number], default: _Number) -> _Number:
    for column in (name, parse_indexed_column(name).column):
        if "." not in column and (value := options.get(f"{_PREFIX}{column}.{option}")) is not None:
            try:
                return parse(value)
            except ValueError:
                raise UnreadableError(f"option {_PREFIX}{name}.{option} must be a number, not {value!r:.40}") from None
    return default


def parse_manifest_threshold(options: Mapping[str, str]) -> int:
    """Return the maximum size in bytes of a container in the manifest. Raises UnreadableError when the option is not a size."""
    text = options.get("file-index.in-manifest-threshold")
    return DEFAULT_THRESHOLD if text is None else parse_memory_size(text)


def parse_memory_size(text: str) -> int:
    """Parse a size such as `500 B`, `1kb`, `2 mebibytes` into bytes. Raises UnreadableError for anything else."""
    match = re.fullmatch(r"(\d{1,19})\s*([a-z]*)", text.strip().lower(), re.ASCII)
    if match is None or match[2] not in _UNITS:
        raise UnreadableError(f"{text!r:.40} is not a size such as 500 B or 1 kb")
    return int(match[1]) * _UNITS[match[2]]


def parse_boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    """Return the value of an option that is `true` or `false`, ignoring case."""
    text = options.get(name)
    return default if text is None else text.strip().lower() == "true"
