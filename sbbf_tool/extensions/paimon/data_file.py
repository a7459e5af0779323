"""Hashes of the columns of a data file in Parquet, ORC or Avro. The format follows from the suffix of the name, as in Paimon.

The page sizes that a Parquet file states are checked before pyarrow decodes the pages, and Avro blocks have their own limit (`avro.file`).
ORC is not checked: pyarrow decodes a whole stripe and does not state its size.
"""

from __future__ import annotations

from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.extensions.paimon.arrow_columns import hash_orc, hash_parquet
from sbbf_tool.extensions.paimon.avro_columns import hash_avro
from sbbf_tool.extensions.paimon.fast_hash import ColumnHashes, ColumnTypes
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.parquet.footer import TAIL_BYTES, Footer, parse_tail
from sbbf_tool.parquet.page_sizes import HeaderWalk

_READERS = {"parquet": hash_parquet, "orc": hash_orc, "avro": hash_avro}


def hash_columns(data: bytes, name: str, columns: ColumnTypes, max_page_bytes: MaxPageBytes = None) -> ColumnHashes:
    """Open a data file, whose name states its format, to hash the requested columns.

    Raises UsageError for an unsupported format, a column that does not exist, and a type without a hash in Paimon; UnreadableError if the
    file is broken or contradicts the type of a column (also while `batches` is read); OversizedPageError.
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in _READERS:
        raise UsageError(f"cannot read data files of format {suffix!r:.40}; supported: {', '.join(_READERS)}")
    column_hashes = _READERS[suffix](data, columns)
    if suffix == "parquet":
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
