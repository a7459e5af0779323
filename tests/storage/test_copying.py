"""A copy that a thread makes while filters are built, and clones of macOS: the same file, and
nothing left if it is not used."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import threading
from pathlib import Path

import pytest

from sbbf_tool import RefusedError, SbbfError, add_filters
from sbbf_tool.editing import open_edit
from sbbf_tool.storage import copying, system_calls
from sbbf_tool.storage.copying import BegunCopy
from sbbf_tool.storage.leftovers import TEMPORARY_SUFFIX
from sbbf_tool.storage.local import begin_copy, replace_local
from sbbf_tool.storage.source import LocalSource
from support.samples import write_events
from support.tables import each

OLD = bytes(range(256)) * 1000


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(BegunCopy, "MIN_BYTES", 1)
    monkeypatch.setattr(copying, "_COPY_BYTES", 1000)
    monkeypatch.setattr(copying, "_READ_BYTES", 700)


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "a.parquet"
    path.write_bytes(OLD)
    return path


def watch_kernel(monkeypatch, before=lambda: None) -> list[tuple[str, int, int]]:
    """Return a list that will have the thread, the offset and the number of bytes of each copy by
    the kernel."""
    copies: list[tuple[str, int, int]] = []
    really_copy = os.copy_file_range

    def copy(source_fd: int, fd: int, length: int, start: int, to: int) -> int:
        before()
        done = really_copy(source_fd, fd, length, start, to)
        copies.append((threading.current_thread().name, start, done))
        return done

    monkeypatch.setattr(os, "copy_file_range", copy)
    return copies


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "sbbf-copy"]


def replace_with(path: Path, count: int, keep: int, target: Path | None = None) -> None:
    with LocalSource(path) as source, begin_copy(source, str(target or path), count) as begun:
        assert begun is not None
        replace_local(source, str(target or path), keep, [b"new bytes"], lambda new: None, begun)


@each("keep", [100_500, 150_000, len(OLD)])
def test_each_byte_is_copied_once(path, monkeypatch, keep):
    copies = watch_kernel(monkeypatch)
    replace_with(path, 100_500, keep)
    assert path.read_bytes() == OLD[:keep] + b"new bytes"
    assert sum(length for _, _, length in copies) == keep
    by_thread = [(start, length) for name, start, length in copies if name == "sbbf-copy"]
    assert sum(length for _, length in by_thread) == 100_500
    assert max(start + length for start, length in by_thread) == 100_500
    assert (os.listdir(path.parent), threads()) == (["a.parquet"], [])


@each("keep", [0, 700, 100_499])
def test_a_copy_of_too_many_bytes_is_not_used(path, keep):
    replace_with(path, 100_500, keep)
    assert path.read_bytes() == OLD[:keep] + b"new bytes"
    assert os.listdir(path.parent) == ["a.parquet"]


@each("answer", [errno.EXDEV, errno.ENOSYS, errno.EIO, 0])
def test_without_the_kernel_the_thread_reads_and_writes(path, monkeypatch, answer):
    def copy(*arguments: object) -> int:
        if answer:
            raise OSError(answer, os.strerror(answer))
        return 0

    monkeypatch.setattr(os, "copy_file_range", copy)
    replace_with(path, 100_500, 150_000)
    assert path.read_bytes() == OLD[:150_000] + b"new bytes"


def test_an_interrupt_while_the_copy_is_awaited_waits_for_the_thread(path, monkeypatch):
    """Otherwise the thread would write to a descriptor that may already be another file's."""
    is_interrupted, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        assert is_interrupted.wait(30)
        assert go_on.wait(30)

    def interrupt() -> None:
        with (
            LocalSource(path) as source,
            begin_copy(source, str(path), len(OLD)) as begun,
            monkeypatch.context() as patch,
        ):
            patch.setattr(
                begun._is_finished, "wait", lambda seconds: signal.raise_signal(signal.SIGINT)
            )
            try:
                begun.finish()
            finally:
                patch.undo()
                is_interrupted.set()
                threading.Timer(0.2, go_on.set).start()

    copies = watch_kernel(monkeypatch, wait)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert sum(length for _, _, length in copies) == 1000
    assert (os.listdir(path.parent), threads()) == (["a.parquet"], [])


def test_an_error_while_filters_are_built_leaves_no_copy(tmp_path, monkeypatch):
    source = write_events(tmp_path / "a.parquet")

    def build(*arguments: object) -> None:
        assert len(os.listdir(tmp_path)) == 2
        raise RefusedError("no", file=str(source))

    monkeypatch.setattr(open_edit, "build_filters", build)
    with pytest.raises(RefusedError):
        add_filters(source, ["id"], in_place=True)
    assert (os.listdir(tmp_path), threads()) == (["a.parquet"], [])


