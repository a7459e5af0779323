"""`check --select declared`: the filters that the properties of a table, or the configuration file,
declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.ducklakes import SmallLake
from support.lakes import small_files
from support.tables import each

ENABLED, FPP = (
    "write.parquet.bloom-filter-enabled.column.user_id",
    "write.parquet.bloom-filter-fpp.column.user_id",
)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    """A table of DuckLake, which has no such properties of its own, but keeps any."""
    lake = SmallLake(tmp_path, "sqlite")
    lake.add_file()
    return lake


def declare(lake: SmallLake, key: str, value: str) -> None:
    lake.insert("metadata", key=key, value=value, scope="table", scope_id=1)


@each(
    "size, properties, code",
    [
        ([], {FPP: "0.01"}, 0),
        ([], {FPP: "0.00001"}, 1),
        (["--ndv", "1000000"], {FPP: "0.01"}, 0),  # a table states no size: none is too large
        (["--ndv", "1000000"], {}, 0),
        ([], {FPP: "0.00001", "write.parquet.bloom-filter-max-bytes": "64"}, 0),
        ([], {FPP: "0.00001", "write.parquet.bloom-filter-ndv.column.user_id": "10"}, 0),
        ([], {"parquet.bloom.filter.fpp": "0.00001"}, 0),  # of another writer
    ],
)
def test_filters_that_are_weaker_than_declared(lake, capfd, size, properties, code):
    for key, value in {ENABLED: "true", **properties}.items():
        declare(lake, key, value)
    assert run(["add-filter", lake.events, "-c", "user_id", *size, "--in-place"]) == 0
    capfd.readouterr()
    assert run(["check", lake.events, "--select", "declared"]) == code
    assert ("deviating-filter" in capfd.readouterr().out) == bool(code)


@each("command", [["check"], ["check", "--select", "declared"], ["apply"]])
@each("path", ["lake", "lake/part-00000.parquet"])
def test_a_declared_column_that_no_file_has_is_an_error(
    command, path, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    small_files(tmp_path / "lake", 2)
    (tmp_path / "sbbf.toml").write_text('[[filters]]\npaths = "lake"\ncolumns = ["id", "nme"]\n')
    assert run([*command, path]) == 2
    assert (
        "no file has the column: there is no column 'nme'; did you mean name?"
        in capfd.readouterr().err
    )
