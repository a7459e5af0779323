"""Table options that request Bloom filter indexes (fileindex/FileIndexOptions.java,
options/MemorySize.java).

    file-index.bloom-filter.columns          a,b,m[key]
    file-index.bloom-filter.<column>.items   expected distinct values per data file
                                             (default: 1000000)
    file-index.bloom-filter.<column>.fpp     target false-positive rate (default: 0.1)
    file-index.in-manifest-threshold         largest container that is stored in the manifest
                                             (default: 500 B)

The options of a map apply to all its keys; options of a key override them. An option for a column
whose name has a dot is ignored, as in Paimon. Commands and functions request filters in the same
terms, as text or as an `IndexRequest`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sbbf_tool.arguments import as_iterable
from sbbf_tool.errors import ErrorPlace, UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64_spec import DEFAULT_FPP, DEFAULT_ITEMS
from sbbf_tool.extensions.paimon.table_schema import (
    INTEGER_BITS,
    DataType,
    TableSchema,
    parse_indexed_column,
    parse_type_text,
)
from sbbf_tool.frozen import Frozen, replace

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


class IndexRequest(Frozen):
    """Request for a filter: a column, `m[key]` for an entry of a map, and the size."""

    column: str
    items: int | None = None
    """Expected distinct values; None for the number in the file."""
    fpp: float = DEFAULT_FPP
    """Target false-positive rate."""
    type: DataType | None = None
    """The Paimon type of the column's values, if neither a table nor the file determines it."""


def parse_bloom_columns(options: Mapping[str, str]) -> dict[str, IndexRequest]:
    """Return the filters that table options request for every data file, by column and in order.

    They have Paimon's sizes. Raises UnreadableError for invalid numbers.
    """
    requests = {}
    for text in options.get(_PREFIX + "columns", "").split(","):
        name = text.strip()
        if name:
            items = _parse_number(options, name, "items", int, DEFAULT_ITEMS)
            fpp = _parse_number(options, name, "fpp", float, DEFAULT_FPP)
            requests[name] = IndexRequest(name, items, fpp)
    return requests


def _parse_number(
    options: Mapping[str, str],
    name: str,
    option: str,
    parse: Callable[[str], _Number],
    default: _Number,
) -> _Number:
    """Parse the option of a column, or of the map whose entry it is."""
    for column in (name, parse_indexed_column(name).column):
        text = options.get(f"{_PREFIX}{column}.{option}")
        if text is None or "." in column:
            continue
        try:
            return parse(text)
        except ValueError:
            raise UnreadableError(
                f"option {_PREFIX}{name}.{option} must be a number, not {text!r:.40}"
            ) from None
    return default


def parse_manifest_threshold(options: Mapping[str, str]) -> int:
    """Return the maximum size in bytes of a container in the manifest.

    Raises UnreadableError when the option is not a size.
    """
    text = options.get("file-index.in-manifest-threshold")
    return DEFAULT_THRESHOLD if text is None else parse_memory_size(text)


def parse_memory_size(text: str) -> int:
    """Parse a size such as `500 B`, `1kb`, `2 mebibytes` into bytes.

    Raises UnreadableError for anything else.
    """
    match = re.fullmatch(r"(\d{1,19})\s*([a-z]*)", text.strip().lower(), re.ASCII)
    if match is None or match[2] not in _UNITS:
        raise UnreadableError(f"{text!r:.40} is not a size such as 500 B or 1 kb")
    return int(match[1]) * _UNITS[match[2]]


def parse_boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    """Return the value of an option that is `true` or `false`, ignoring case."""
    text = options.get(name)
    return default if text is None else text.strip().lower() == "true"


_SPELLING = re.compile(r"(?P<column>.+?):(?P<options>\w+=.*)", re.DOTALL)
_SMALLEST_FPP = 1e-30
"""This rate needs 100 hash functions; Paimon's reader cannot use a filter with 128 or more."""


def index_requests(
    columns: str | IndexRequest | Iterable[str | IndexRequest],
) -> list[IndexRequest]:
    """Return a list of requests, parsing strings; a single request needs no list.

    Raises UsageError for invalid options.
    """
    return list(map(_as_request, as_iterable(columns)))


def _as_request(column: str | IndexRequest) -> IndexRequest:
    return parse_request(column) if isinstance(column, str) else column


def parse_request(text: str) -> IndexRequest:
    """Parse a request such as `COLUMN:items=100000,fpp=0.01` or `at:type=TIMESTAMP(3)`.

    A name that ends with `]` has no options, whatever is in the brackets. Raises UsageError for
    invalid options.
    """
    match = _SPELLING.fullmatch(text)
    if match is None or text.endswith("]"):
        return IndexRequest(text)
    column = match["column"]
    values: dict[str, Any] = {}
    with ErrorPlace(None, f"column {column}"):
        for option in match["options"].split(","):
            name, _, value = option.partition("=")
            if name not in _PARSERS or name in values:
                raise UsageError(
                    f"{name!r:.20} is not an option, or is repeated",
                    hint=f"the options are {', '.join(_PARSERS)}, each once",
                )
            values[name] = _PARSERS[name](value)
    return IndexRequest(column, **values)


def _parse_items(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise UsageError(f"items must be an integer of at least 1, not {text:.40}")
    return int(text)


def _parse_fpp(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not _SMALLEST_FPP <= rate < 1:
        raise UsageError(f"fpp must be at least {_SMALLEST_FPP:g} and below 1, not {text:.40}")
    return rate


def _parse_type(text: str) -> DataType:
    try:
        return parse_type_text(text)
    except UnreadableError as error:
        raise UsageError(f"type={text:.40}: {error.message}") from None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "items": _parse_items,
    "fpp": _parse_fpp,
    "type": _parse_type,
}


def why_unused(schema: TableSchema) -> str | None:
    """Return why Paimon's planner does not use the table's file indexes; None when it does.

    See AppendOnlyFileStoreScan and KeyValueFileStore.
    """
    options = schema.options
    if not parse_boolean(options, "file-index.read.enabled", default=True):
        return "file-index.read.enabled is false"
    has_deletion_vectors = parse_boolean(options, "deletion-vectors.enabled", default=False)
    if schema.primary_keys and not has_deletion_vectors:
        return "the table has a primary key and no deletion vectors"
    return None


def why_not_convertible(
    current_type: DataType, file_type: DataType, key: bytes | int
) -> str | None:
    """Return why a literal of the current type cannot be looked up in a file of another type.

    Return None when it can. Paimon converts a literal only to a type that is equal apart from NOT
    NULL, and to a narrower integer type that fits the value.
    """
    if replace(current_type, nullable=file_type.nullable) == file_type:
        return None
    current_bits = INTEGER_BITS.get(current_type.root, 0)
    file_bits = INTEGER_BITS.get(file_type.root, 0)
    is_narrower = 0 < file_bits < current_bits
    if not is_narrower or isinstance(key, bytes):
        return f"the column was {file_type} when the file was written"
    limit = 1 << (file_bits - 1)
    if not -limit <= key < limit:
        return f"the value does not fit the file's {file_type}"
    return None
