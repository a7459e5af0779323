"""The doubts in what a file states of a column chunk: what it, or another part of the table, may
contradict excludes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.parquet.statistics import doubt_of_numbers

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.parquet.filters import StoredFilter


def doubt_of_chunk(
    file: ParquetFile, row_group: int, column: Column, values: Iterable[object] | None = None
) -> str | None:
    """Return why neither statistics nor dictionary nor filter of a chunk may exclude any of
    `values`, or any value at all; None if they may."""
    locked = file.encryption_of(row_group, column)
    if locked:
        return locked
    path = file.footer.elsewhere(row_group, column.index)
    if path is not None:
        return f"its pages and its filter are in another file: {path}"
    return (
        column.reading.doubt
        or doubt_of_folder(file, column, values)
        or doubt_of_variant(file, row_group, column)
        or doubt_of_numbers(file.footer, row_group, column)
    )


def doubt_of_folder(
    file: ParquetFile, column: Column, values: Iterable[object] | None
) -> str | None:
    """Return why a stored column may not have its stored values for a reader: the folder states one
    of `values`, or any value, for the same column.

    Query engines prefer the value of the folder, for example 1 in `day=1/a.parquet`. Files of
    tables have no such folders.
    """
    if "=" not in file.name or len(column.path) > 1:
        return None
    if file.is_in_table or not file.source.can_reopen:
        return None
    from sbbf_tool.file.missing_column import statement_of

    statement = statement_of(os.path.dirname(file.name), column.path[0].casefold())
    if statement is None:
        return None
    if values is not None and all(statement.answer(value) == ABSENT for value in values):
        return None
    return f"{statement.reason}, which readers may use in place of the stored values"


def doubt_of_variant(file: ParquetFile, row_group: int, column: Column) -> str | None:
    """Return why a leaf of a VARIANT may lack values that its rows have: only typed values are
    there, others are in a binary `value`."""
    path = column.variant
    if not path:
        return None
    if path[-1] == "typed_value":
        residuals = {(*path[:at], "value") for at, name in enumerate(path) if name == "typed_value"}
        binary_parts = (other for other in file.footer.columns if other.variant in residuals)
        metas = (file.footer.chunk_meta(row_group, other.index) for other in binary_parts)
        if all(meta.has_only_nulls for meta in metas):
            return None
    return "it is a part of a VARIANT, whose other parts may hold the value in binary form"


def doubt_of_filter(file: ParquetFile, stored: StoredFilter) -> str | None:
    """Return why a filter may exclude nothing, whatever its bits: its header is unknown, or the
    footer contradicts its length or place.

    `rules` reports the same as findings; a filter in doubt is neither folded nor counted as useful.
    """
    if stored.header.unsupported_reason:
        return stored.header.unsupported_reason
    if stored.place.length not in (None, stored.length):
        return (
            f"the footer states {stored.place.length:,} bytes for it, but its header and "
            f"bitset take {stored.length:,}"
        )
    from sbbf_tool.file.layout import shares_bytes

    if shares_bytes(file, stored):
        return "it shares bytes with other contents of the file"
    return None
