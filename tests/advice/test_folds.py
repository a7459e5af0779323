"""What existing filters would take at smaller sizes: sums over folds, held against filters that are folded one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, advise, inspect, resize_filters
from sbbf_tool.advice.folds import Folds


def test_sums_of_filters_with_different_numbers_of_folds() -> None:
    folds = Folds(fpp=0.05)
    folds.add(((256, 0.01), (128, 0.04), (64, 0.3)))
    folds.add(((64, 0.2),))
    folds.add(((128, 0.02), (64, 0.1)))
    sizes = [(size.halvings, size.bytes, size.worst_fpp) for size in folds.sizes()]
    assert sizes == [(0, 448, 0.2), (1, 256, 0.2), (2, 192, 0.3)]
    assert [size.mean_fpp for size in folds.sizes()] == pytest.approx([0.23 / 3, 0.34 / 3, 0.6 / 3])
    # The first can be halved once, the second misses the target as it is, and the third would miss it.
    assert folds.bytes_at_target == 128 + 64 + 128


def test_advise_gives_the_sizes_and_rates_that_resize_gives(tmp_path) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 60, 3000)
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": values, "plain": values}), tmp_path / f"{name}.parquet", row_group_size=1000)
        add_filters(tmp_path / f"{name}.parquet", ["id"], fpp=0.0001, in_place=True)
    report = advise([tmp_path / "a.parquet", tmp_path / "b.parquet"], fpp=0.02)
    (column,) = report.filter_sizes
    assert column.column == "id"
    present = [row.bitset_bytes for row in inspect(tmp_path / "a.parquet").filters]
    assert column.sizes[0].bytes == 2 * sum(present)
    resize_filters(tmp_path / "a.parquet", fpp=0.02, output=tmp_path / "small.parquet")
    small = inspect(tmp_path / "small.parquet").filters
    assert column.bytes_at_target == 2 * sum(row.bitset_bytes for row in small) < column.sizes[0].bytes
    resize_filters(tmp_path / "a.parquet", num_bytes=max(present) // 4, output=tmp_path / "quarter.parquet")
    quarter = inspect(tmp_path / "quarter.parquet").filters
    assert column.sizes[2].bytes == 2 * sum(row.bitset_bytes for row in quarter)
    assert column.sizes[2].worst_fpp == max(row.estimated_fpp for row in quarter)


def test_advise_without_filters_has_no_sizes(tmp_path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    assert advise(tmp_path / "a.parquet").filter_sizes == ()
