"""Where the keys of encrypted files are read from: a file, or the environment. What they say is tested in tests/parquet."""

from __future__ import annotations

import json
import os
from base64 import b64encode

import pytest

from sbbf_tool.cli import run
from sbbf_tool.editing.edit import Edit
from sbbf_tool.encryption.modules import Key
from sbbf_tool.errors import UsageError
from sbbf_tool.file.keys import read_keys
from support.tables import each

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


@each("mode, readers", [(0o644, "every user"), (0o640, "its group"), (0o604, "every user"), (0o600, ""), (0o400, "")])
def test_a_file_readable_by_other_users_causes_a_warning(mode, readers, fixtures, tmp_path, monkeypatch, capfd):
    path = tmp_path / "my keys.json"
    path.write_text(json.dumps({"footer_key": HEX}))
    path.chmod(mode)
    file = str(fixtures / "pyarrow-filters.parquet")
    warning = f"sbbf: warning: {path}: {readers} can read the keys (mode {mode:04o}); run chmod 600 '{path}'\n"
    assert run(["inspect", file, "--format", "json", "--keys", str(path)]) == 0
    assert capfd.readouterr().err == (warning if readers else "")
    monkeypatch.setenv("SBBF_KEYS_FILE", str(path))
    assert run(["inspect", file, file]) == 0
    assert capfd.readouterr().err == (warning if readers else "")


def test_keys_from_a_pipe_get_no_warning(fixtures, capfd):
    reader, writer = os.pipe()
    os.write(writer, json.dumps({"footer_key": HEX}).encode())
    os.close(writer)
    assert run(["inspect", str(fixtures / "pyarrow-filters.parquet"), "--keys", f"/dev/fd/{reader}"]) == 0
    os.close(reader)
    assert capfd.readouterr().err == ""


def test_a_repr_shows_no_key():
    assert HEX not in repr(Edit(keys={"footer_key": HEX}))
