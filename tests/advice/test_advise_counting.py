"""Estimates of distinct values within their stated error, and overlaps that can be calculated by
hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sbbf_tool.advice.totals import measure_overlap
from sbbf_tool.file import distinct
from sbbf_tool.file.distinct import STANDARD_ERROR, Sketch
from sbbf_tool.parquet.statistics import Bounds
from sbbf_tool.storage.source import LocalSource
from support.advised import advice, write
from support.tables import each


def hashes(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def sketch_of(values: np.ndarray, parts: int = 7) -> Sketch:
    sketch = Sketch()
    for part in np.array_split(values, parts):
        sketch.add(memoryview(part))
    return sketch


@each("seed", range(5))
def test_a_large_ndv_is_within_four_standard_errors(seed):
    sketch = sketch_of(hashes(400_000, seed))
    assert not sketch.is_complete
    assert sketch.ndv == pytest.approx(400_000, rel=4 * STANDARD_ERROR)


@each("domain", [50, 20_000, 200_000, 2**62])
def test_the_ndv_of_a_very_large_chunk_is_never_underestimated(domain):
    """A tenth is read. The estimate is right if all values are distinct, and at most too high if
    values repeat."""
    values = np.random.default_rng(1).integers(0, domain, 400_000).astype(np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    ndv, size, is_all = distinct._estimate_ndv(
        Sketch(), (memoryview(run) for run in np.split(values, 100)), 40_000, len(values)
    )
    truth = len(np.unique(values))
    assert (size, is_all) == (40_000, False)
    assert truth * 0.99 <= ndv <= len(values)
    if domain in (50, 2**62):
        assert ndv == pytest.approx(truth, rel=0.01)


@each("domain, share", [(100, 0.2), (20_000, 0.75), (2**62, 1.0)])
def test_columns_whose_values_repeat_are_read_in_part(tmp_path, monkeypatch, domain, share):
    values = np.random.default_rng(1).integers(0, domain, 600_000)
    # Pages as newer versions of pyarrow write them.
    options = {"use_dictionary": False, "compression": "none", "data_page_size": 160_000}
    path = write(
        tmp_path / "repeat.parquet", pa.table({"n": values}), row_group_size=300_000, **options
    )
    read = []
    monkeypatch.setattr(
        LocalSource,
        "read",
        lambda self, *place, plain=LocalSource.read: (read.append(place), plain(self, *place))[1],
    )
    _, columns = advice(path)
    assert columns["n"].verdict == ("add" if share == 1.0 else "no gain")
    assert (
        share / 2
        < sum(length for _, length in read if length > 10_000) / (600_000 * 8)
        <= share * 1.3
    )
    assert ("extrapolated" in columns["n"].ndv_source) == (share < 1.0)


def test_a_small_row_group_does_not_count(tmp_path):
    """Its values repeat less than those of the others."""
    values = np.random.default_rng(1).permutation(np.arange(4_000) % 1_000)
    table = pa.table({"n": [*values, 500, 0, 999]})
    _, columns = advice(write(tmp_path / "a.parquet", table, row_group_size=4_000))
    assert columns["n"].ndv == 1_000


@each(
    "ranges, share",
    [
        ([(0, 10), (10, 20), (20, 30)], 0),  # they touch in a point, which no value of a range hits
        ([(0, 10), (0, 10)], 1),
        ([(0, 10), (5, 15)], 0.5),
        ([(0, 100), (0, 50)], 0.75),
        (
            [(5, 5), (0, 10)],
            0.5,
        ),  # the single value is within; hardly any value of the range is the single one
        ([(5, 5), (5, 5)], 1),
        ([(2**200, 2**200 + 10), (2**200 + 5, 2**200 + 15)], 0.5),
        ([(float("-inf"), 0.0), (0.5, float("inf"))], 0),
        ([(b"id-00", b"id-50"), (b"id-51", b"id-99")], 0),
        ([(b"id-0", b"id-9"), (b"id-0", b"id-9")], 1),
    ],
)
def test_the_overlap_of_ranges_is_measured(ranges, share):
    assert measure_overlap([Bounds(low, high) for low, high in ranges]) == pytest.approx(
        share, abs=1e-6
    )
