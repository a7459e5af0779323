"""Disks that are full, and systems that cannot copy: the file is the old one or the new one, whole."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sbbf_tool.errors import UnreadableError, WriteError
from sbbf_tool.storage import local
from sbbf_tool.storage.local import LocalSource, replace
from support.places import small_disk
from support.tables import each

OLD = os.urandom(400_000)
PIECES = [b"new " * 10_000, b"bytes"]
NEW = OLD + b"".join(PIECES)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(OLD)
    return path


def accept(draft: LocalSource) -> None:
    pass


def append(path: Path, target: Path | None = None) -> list[str]:
    with LocalSource(path) as source:
        return replace(source, os.fspath(target or path), source.size, PIECES, accept)


def assert_fails_and_leaves_no_trace(path: Path, reason: str, target: Path | None = None) -> None:
    with pytest.raises(WriteError) as caught:
        append(path, target)
    assert caught.value.exit_code == 5
    assert reason in caught.value.message
    assert caught.value.file == str(target or path)
    assert caught.value.hint == "the old file is untouched"
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == ["a.parquet"]


# Copying without the kernel's help


def cannot(code: int):
    def copy_file_range(*arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    return copy_file_range


@each("code", [errno.ENOSYS, errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.EIO])
def test_where_the_kernel_does_not_copy_bytes_are_copied(path, monkeypatch, code):
    monkeypatch.setattr(os, "copy_file_range", cannot(code))
    append(path)
    assert path.read_bytes() == NEW


@each("then", ["goes on", "stops", "fails"])
def test_where_the_kernel_copies_a_part_the_rest_follows(path, monkeypatch, then):
    copy, calls = os.copy_file_range, []

    def in_parts(source: int, target: int, count: int, from_: int, to: int) -> int:
        calls.append(count)
        if len(calls) > 3 and then != "goes on":
            return 0 if then == "stops" else cannot(errno.EXDEV)()
        return copy(source, target, min(count, 99_991), from_, to)

    monkeypatch.setattr(os, "copy_file_range", in_parts)
    append(path)
    assert path.read_bytes() == NEW
    assert len(calls) > 3


def test_writes_that_take_only_a_part_are_continued(path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:1021]))
    append(path)
    assert path.read_bytes() == NEW


def test_a_source_that_shrinks_while_it_is_copied_is_not_published(path, monkeypatch):
    def shrink(*arguments: object) -> int:
        os.truncate(path, 1000)
        return 0

    monkeypatch.setattr(os, "copy_file_range", shrink)
    with pytest.raises(UnreadableError, match="became shorter"):
        append(path)
    assert os.listdir(path.parent) == ["a.parquet"]


# Failing writes


def test_a_disk_that_is_full(tmp_path):
    with small_disk(tmp_path / "disk", "700k") as folder:
        path = folder / "a.parquet"
        path.write_bytes(OLD)
        assert_fails_and_leaves_no_trace(path, "no space left on device")


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@each("by_kernel", [True, False])
@each("limit", [100_000, len(OLD) + 100])
def test_a_limit_on_the_size_of_files(path, monkeypatch, by_kernel, limit):
    if not by_kernel:
        monkeypatch.delattr(os, "copy_file_range")
    with files_no_larger_than(limit):
        assert_fails_and_leaves_no_trace(path, "file too large")


def fails(code: int, *, unless=lambda *arguments: False):
    def fail(*arguments: object) -> None:
        if not unless(*arguments):
            raise OSError(code, os.strerror(code))

    return fail


@each("call", ["rename", "fchmod"])
def test_a_step_that_fails(path, monkeypatch, call):
    monkeypatch.setattr(os, call, fails(errno.EIO))
    assert_fails_and_leaves_no_trace(path, "input/output error")


def test_a_checksum_that_cannot_be_removed(path, monkeypatch):
    """With it, Spark could not read the new file."""
    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", lambda name: unlink(name) if not str(name).endswith(".crc") else fails(errno.EACCES)())
    path.with_name(".a.parquet.crc").write_bytes(b"crc")
    with pytest.raises(WriteError, match="permission denied"):
        append(path)
    assert path.read_bytes() == OLD
    assert sorted(os.listdir(path.parent)) == [".a.parquet.crc", "a.parquet"]


def test_a_failed_fsync_of_the_folder_is_reported_and_the_file_remains(path, monkeypatch):
    """The file has its name already: to call that a failure would be wrong, and so would be to say nothing."""
    monkeypatch.setattr(local, "sync_folder", fails(errno.EIO))
    (warning,) = append(path)
    assert "is in place, but may not survive a power failure: input/output error" in warning
    assert path.read_bytes() == NEW


def test_a_folder_that_cannot_be_synced_at_all_is_no_failure(path, monkeypatch):
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: fsync(fd) if os.path.isfile(f"/proc/self/fd/{fd}") else fails(errno.EINVAL)())
    assert append(path) == []
    assert path.read_bytes() == NEW
