"""How large the filters are that `add_filters` builds: from the values themselves, within what was allowed."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import BloomFilter, UsageError, add_filters
from support.samples import build_elsewhere, listing, write_column, write_events
from support.tables import each


@pytest.fixture
def plain(tmp_path):
    return write_events(tmp_path / "events.parquet")


def i64(value: int) -> bytes:
    return struct.pack("<q", value)


POWERS = {64 << n for n in range(22)}


@each("fpp", [0.3, 0.01, 1e-6])
@each("distinct", [1, 95, 400, 20_000])
def test_the_size_follows_from_the_values_and_the_rate_is_kept(tmp_path, distinct, fpp):
    path = write_column(tmp_path / "v.parquet", pa.array([n % distinct for n in range(20_000)], pa.int64()))
    (row,) = build_elsewhere(path, ["v"], fpp=fpp).filters
    assert row.bitset_bytes in POWERS
    assert row.fpp <= fpp
    half = sized_exactly(range(distinct), row.bitset_bytes // 2)
    assert row.bitset_bytes == 64 or half.fpp > fpp, "half the size would have done"


def sized_exactly(values, num_bytes: int) -> BloomFilter:
    bloom = BloomFilter.empty(max(32, num_bytes))
    for value in values:
        bloom.insert(i64(value))
    return bloom


def test_values_whose_bytes_take_next_to_nothing_are_still_counted(tmp_path):
    """A million numbers a constant step apart take some hundred bytes: the first guess, from the bytes, is too small for them."""
    path = write_column(
        tmp_path / "v.parquet",
        pa.array(range(0, 3 * 10**6, 3), pa.int64()),
        use_dictionary=False,
        column_encoding="DELTA_BINARY_PACKED",
        compression="zstd",
    )
    assert pq.read_metadata(path).row_group(0).column(0).total_compressed_size < 20_000
    (row,) = build_elsewhere(path, ["v"]).filters
    assert row.fpp <= 0.0125
    assert row.estimated_ndv == pytest.approx(10**6, rel=0.05)


def test_a_stated_number_of_values_decides_the_size(tmp_path):
    path = write_column(tmp_path / "v.parquet", pa.array(range(100), pa.int64()))
    sizes = [build_elsewhere(path, ["v"], ndv=ndv).filters[0].bitset_bytes for ndv in (1, 100, 10_000, 10**6)]
    assert sizes == [64, 256, 16384, 2097152]


def test_a_limit_is_respected_and_its_cost_is_reported(tmp_path):
    path = write_column(tmp_path / "v.parquet", pa.array(range(5000), pa.int64()))
    report = build_elsewhere(path, ["v"], max_bytes=1000, force=True)
    assert report.filters[0].bitset_bytes == 512
    assert report.filters[0].fpp > 0.5
    assert len(report.warnings) == 1
    assert "column v: the false-positive rate is" in report.warnings[0]
    assert build_elsewhere(path, ["v"], max_bytes=8192).warnings == ()


@each("size", [{"fpp": 0.0}, {"fpp": 1.0}, {"fpp": -0.1}, {"fpp": math.nan}, {"ndv": 0}, {"ndv": -5}, {"max_bytes": 63}, {"max_bytes": 0}])
def test_a_size_that_means_nothing_is_a_usage_error(plain, tmp_path, size):
    before = listing(tmp_path)
    with pytest.raises(UsageError):
        add_filters(plain, ["id"], in_place=True, **size)
    assert listing(tmp_path) == before