def test_a_file_that_changes_after_it_was_copied_is_not_replaced(tmp_path, monkeypatch):
    source = write_events(tmp_path / "a.parquet")
    really_build = open_edit.build_filters

    def build(*arguments: object) -> object:
        filters = really_build(*arguments)
        with open(source, "r+b") as stream:
            stream.write(b"PAR1")
        return filters

    monkeypatch.setattr(open_edit, "build_filters", build)
    old = source.read_bytes()
    with pytest.raises(SbbfError, match="changed"):
        add_filters(source, ["id"], in_place=True)
    assert source.read_bytes() == old
    assert os.listdir(tmp_path) == ["a.parquet"]


@each("offset", [4, 100])
def test_a_wrong_byte_in_the_pages_of_the_copy_is_detected(tmp_path, monkeypatch, offset):
    source = write_events(tmp_path / "a.parquet")
    really_finish = BegunCopy.finish

    def finish(self: BegunCopy) -> int:
        count = really_finish(self)
        byte = os.pread(self.fd, 1, offset)
        os.pwrite(self.fd, bytes([byte[0] ^ 1]), offset)
        return count

    monkeypatch.setattr(BegunCopy, "finish", finish)
    old = source.read_bytes()
    with pytest.raises(SbbfError, match="not those of the old file"):
        add_filters(source, ["id", "name"], in_place=True)
    assert source.read_bytes() == old
    assert os.listdir(tmp_path) == ["a.parquet"]


F_FULLFSYNC = 51


class Disk:
    """`fcntl` and `fsync` of macOS, which record their calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reason: int | None = None) -> None:
        self.calls: list[str] = []
        self._reason = reason
        monkeypatch.setattr(system_calls, "_FULL_SYNC", F_FULLFSYNC)
        monkeypatch.setattr(fcntl, "fcntl", self._fcntl)
        monkeypatch.setattr(os, "fsync", lambda fd: self.calls.append("fsync"))

    def _fcntl(self, fd: int, command: int) -> int:
        assert command == F_FULLFSYNC
        self.calls.append("full")
        if self._reason is not None:
            raise OSError(self._reason, os.strerror(self._reason))
        return 0


def test_a_file_is_written_to_the_disk_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    with LocalSource(path) as source:
        replace_local(source, str(path), len(OLD), [b"new"], lambda file: None)
    assert disk.calls == ["full", "full"], "the file and its folder"
    assert path.read_bytes() == OLD + b"new"


@each("reason", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_fsync_is_used_where_the_file_system_knows_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    disk = Disk(monkeypatch, reason)
    with LocalSource(path) as source:
        replace_local(source, str(path), len(OLD), [b"new"], lambda file: None)
    assert disk.calls == ["full", "fsync"] * 2


class Clones:
    """`fclonefileat` of macOS on a file system with clones, which records the names of the new
    files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, works: bool = True) -> None:
        self.names: list[str] = []
        self._works = works
        monkeypatch.setattr(system_calls, "_find_function", {"fclonefileat": self._clone}.get)
        monkeypatch.setattr(os, "copy_file_range", lambda *more: pytest.fail("bytes were copied"))
        monkeypatch.setattr(LocalSource, "read", lambda *more: pytest.fail("bytes were read"))

    def _clone(self, source: int, folder: int, name: bytes, flags: int) -> int:
        path = Path(os.fsdecode(name))
        assert (folder, flags, path.exists()) == (system_calls._AT_FDCWD, 2, False)
        self.names.append(path.name)
        if not self._works:
            return -1
        # Not by shutil.copy, which calls copy_file_range since Python 3.15.
        path.write_bytes(Path(f"/proc/self/fd/{source}").read_bytes())
        path.chmod(os.fstat(source).st_mode & 0o7777)
        return 0


@each("keep", [len(OLD), len(OLD) - 7, 0])
@each("mode", [0o640, 0o600])
def test_the_temporary_file_is_a_clone_cut_to_its_length(
    path: Path, monkeypatch: pytest.MonkeyPatch, keep: int, mode: int
) -> None:
    path.chmod(mode)
    clones = Clones(monkeypatch)
    with LocalSource(path) as source:
        replace_local(source, str(path), keep, [b"new"], lambda file: None)
    assert path.read_bytes() == OLD[:keep] + b"new"
    assert path.stat().st_mode & 0o777 == mode
    assert [name.endswith(TEMPORARY_SUFFIX) for name in clones.names] == [True]
    assert os.listdir(path.parent) == ["a.parquet"]
