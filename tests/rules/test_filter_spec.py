"""Declared filters: which files and columns they are about, what sizes they request, and strict
parsing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.errors import UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.rules.filter_spec import FilterSpec, parse_specs, read_specs, request_filters
from support.samples import write_events
from support.tables import each

PLACE = "[[filters]]"


def parse(folder: Path, *tables: object, is_named: bool = True) -> tuple[FilterSpec, ...]:
    return parse_specs(list(tables), str(folder / "sbbf.toml"), PLACE, is_named=is_named)


@each(
    "globs, path, is_match",
    [
        ("events/**", "events/a.parquet", True),
        ("events/**", "events/day=1/a.parquet", True),
        ("events", "events/day=1/a.parquet", True),
        ("events/*.parquet", "events/day=1/a.parquet", False),
        ("events/**/a.parquet", "events/a.parquet", True),
        ("events/", "events2/a.parquet", False),
        (["other", "ev?nts/day=[12]"], "events/day=1/a.parquet", True),
        ("../lake/events", "events/a.parquet", True),
        ("s3://bucket/events/**", "s3://bucket/events/a.parquet", True),
        ("s3://bucket/events/", "s3://bucket/events/day=1/a.parquet", True),
        ("s3://bucket/events", "s3://bucket/events2/a.parquet", False),
    ],
)
def test_paths(tmp_path: Path, globs: object, path: str, is_match: bool):
    (declaration,) = parse(tmp_path / "lake", {"paths": globs, "columns": "id"})
    assert declaration.matches(path if "://" in path else str(tmp_path / "lake" / path)) == is_match


def test_where_selects_partitions(tmp_path: Path):
    (declaration,) = parse(tmp_path, {"paths": "**", "columns": "id", "where": "day >= '2'"})
    assert [declaration.matches(str(tmp_path / f"day={day}" / "a.parquet")) for day in (1, 2)] == [
        False,
        True,
    ]
    with pytest.raises(UsageError, match="no partition column 'day'"):
        declaration.matches(str(tmp_path / "a.parquet"))


@each(
    "path",
    [
        "../other",
        "a/../../other",
        "/elsewhere",
        "s3://bucket/a",
        "ducklake:meta.db#t",
        "prod:events.clicks",
        "a/**/../../..",
    ],
)
def test_the_paths_of_a_file_that_was_found_are_below_it(tmp_path: Path, path: str):
    table = {"paths": ["a/**", path], "columns": "id"}
    assert parse(tmp_path, table)
    with pytest.raises(UsageError, match="paths must lie below"):
        parse(tmp_path, table, is_named=False)
    assert parse(
        tmp_path, {"paths": ["a/**", "*", f"{tmp_path}/b"], "columns": "id"}, is_named=False
    )


def test_the_later_declaration_of_a_column_holds(tmp_path: Path):
    path = write_events(tmp_path / "a.parquet")
    first = FilterSpec(("id", "name", "nowhere"), fpp=0.1)
    second = FilterSpec("id", max_bytes=1024, ndv=7)
    with ParquetFile.open(path) as file:
        requests = request_filters(file, [first, second])
        names = {
            file.footer.columns[column].name: size for (_, column), size in requests.sizes.items()
        }
    assert names == {"id": Sizing(0.01, 7, 1024), "name": Sizing(0.1)}
    assert len(requests.sizes) == 6
    columns = [(column.name, column.type) for column in requests.named_columns]
    assert columns == [("id", "INT64"), ("name", "BYTE_ARRAY STRING"), ("nowhere", None)]


def test_limits_of_the_size(tmp_path: Path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"a": range(2000), "b": range(2000)}),
        path,
        row_group_size=1000,
        use_dictionary=False,
        compression="none",
    )
    with ParquetFile.open(path) as file:
        share = int(0.1 * file.footer.chunk_meta(0, 0).bytes)
        cases = [
            ({"share_of_data": 0.1, "max_bytes": 500}, [500, 500]),
            ({"share_of_data": 0.1}, [share, share]),
            ({"share_of_data": 0.0001}, [64, 64]),
            ({"max_bytes": {"b": 128, "nowhere": 64}}, [sizing.MAX_BYTES, 128]),
        ]
        assert share > 500
        for limits, expected in cases:
            spec = FilterSpec(("a", "b"), **limits)
            assert [spec.size_for(file, (0, column)).max_bytes for column in (0, 1)] == expected, (
                limits
            )


def test_what_is_no_spec() -> None:
    for arguments, message in (
        ({"columns": ()}, "no column was given"),
        ({"columns": "a", "judge": "it"}, "judge must be one of .*, not 'it'"),
    ):
        with pytest.raises(UsageError, match=message):
            FilterSpec(**arguments)


def test_reading(tmp_path: Path):
    path = tmp_path / "pyproject.toml"
    path.write_text(
        "[[tool.sbbf.filters]]\npaths = 'a'\ncolumns = ['x', 'y']\nmax-bytes = {x = '1MiB', y = "
        "64}\n"
    )
    assert read_specs(path) == (
        FilterSpec(
            ("x", "y"), paths=("a",), max_bytes={"x": 1 << 20, "y": 64}, folder=str(tmp_path)
        ),
    )
    path.write_text("[tool.ruff]\n")
    with pytest.raises(UsageError, match=r"the file has no table \[\[tool.sbbf.filters\]\]"):
        read_specs(path)
    path.write_text("[[tool")
    with pytest.raises(UsageError, match="not TOML"):
        read_specs(path)
    with pytest.raises(UsageError, match="no such file"):
        read_specs(tmp_path / "nowhere.toml")
