"""Filters to build and their sizes, as Python objects or as text: `COLUMN`, `COLUMN:items=100000,fpp=0.01`, `tags[key]:fpp=0.05`.

Without `items` a filter is sized for the distinct values in the file, not for the million that Paimon assumes. `type=`, as in
`at:type=TIMESTAMP(3)`, gives the Paimon type of a column if neither a table nor the data file determines it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from sbbf_tool.arguments import as_iterable
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64_sizing import DEFAULT_FPP
from sbbf_tool.extensions.paimon.data_types import DataType, parse_type_text
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable
from sbbf_tool.extensions.paimon.table_schema import indexed_type, resolve_column

_SPELLING = re.compile(r"(?P<column>.+?):(?P<options>\w+=.*)", re.DOTALL)
_OPTIONS = ("items", "fpp", "type")
_SMALLEST_FPP = 1e-30
"""This rate needs 100 hash functions; Paimon's reader cannot use a filter with 128 or more."""


def index_requests(columns: str | IndexRequest | Iterable[str | IndexRequest]) -> list[IndexRequest]:
    """Return a list of requests, parsing strings; a single request needs no list. Raises UsageError for invalid options."""
    return [parse_request(column) if isinstance(column, str) else column for column in as_iterable(columns)]


def request_in_file(table: PaimonTable, live: IndexedFile, request: IndexRequest) -> IndexRequest | None:
    """Translate a request from current names to the names and types in the schema of a data file; None if the schema lacks it."""
    indexed, field, _ = resolve_column(table.schema, request.column)
    schema = table.schema_of(live.file)
    stored = schema.field_by_id(field.id)
    renamed = replace(indexed, column=stored.name) if stored else None
    data_type = indexed_type(schema, renamed) if renamed else None
    return replace(request, column=str(renamed), type=data_type) if data_type else None


def parse_request(text: str) -> IndexRequest:
    """Parse a request. A name that ends with `]` has no options, whatever is in the brackets. Raises UsageError for invalid options."""
    match = None if text.endswith("]") else _SPELLING.fullmatch(text)
    if match is None:
        return IndexRequest(text)
    column, options = match["column"], {}
    for option in match["options"].split(","):
        name, _, value = option.partition("=")
        if name not in _OPTIONS or name in options:
            hint = f"the options are {', '.join(_OPTIONS)}, each once"
            raise UsageError(f"{name!r:.20} is not an option, or is repeated", place=f"column {column}", hint=hint)
        options[name] = value
    return IndexRequest(
        column,
        _parse_items(column, options["items"]) if "items" in options else None,
        _parse_fpp(column, options["fpp"]) if "fpp" in options else DEFAULT_FPP,
        _parse_type(column, options["type"]) if "type" in options else None,
    )


def _parse_items(column: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise UsageError(f"items must be an integer of at least 1, not {text:.40}", place=f"column {column}")
    return int(text)


def _parse_fpp(column: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not _SMALLEST_FPP <= rate < 1:
        raise UsageError(f"fpp must be at least {_SMALLEST_FPP:g} and below 1, not {text:.40}", place=f"column {column}")
    return rate


def _parse_type(column: str, text: str) -> DataType:
    try:
        return parse_type_text(text)
    except UnreadableError as error:
        raise UsageError(f"type={text:.40}: {error.message}", place=f"column {column}") from None
