"""`sbbf verify` as a user meets it. What it says of each defect is in tests/golden."""

from __future__ import annotations

import shutil
from pathlib import Path

from sbbf_tool.cli import run


def test_exit_0_where_every_value_is_found(fixtures, capfd):
    assert run(["verify", str(fixtures / "pyarrow-filters.parquet")]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[-1].endswith("pyarrow-filters.parquet: 36 of 36 filters verified")
    assert err == ""


def test_exit_1_where_a_filter_has_false_negatives(fixtures, capfd):
    assert run(["verify", str(fixtures / "spark-boolean.parquet")]) == 1
    out = capfd.readouterr().out
    assert "error: empty-boolean-filter" in out
    assert "0 of 4 filters verified" in out


def test_exit_3_where_a_file_cannot_be_read(fixtures, tmp_path, capfd):
    (tmp_path / "bad.parquet").write_text("no Parquet file, but long enough")
    assert run(["verify", str(tmp_path / "bad.parquet"), str(fixtures / "spark-boolean.parquet"), str(tmp_path / "nothere")]) == 3
    out, err = capfd.readouterr()
    assert "0 of 4 filters verified" in out
    assert len(err.splitlines()) == 2


def test_exit_3_where_pages_cannot_be_decoded(fixtures, tmp_path, capfd):
    path = Path(shutil.copy(fixtures / "spark-int96.parquet", tmp_path))
    data = bytearray(path.read_bytes())
    data[4:500] = b"\xff" * 496
    path.write_bytes(data)
    assert run(["verify", str(path)]) == 3
    out, err = capfd.readouterr()
    assert "the pages cannot be decoded" in out
    assert err.startswith(f"sbbf: {path}: column id, row group 0: the pages cannot be decoded")
