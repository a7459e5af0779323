"""A data file's columns as hashes, whatever its format: Parquet, ORC or Avro, told by the end of its name as Paimon tells it."""

from __future__ import annotations

from sbbf_tool.errors import UsageError
from sbbf_tool.paimon.arrow_columns import orc_hashes, parquet_hashes
from sbbf_tool.paimon.avro_columns import avro_hashes
from sbbf_tool.paimon.hash_batch import ColumnHashes, Wanted

_READERS = {"parquet": parquet_hashes, "orc": orc_hashes, "avro": avro_hashes}


def column_hashes(data: bytes, name: str, wanted: Wanted) -> ColumnHashes:
    """The wanted columns of a data file, opened.

    Raises UsageError for another format, a column that is not there, and a type Paimon has no hash for; UnreadableError where the file
    is broken or contradicts a column's type (while reading `batches`, too).
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in _READERS:
        raise UsageError(f"data files of format {suffix!r:.40} are not read here", hint=f"only {', '.join(_READERS)} are")
    return _READERS[suffix](data, wanted)
