"""Disks that are full, systems that cannot copy, processes that are killed: the file is the old one or the new one, whole."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sbbf_tool.errors import SbbfError, UnreadableError, WriteError
from sbbf_tool.storage import local
from sbbf_tool.storage.local import LocalSource, replace
from support.places import small_disk

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


CANNOT = [errno.ENOSYS, errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.EIO]


@pytest.mark.parametrize("code", CANNOT, ids=[errno.errorcode[code] for code in CANNOT])
def test_where_the_kernel_does_not_copy_bytes_are_copied(path, monkeypatch, code):
    monkeypatch.setattr(os, "copy_file_range", cannot(code))
    append(path)
    assert path.read_bytes() == NEW


def test_where_the_kernel_copies_nothing_bytes_are_copied(path, monkeypatch):
    monkeypatch.setattr(os, "copy_file_range", lambda *arguments: 0)
    append(path)
    assert path.read_bytes() == NEW


def test_where_the_system_has_no_such_call_bytes_are_copied(path, monkeypatch):
    monkeypatch.delattr(os, "copy_file_range")
    append(path)
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("then", ["goes on", "stops", "fails"])
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


def test_a_disk_that_is_full_elsewhere(path, tmp_path_factory):
    """Also where the data comes from another file system."""
    with small_disk(tmp_path_factory.mktemp("other") / "disk", "200k") as folder:
        assert_fails_and_leaves_no_trace(path, "no space left on device", folder / "out.parquet")
        assert os.listdir(folder) == []


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("by_kernel", [True, False])
@pytest.mark.parametrize("limit", [100_000, len(OLD) + 100], ids=["in the copy", "in the pieces"])
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


def test_content_that_does_not_reach_the_disk(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", fails(errno.EIO))
    assert_fails_and_leaves_no_trace(path, "input/output error")


def test_a_quota_that_is_used_up(path, monkeypatch):
    monkeypatch.setattr(os, "copy_file_range", cannot(errno.EDQUOT))
    assert_fails_and_leaves_no_trace(path, "quota")


@pytest.mark.parametrize("call", ["rename", "fchmod"])
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


# Processes that are killed

WRITER = """
import os, sys
from sbbf_tool.storage.local import LocalSource, replace

path, moment = sys.argv[1:]

def verify(written):
    if moment == "verifying":
        print("now", flush=True)
        sys.stdin.read()

def pieces():
    yield b"x" * 100_000
    if moment == "writing":
        print("now", flush=True)
        sys.stdin.read()
    yield b"y"

if moment != "for ever":
    with LocalSource(path) as source:
        replace(source, path, source.size, pieces(), verify)
while True:
    with LocalSource(path) as source:
        letter = b"b" if source.read(source.size - 1, 1) == b"a" else b"a"
        if letter == b"a":
            print("now", flush=True)
        replace(source, path, 0, [letter * 300_000], verify)
"""


def start(path: Path, moment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, path, moment], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("moment", ["writing", "verifying"])
def test_a_process_killed_in_the_middle_leaves_the_old_file_and_the_next_one_sweeps(path, moment):
    with start(path, moment) as writer:
        assert writer.stdout.readline() == b"now\n"
        writer.send_signal(signal.SIGKILL)
    assert path.read_bytes() == OLD
    remaining = [name for name in os.listdir(path.parent) if name != "a.parquet"]
    assert len(remaining) == 1
    assert remaining[0].startswith(".a.parquet.")
    assert append(path) == []
    assert path.read_bytes() == NEW
    assert os.listdir(path.parent) == ["a.parquet"]


@pytest.mark.timeout(60)
def test_a_process_that_lives_keeps_others_from_writing(path):
    with start(path, "verifying") as writer:
        assert writer.stdout.readline() == b"now\n"
        with pytest.raises(SbbfError, match="another process is writing this file"):
            append(path)
        writer.send_signal(signal.SIGKILL)
    assert append(path) == []


@pytest.mark.timeout(60)
def test_readers_see_a_whole_file_whenever_a_process_is_killed(path):
    when = random.Random(4)
    whole = {letter * 300_000 for letter in (b"a", b"b")}
    path.write_bytes(b"a" * 300_000)
    for _ in range(20):
        with start(path, "for ever") as writer:
            assert writer.stdout.readline() == b"now\n"
            until = time.monotonic() + when.uniform(0.001, 0.1)
            while time.monotonic() < until:
                assert path.read_bytes() in whole
            writer.send_signal(signal.SIGKILL)
        assert path.read_bytes() in whole
    append(path)
    assert os.listdir(path.parent) == ["a.parquet"]
