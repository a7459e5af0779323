"""Bounds compare as the column's values do; there are none where the footer does not state the
order."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, ColumnMetaData, Statistics
from sbbf_tool.parquet.pages import ChunkMeta
from sbbf_tool.parquet.statistics import bounds
from support.tables import each


def footer_of(path: Path) -> Footer:
    with ParquetFile.open(path) as file:
        return file.footer


class TestDoubtful:
    """Bounds as some writers state them, put into a footer by hand."""

    def bounds_with(
        self,
        tmp_path: Path,
        values: pa.Array,
        *,
        order: bool = True,
        writer: str | None = "DuckDB version v2",
        **fields: bytes,
    ) -> object:
        path = tmp_path / "stated.parquet"
        pq.write_table(pa.table({"c": values}), path)
        footer = footer_of(path)
        statistics = footer.chunk(0, 0).statistics
        statistics.min = statistics.max = statistics.min_value = statistics.max_value = None
        for name, plain in fields.items():
            setattr(statistics, name, plain)
        footer.metadata.created_by = writer
        if not order:
            footer.metadata.column_orders = None
        return bounds(footer, 0, footer.columns[0])

    def test_without_an_order_the_newer_fields_mean_nothing(self, tmp_path: Path):
        first, second = (n.to_bytes(8, "little") for n in (1, 2))
        assert self.bounds_with(tmp_path, pa.array([1]), min_value=first, max_value=second) == (
            1,
            2,
        )
        assert (
            self.bounds_with(
                tmp_path, pa.array([1]), order=False, min_value=first, max_value=second
            )
            is None
        )

    def test_the_older_fields_were_compared_as_signed(self, tmp_path: Path):
        first, second = (n.to_bytes(8, "little") for n in (1, 2))
        assert self.bounds_with(tmp_path, pa.array([1]), order=False, min=first, max=second) == (
            1,
            2,
        )
        assert self.bounds_with(tmp_path, pa.array([1], pa.uint64()), min=first, max=second) is None
        assert self.bounds_with(tmp_path, pa.array(["a"]), min=b"a", max=b"b") is None
        assert self.bounds_with(tmp_path, pa.array(["a"]), min=b"a", max=b"a") == (b"a", b"a")

    @each(
        "writer, is_reliable",
        [
            ("parquet-mr version 1.8.0 (build 0)", True),
            ("parquet-mr version 1.12.3", True),
            ("parquet-cpp version 1.5.1", True),
            ("impala version 2.9.0-cdh5.12.0 (build 0)", True),
            ("parquet-mr version 1.7.0 (build 0)", False),
            ("parquet-mr version 1.6.0rc3", False),
            ("parquet-mr", False),
            ("unknown", False),
            ("", False),
            (None, False),
        ],
    )
    def test_equal_older_bounds_of_bytes_depend_on_the_writer(
        self, tmp_path: Path, writer: str | None, is_reliable: bool
    ):
        """Java writers before parquet-java 1.8.0 reused buffers, and could state the last value as
        both bounds."""
        for values in (pa.array(["a", "k"]), pa.array([b"a", b"k"], pa.binary(1))):
            stated = self.bounds_with(tmp_path, values, writer=writer, min=b"k", max=b"k")
            assert stated == ((b"k", b"k") if is_reliable else None)

    def test_nan_bounds_nothing(self, tmp_path: Path):
        number, nan = (struct.pack("<d", x) for x in (1.0, float("nan")))
        assert self.bounds_with(tmp_path, pa.array([1.0]), min_value=number, max_value=nan) is None
        assert self.bounds_with(tmp_path, pa.array([1.0]), min_value=nan, max_value=nan) is None

    def test_bounds_of_the_wrong_width(self, tmp_path: Path):
        assert self.bounds_with(tmp_path, pa.array([1]), min_value=b"\1", max_value=b"\2") is None
        assert self.bounds_with(tmp_path, pa.array([1.0]), min_value=b"\1", max_value=b"\2") is None


def test_intervals_have_no_order(fixtures: Path):
    footer = footer_of(fixtures / "duckdb-types.parquet")
    span: Column = next(column for column in footer.columns if column.name == "span")
    assert bounds(footer, 0, span) is None


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
    assert (meta.non_null_values, meta.most_values, meta.has_only_nulls) == (
        non_null,
        most,
        has_only_nulls,
    )
