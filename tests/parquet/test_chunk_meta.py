"""What a footer states of a column chunk, and what is unknown where it does not state it."""

from __future__ import annotations

from sbbf_tool.parquet.chunk_meta import ChunkMeta
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, ColumnMetaData, Statistics
from support.tables import each


def chunk(**fields):
    nulls = fields.pop("nulls", "no statistics")
    statistics = None if nulls == "no statistics" else Statistics(null_count=nulls)
    return ChunkMeta(ColumnChunk(meta_data=ColumnMetaData(statistics=statistics, **fields)))


@each(
    "values, nulls, non_null, most, has_only_nulls",
    [
        (10, 3, 7, 7, False),
        (10, 0, 10, 10, False),
        (10, 10, 0, 0, True),
        (10, None, None, 10, False),
        (10, "no statistics", None, 10, False),
        (10, -1, None, 10, False),
        (10, 11, None, 0, False),
        (0, None, 0, 0, True),
        (None, 3, None, 0, False),
        (None, None, None, 0, False),
        (-1, -1, None, 0, False),
    ],
)
def test_an_unknown_count_is_never_taken_for_zero(values, nulls, non_null, most, has_only_nulls):
    meta = chunk(num_values=values, nulls=nulls)
    assert (meta.non_null_values, meta.most_values, meta.has_only_nulls) == (non_null, most, has_only_nulls)


def test_what_is_stated_of_a_chunk():
    """One with bounds does not have only nulls; a size that is not stated counts as zero."""
    for name in ("min", "max", "min_value", "max_value"):
        meta = ChunkMeta(ColumnChunk(meta_data=ColumnMetaData(num_values=10, statistics=Statistics(null_count=10, **{name: b"x"}))))
        assert (meta.non_null_values, meta.has_only_nulls) == (None, False)
    for stated_size, size in ((5, 5), (0, 0), (None, 0), (-5, 0)):
        assert chunk(total_compressed_size=stated_size).bytes == size
