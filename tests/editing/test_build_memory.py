"""Hashes kept from building for verification: within a bound, and all of a chunk or nothing of it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import SbbfError, add_filters
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import HashMemory
from support.tables import each


@each("most_bytes", [0, 9000, 96 << 20])
def test_a_filter_with_false_negatives_is_not_appended(tmp_path, monkeypatch, most_bytes):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"n": range(3000)}), path, row_group_size=1000, use_dictionary=False)
    before = path.read_bytes()
    monkeypatch.setattr(HashMemory, "MOST_BYTES", most_bytes)
    with monkeypatch.context() as lying:
        fold = BloomFilter.fold_to_fpp
        lying.setattr(BloomFilter, "fold_to_fpp", lambda bloom, fpp: BloomFilter.empty(fold(bloom, fpp).num_bytes))
        with pytest.raises(SbbfError, match="1000 values of column n, row group 0 are absent"):
            add_filters(path, ["n"], in_place=True, append=True)
    assert path.read_bytes() == before
    assert len(add_filters(path, ["n"], in_place=True, append=True).filters) == 3
