"""The columns of a Paimon data file as hashes; the page sizes that a Parquet file states are checked before pyarrow decodes the pages.

Avro blocks have their own limit (`avro.file`). ORC is not checked: pyarrow decodes a whole stripe and does not state its size.
"""

from __future__ import annotations

from sbbf_tool.errors import ErrorPlace
from sbbf_tool.extensions.paimon.data_file import hash_columns
from sbbf_tool.extensions.paimon.hash_batch import ColumnHashes, ColumnTypes
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.parquet.footer import TAIL_BYTES, Footer, parse_tail
from sbbf_tool.parquet.page_sizes import HeaderWalk


def read_columns(data: bytes, name: str, columns: ColumnTypes, max_page_bytes: MaxPageBytes = None) -> ColumnHashes:
    """Hash the columns of a data file's bytes; the name of the file states its format.

    Raises the errors of `hash_columns`, and OversizedPageError.
    """
    column_hashes = hash_columns(data, name, columns)
    if name.lower().endswith(".parquet"):
        _check_pages(data, tuple(f"{indexed.column}." for indexed in columns), PageLimit.of(max_page_bytes))
    return column_hashes


def _check_pages(data: bytes, names: tuple[str, ...], limit: PageLimit) -> None:
    tail = parse_tail(data[-TAIL_BYTES:], len(data))
    footer = Footer(data[tail.start : tail.start + tail.length], tail.start)
    for number in range(footer.num_row_groups):
        for column in footer.columns:
            meta = footer.chunk(number, column.index)
            path = "".join(f"{part}." for part in column.path)
            if meta is None or not path.startswith(names):
                continue
            with ErrorPlace(None, f"column {column.name}, row group {number}"):
                walk = HeaderWalk(meta, len(data), limit.ensure)
                walk.check_up_to(len(data), lambda offset, length: data[offset : offset + length])
