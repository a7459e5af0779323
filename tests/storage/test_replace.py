"""`replace`: the new file in one step, as much like the old one as the system allows, and nothing
else in the folder."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage import leftovers
from sbbf_tool.storage.local import replace_local
from sbbf_tool.storage.source import LocalSource
from storage.replacing import NEW, OLD, accept, append, failing, names, set_attribute
from support.places import needs_root
from support.tables import each


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(OLD)
    return path


# Content


@each("keep", [0, 1, 1000, len(OLD)])
def test_the_kept_bytes_and_the_pieces_in_order(path, keep):
    pieces = [
        b"one",
        bytearray(b"two"),
        memoryview(b"-three-")[1:-1],
        b"",
        memoryview(bytes(8)).cast("Q"),
    ]
    with LocalSource(path) as source:
        assert replace_local(source, str(path), keep, pieces, accept) == []
    assert path.read_bytes() == OLD[:keep] + b"onetwothree" + bytes(8)
    assert names(path.parent) == ["a.parquet"]


def test_the_verified_bytes_are_the_published_bytes(path):
    calls = []

    def verify(draft: LocalSource) -> None:
        calls.append((os.path.basename(draft.name), draft.read(0, draft.size)))
        assert path.read_bytes() == OLD

    append(path, verify=verify)
    ((name, content),) = calls
    assert content == path.read_bytes() == NEW
    assert name.startswith(".")
    assert not name.endswith(".parquet"), "readers of the folder must pass it over"


def test_a_file_that_verification_refuses_is_not_published(path):
    def refuse(draft: LocalSource) -> None:
        raise UnreadableError("it is not what was meant")

    for target in (path, path.with_name("b.parquet")):
        with pytest.raises(UnreadableError, match="not what was meant"):
            append(path, target, verify=refuse)
    assert path.read_bytes() == OLD
    assert names(path.parent) == ["a.parquet"]


# As much like the old file as can be


@each("mode", [0o600, 0o644, 0o640, 0o664, 0o444, 0o755, 0o4711])
def test_a_copy_has_the_mode(path, mode):
    path.chmod(mode)
    append(path, path.with_name("b.parquet"))
    append(path)
    for name in ("a.parquet", "b.parquet"):
        assert stat.S_IMODE(path.with_name(name).stat().st_mode) == mode


@needs_root
def test_a_copy_has_the_owner(path):
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    assert append(path) == []
    assert append(path, path.with_name("b.parquet")) == []
    for name in ("a.parquet", "b.parquet"):
        status = path.with_name(name).stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 23456, 0o640)


def test_a_copy_has_the_extended_attributes(path):
    set_attribute(path, "user.origin", b"s3://bucket/key")
    set_attribute(path, "user.empty", b"")
    append(path, path.with_name("b.parquet"))
    append(path)
    for name in ("a.parquet", "b.parquet"):
        copy = path.with_name(name)
        assert {
            key: os.getxattr(copy, key) for key in os.listxattr(copy) if key.startswith("user.")
        } == {
            "user.origin": b"s3://bucket/key",
            "user.empty": b"",
        }


def test_a_warning_reports_a_missing_attribute(path, monkeypatch):
    set_attribute(path, "user.origin", b"x")
    monkeypatch.setattr(os, "setxattr", failing(errno.ENOTSUP))
    (warning,) = append(path)
    assert "these attributes could not be kept: attribute user.origin" in warning
    assert path.read_bytes() == NEW


# Links


def test_a_symbolic_link_is_followed_and_stays_one(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    first, second = tmp_path / "elsewhere" / "first.parquet", tmp_path / "second.parquet"
    first.symlink_to("../a.parquet")
    second.symlink_to("elsewhere/first.parquet")
    append(second)
    assert second.is_symlink()
    assert os.readlink(first) == "../a.parquet"
    assert path.read_bytes() == NEW
    assert not path.is_symlink()
    assert names(tmp_path / "elsewhere") == ["first.parquet"]


def test_hard_links_are_warned_of(path):
    other_path = path.with_name("other.parquet")
    os.link(path, other_path)
    (warning,) = append(path)
    assert "has 2 hard links; the other names keep the old content" in warning
    assert path.read_bytes() == NEW
    assert other_path.read_bytes() == OLD
    assert append(other_path, path.with_name("b.parquet")) == []


# Hadoop's checksums


def test_a_stale_checksum_goes_with_the_old_bytes(path):
    sidecar, foreign = path.with_name(".a.parquet.crc"), path.with_name(".other.parquet.crc")
    for sidecar_file in (sidecar, foreign):
        sidecar_file.write_bytes(b"crc")
    append(path)
    assert names(path.parent) == [".other.parquet.crc", "a.parquet"]


def test_a_checksum_stays_as_long_as_the_old_bytes_do(path):
    sidecar = path.with_name(".a.parquet.crc")
    sidecar.write_bytes(b"crc")

    def refuse(draft: LocalSource) -> None:
        assert sidecar.exists()
        raise UnreadableError("no")

    with pytest.raises(UnreadableError):
        append(path, verify=refuse)
    assert sidecar.exists()


# Names

NAMES = {
    "250 bytes": b"n" * 242 + b".parquet",
    "255 bytes": b"n" * 247 + b".parquet",
    "255 bytes of two each": "é".encode() * 123 + b"x.parquet",
    "a newline": b"two\nlines.parquet",
    "not utf-8": b"\xff\xfe\x80.parquet",
    "nothing but bytes above 127": b"\xff" * 255,
    "spaces and quotes": b' "it\'s" .parquet',
    "starts with a dash": b"-n.parquet",
    "starts with a dot": b".hidden.parquet",
    "pattern": b"a[0-9]*?.parquet",
}


@each("name", NAMES)
def test_any_name_that_a_file_can_have(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(OLD)
    temporary = f"{leftovers._stem(path.name)}0123456789ab{leftovers.TEMPORARY_SUFFIX}"
    leftover = path.with_name(temporary)
    leftover.write_bytes(b"of a killed process")
    assert append(path) == []
    assert path.read_bytes() == NEW
    assert os.listdir(os.fsencode(tmp_path)) == [name]
