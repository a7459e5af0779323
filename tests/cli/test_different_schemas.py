"""Commands over files with different schemas: what is counted, printed and returned where some
files lack the column."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from support.tables import each

NOTE = ["sbbf: column user_id: INT64 in 1 file, BYTE_ARRAY STRING in 1 file, missing in 2 files"]


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lake" / "dt=1").mkdir(parents=True)
    (tmp_path / "lake" / "dt=2").mkdir()
    numbers = range(100)
    for name, columns in {
        "dt=1/a": {"id": numbers, "user_id": numbers},
        "dt=1/b": {"id": numbers, "user_id": [f"{number}" for number in numbers]},
        "dt=2/c": {"id": numbers},
        "dt=2/d": {"id": numbers, "userId": numbers},
    }.items():
        pq.write_table(pa.table(columns), tmp_path / "lake" / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    assert run(["add-filter", "lake/dt=1", "-c", "user_id", "--in-place", "-q"]) == 0
    return tmp_path / "lake"


@each(
    "line, code",
    [
        ("add-filter lake -c user_id --in-place", 0),
        ("verify lake -c user_id", 0),
        ("check lake --require user_id", 0),
        ("probe lake user_id 5000", 1),
        ("probe lake user_id 5", 0),
        ("explain lake user_id 5000", 1),
        ("inspect lake -c user_id", 0),
        ("resize lake -c user_id --fpp 0.9 -n", 0),
        ("repair lake -c user_id --in-place", 0),
        ("remove-filter lake -c user_id -n", 0),
    ],
)
def test_files_without_the_column_are_not_applicable(line, code, capfd):
    capfd.readouterr()
    assert run(line.split()) == code
    out, err = capfd.readouterr()
    assert [
        text for text in err.splitlines() if text.startswith(("sbbf: column", "sbbf: 1 file"))
    ] == NOTE
    if not line.startswith("check"):
        assert "2 not applicable" in out or "2 of the files lack the column" in out
    assert run([*line.split(), "--format", "json"]) == code
    summary = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert summary["not_applicable"] == (0 if line.startswith(("check", "probe", "explain")) else 2)
    assert summary["columns"] == [
        {"name": "user_id", "types": {"INT64": 1, "BYTE_ARRAY STRING": 1}, "missing": 2}
    ]


@each(
    "line, code",
    [
        ("add-filter lake -c user_id --in-place --strict", 2),
        ("verify lake -c user_id --strict", 2),
        ("check lake --require user_id --strict", 1),
        ("probe lake user_id 5000 --strict", 2),
        ("explain lake user_id 5000 --strict", 2),
        ("inspect lake -c user_id --strict", 2),
        ("resize lake -c user_id --fpp 0.9 -n --strict", 2),
        ("repair lake -c user_id --in-place --strict", 2),
        ("remove-filter lake -c user_id --in-place --strict", 2),
    ],
)
def test_strict_restores_the_error(line, code, capfd):
    capfd.readouterr()
    assert run(line.split()) == code
    if not line.startswith("check"):
        assert capfd.readouterr().err.count("there is no column 'user_id'") == 2


def test_files_do_not_lack_a_column_that_their_folders_state(capfd):
    assert run(["probe", "lake", "dt", "1"]) == 0
    assert capfd.readouterr().out.endswith("; 2 files cannot hold any of them\n")
