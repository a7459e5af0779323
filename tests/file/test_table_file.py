"""Encrypted files of a table: changed with their keys, and skipped without them or where a copy would lose its key material."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from sbbf_tool.cli import run

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def table(fixtures: Path, tmp_path: Path) -> Path:
    """A Delta table whose one file is replaced by an encrypted one."""
    folder = tmp_path / "delta"
    deltalake.write_deltalake(folder, pa.table({"id": [1], "name": ["a"]}))
    (file,) = folder.glob("*.parquet")
    content = (fixtures / "encrypted" / "java-columns.parquet.encrypted").read_bytes()
    file.write_bytes(content)
    (log,) = (folder / "_delta_log").glob("*.json")
    log.write_text(re.sub(r'"size":\d+', f'"size":{len(content)}', log.read_text()))
    return folder


def test_with_the_keys_a_copy_is_committed(table: Path, fixtures: Path, capfd):
    keys = ["--keys", str(fixtures / "encrypted" / "keys.json")]
    assert run(["add-filter", str(table), "-c", "name", "--rebuild", "all", "--in-place", *keys]) == 0
    assert "1 file: 1 done" in capfd.readouterr().out
    assert run(["verify", str(table), *keys]) == 0


def test_a_copy_that_would_lose_its_key_material_is_skipped(table: Path, fixtures: Path, capfd):
    (file,) = table.glob("*.parquet")
    (table / f"_KEY_MATERIAL_FOR_{file.name}.json").write_text("{}")
    keys = ["--keys", str(fixtures / "encrypted" / "keys.json")]
    run(["add-filter", str(table), "-c", "id", "--rebuild", "all", "--in-place", *keys])
    assert "readers look for its keys in a file that is named after it" in "".join(capfd.readouterr())
    assert list(table.glob("*.parquet")) == [file]
