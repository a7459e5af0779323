"""Hashes of the columns of a data file in Parquet, ORC or Avro. The format follows from the suffix of the name, as in Paimon."""

from __future__ import annotations

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon.arrow_columns import hash_orc, hash_parquet
from sbbf_tool.extensions.paimon.avro_columns import hash_avro
from sbbf_tool.extensions.paimon.hash_batch import ColumnHashes, ColumnTypes

_READERS = {"parquet": hash_parquet, "orc": hash_orc, "avro": hash_avro}


def hash_columns(data: bytes, name: str, columns: ColumnTypes) -> ColumnHashes:
    """Open a data file to hash the requested columns.

    Raises UsageError for an unsupported format, a column that does not exist, and a type without a hash in Paimon; UnreadableError if the
    file is broken or contradicts the type of a column (also while `batches` is read).
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in _READERS:
        raise UsageError(f"cannot read data files of format {suffix!r:.40}; supported: {', '.join(_READERS)}")
    return _READERS[suffix](data, columns)
