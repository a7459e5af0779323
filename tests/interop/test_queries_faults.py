"""Rows that an engine loses because of a right filter, or would lose because of a wrong one: each
fault is stated, with the version.

When a test fails because an engine got better, the advice that `sbbf engines` and `add-filter`
build on it can go.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interop.query_engines import Question
from sbbf_tool import add_filters
from support.tables import each

pytestmark = pytest.mark.engines

duckdb = pytest.importorskip("duckdb")


def find_rows(path: Path, condition: str) -> list[int]:
    with duckdb.connect() as connection:
        return [
            n
            for (n,) in connection.execute(
                f"SELECT n FROM '{path}' WHERE {condition} ORDER BY n"
            ).fetchall()
        ]


SPANS = {
    1: "INTERVAL '1 month'",
    2: "INTERVAL '30 days'",
    3: "INTERVAL '29 days 24 hours'",
    4: "INTERVAL '1 day'",
    5: "INTERVAL '24 hours'",
    6: "INTERVAL '3 years 400 days 50 hours'",
    7: "INTERVAL '0 days'",
    8: "to_months(2147483647) + to_days(2147483647) + to_hours(23)",
    9: "to_months(2147483646) + to_days(60) + to_hours(49)",
}
"""Intervals, some of them equal to DuckDB. In the last two the months overflow when days become
months.

The one of 2147483647 months is its own normal form; the other one's has a month more and 32 days,
which no row stores.
"""


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    """A file of DuckDB's with INTERVAL filters, which are marked as holding the normalised form
    too."""
    path = tmp_path / "spans.parquet"
    rows = " UNION ALL ".join(f"SELECT {n} AS n, {sql} AS span" for n, sql in SPANS.items())
    duckdb.sql(
        f"COPY (SELECT unnest([n, n]) AS n, span FROM ({rows})) TO '{path}' (FORMAT parquet)"
    )
    assert pq.read_metadata(path).metadata[b"duckdb.interval_bloom_filter"] == b"normalized-v1"
    return path


def test_our_intervals_are_found_in_every_form(spans: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours.parquet"
    add_filters(spans, ["span"], output=ours, rebuild="all", fpp=1e-6)

    for n, sql in SPANS.items():
        rows = find_rows(ours, f"span = {sql}")
        assert n in rows
        assert rows == find_rows(spans, f"span = {sql}")
    with duckdb.connect() as connection:
        excluded = connection.execute(
            "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, 'span', INTERVAL '77 days')",
            [str(ours)],
        ).fetchall()
    assert excluded == [(True,)]


@each("value", ["0.0", "-0.0"])
@each("name", ["datafusion"], heavy=["spark"])
def test_filters_of_one_zero_lose_the_other(
    name: str, value: str, tmp_path: Path, engines: Any
) -> None:
    """+0 and -0 are equal and hash differently: a row group that holds only one of them is skipped
    for a query of the other."""
    path, ours = tmp_path / "zeros.parquet", tmp_path / "ours.parquet"
    rows = pa.table({"n": [0, 1, 2, 3], "v": [0.0, 1.0, -0.0, 1.0]})
    pq.write_table(
        rows, path, row_group_size=2, bloom_filter_options={"v": {"ndv": 100, "fpp": 1e-6}}
    )
    add_filters(path, ["v"], output=ours, rebuild="all")
    question = Question(("v",), (value,))

    assert len(engines(name).answers(path, [question])[0]) == 1
    assert engines(name).answers(ours, [question]) == [[0, 2]]


def test_a_filter_of_1000_bytes_fails_clickhouse(engines: Any) -> None:
    """Not a multiple of 32; parquet-java writes such sizes on request."""
    path = Path(__file__).parents[2] / "fixtures" / "spark-1000-bytes.parquet"
    with pytest.raises(RuntimeError, match="Invalid bloom filter size"):
        engines("clickhouse").lines(
            f"SELECT * FROM file('{path}', Parquet) WHERE id = 1000", "Null"
        )
