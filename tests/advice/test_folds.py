"""What existing filters would take at smaller sizes: sums over folds, held against filters that are folded one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import add_filters, advise, inspect, resize_filters


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
