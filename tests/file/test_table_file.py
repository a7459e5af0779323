"""Keys, where they come from, and encrypted files of a table: skipped where a copy would lose its
key material."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pytest

from sbbf_tool.cli import run
from sbbf_tool.editing.edit import Edit
from sbbf_tool.encryption.modules import Key
from sbbf_tool.errors import UsageError
from sbbf_tool.file.keys import read_keys
from support.tables import each

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
    assert (
        run(["add-filter", str(table), "-c", "name", "--rebuild", "all", "--in-place", *keys]) == 0
    )
    assert "1 file: 1 done" in capfd.readouterr().out
    assert run(["verify", str(table), *keys]) == 0


def test_a_copy_that_would_lose_its_key_material_is_skipped(table: Path, fixtures: Path, capfd):
    (file,) = table.glob("*.parquet")
    (table / f"_KEY_MATERIAL_FOR_{file.name}.json").write_text("{}")
    keys = ["--keys", str(fixtures / "encrypted" / "keys.json")]
    run(["add-filter", str(table), "-c", "id", "--rebuild", "all", "--in-place", *keys])
    assert "readers look for its keys in a file that is named after it" in "".join(
        capfd.readouterr()
    )
    assert list(table.glob("*.parquet")) == [file]


FIRST, SECOND = bytes(range(16)), bytes(range(32))
HEX, BASE64 = FIRST.hex(), b64encode(SECOND).decode()


def test_from_a_file_or_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"footer_key": HEX}))
    assert read_keys(None) is None
    monkeypatch.setenv("SBBF_KEYS", json.dumps({"footer_key": BASE64}))
    assert read_keys(None).footer == Key(SECOND)
    monkeypatch.setenv("SBBF_KEYS_FILE", str(path))
    assert read_keys(None).footer == Key(FIRST)
    assert read_keys(None).path == str(path)
    with pytest.raises(UsageError, match=r"nothing\.json: the keys cannot be read: no such file"):
        read_keys(str(tmp_path / "nothing.json"))


@each(
    "mode, readers",
    [(0o644, "every user"), (0o640, "its group"), (0o604, "every user"), (0o600, ""), (0o400, "")],
)
def test_a_file_readable_by_other_users_causes_a_warning(
    mode, readers, fixtures, tmp_path, monkeypatch, capfd
):
    path = tmp_path / "my keys.json"
    path.write_text(json.dumps({"footer_key": HEX}))
    path.chmod(mode)
    file = str(fixtures / "pyarrow-filters.parquet")
    warning = (
        f"sbbf: warning: {path}: {readers} can read the keys (mode {mode:04o}); run "
        f"chmod 600 '{path}'\n"
    )
    assert run(["inspect", file, "--format", "json", "--keys", str(path)]) == 0
    assert capfd.readouterr().err == (warning if readers else "")
    monkeypatch.setenv("SBBF_KEYS_FILE", str(path))
    assert run(["inspect", file, file]) == 0
    assert capfd.readouterr().err == (warning if readers else "")


def test_keys_from_a_pipe_get_no_warning(fixtures, capfd):
    reader, writer = os.pipe()
    os.write(writer, json.dumps({"footer_key": HEX}).encode())
    os.close(writer)
    assert (
        run(["inspect", str(fixtures / "pyarrow-filters.parquet"), "--keys", f"/dev/fd/{reader}"])
        == 0
    )
    os.close(reader)
    assert capfd.readouterr().err == ""


def test_a_repr_shows_no_key():
    assert HEX not in repr(Edit(keys={"footer_key": HEX}))
