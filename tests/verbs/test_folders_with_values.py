"""Folders that state a value for a column that the file also stores, such as `day=1/a.parquet` with
days 2 and 3.

DuckDB and Spark take the value of the folder, other readers the stored ones: so neither value is
absent.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, probe
from support.tables import each

REASON = "the folder states {}, which readers may use in place of the stored values"


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"day": [2, 3], "k": [1, 2]}), path)
    add_filters(path, ["day", "k"], in_place=True)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "lake" / "day=1" / "a.parquet")


def answer_of(path: Path, column: str, value: object) -> tuple[str, str | None]:
    (answer,) = probe(path, column, [value]).values[0].row_groups
    return answer.answer, answer.reason


@each(
    "column, value, answer",
    [
        ("day", 1, ("cannot say", REASON.format("day=1"))),
        ("day", "1", ("cannot say", REASON.format("day=1"))),
        ("day", 2, ("maybe", None)),
        ("day", 4, ("absent", None)),
        ("k", 1, ("maybe", None)),
        ("k", 7, ("absent", None)),
    ],
)
def test_a_value_of_file_or_folder_is_not_absent(
    path: Path, column: str, value: object, answer: tuple[str, str | None]
) -> None:
    assert answer_of(path, column, value) == answer


@each(
    "folders",
    ["day=1/day=2", "DAY=1/day=2", "day=1/root/day=2", "day=1/day=__HIVE_DEFAULT_PARTITION__"],
)
@each("column", ["day", "Day"])
def test_a_folder_that_states_a_value_twice_decides_nothing(
    tmp_path: Path, folders: str, column: str
) -> None:
    """Readers take the first value or the last, or fail. `Day` is not stored."""
    path = write(tmp_path / folders / "a.parquet")
    for value in (1, 2, 3, 4, None):
        report = probe(path, column, [value], strict=False)
        assert (
            report.values[0].row_groups[0].answer == "cannot say"
            if value is not None
            else not report.is_absent
        )
    assert probe(write(tmp_path / "same" / "day=1" / "day=1" / "a.parquet"), "day", [4]).is_absent


@each("folder, words", [("DAY=1", "DAY=1"), ("day=01", "day=01"), ("day=%31", "day=1")])
def test_how_a_folder_states_a_value(tmp_path: Path, folder: str, words: str) -> None:
    path = write(tmp_path / folder / "a.parquet")
    assert answer_of(path, "day", 1) == ("cannot say", REASON.format(words))


@each("text", ["2024-01-03", "2024-1-3", " 2024-01-03"])
def test_dates_that_duckdb_reads_in_the_names_of_folders(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / f"on={text}" / "a.parquet")
    for value in ("2024-01-03", "2024-01-04"):
        ((count,),) = duckdb.sql(
            f"select count(*) from read_parquet('{path}', hive_partitioning = true) where \"on\" "
            f"= '{value}'"
        ).fetchall()
        assert probe(path, "on", [value], strict=False).is_absent is (count == 0)
