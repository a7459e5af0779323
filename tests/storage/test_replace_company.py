"""`replace` where others are: writers of the same file, users with fewer rights, and what dead processes left."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.storage import temporary
from sbbf_tool.storage.local import LocalSource, replace
from sbbf_tool.storage.temporary import sweep
from support.places import open_folder, without_privileges
from support.tables import each

OLD = bytes(range(256)) * 1000
NEW = OLD + b"new bytes"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(OLD)
    return path


def accept(draft: LocalSource) -> None:
    pass


def append(path: Path, target: Path | None = None, pieces: Iterable[bytes] = (b"new ", b"bytes"), verify=accept) -> list[str]:
    """Replace `path` by itself with these pieces behind it."""
    with LocalSource(path) as source:
        return replace(source, os.fspath(target or path), source.size, pieces, verify)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def failing(code: int):
    def fail(*arguments: object, **more: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


# Who else is there


def test_a_second_writer_of_a_file_is_refused(path):
    refused = []

    def write_too(draft: LocalSource) -> None:
        with pytest.raises(RefusedError, match="another process is writing this file"):
            append(path)
        refused.append(draft.name)

    append(path, verify=write_too)
    assert len(refused) == 1
    assert path.read_bytes() == NEW


def test_the_second_of_two_writers_to_a_new_name_is_refused(path):
    out = path.with_name("out")
    with pytest.raises(RefusedError, match="the target exists"):
        append(path, out, pieces=[b"late"], verify=lambda draft: append(path, out) and None)
    assert out.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet", "out"]


def test_a_reader_of_a_replaced_file_may_not_replace_it_again(path):
    with LocalSource(path) as late:
        append(path)
        with pytest.raises(RefusedError, match="the file changed"):
            replace(late, str(path), late.size, [b"late"], accept)
    assert path.read_bytes() == NEW


@each("precious", [False, True])
def test_file_systems_without_hard_links(path, monkeypatch, precious):
    out = path.with_name("out")
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    if precious:
        with pytest.raises(RefusedError, match="the target exists"):
            append(path, out, verify=lambda draft: out.write_bytes(b"precious") and None)
        assert out.read_bytes() == b"precious"
    else:
        append(path, out)
        assert out.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet", "out"]


# Permissions


def test_a_file_that_may_not_be_written_is_refused():
    with open_folder() as folder, without_privileges():
        path = folder / "a.parquet"
        path.write_bytes(OLD)
        path.chmod(0o444)
        with pytest.raises(RefusedError) as caught:
            append(path)
        assert "no permission" in caught.value.message
        assert "chmod u+w" in caught.value.hint
        assert path.read_bytes() == OLD
        append(path, folder / "b.parquet")
        assert names(folder) == ["a.parquet", "b.parquet"]


def test_a_folder_that_may_not_be_written_is_refused():
    with open_folder() as folder, without_privileges():
        path = folder / "closed" / "a.parquet"
        path.parent.mkdir()
        path.write_bytes(OLD)
        path.parent.chmod(0o555)
        for target in (path, path.with_name("b.parquet")):
            with pytest.raises(RefusedError) as caught:
                append(path, target)
            assert "cannot create a file" in caught.value.message
            assert caught.value.file == str(target)
            assert caught.value.hint == "write the result to another file"
        append(path, folder / "b.parquet")
        assert names(path.parent) == ["a.parquet"]
        path.parent.chmod(0o755)


def test_a_file_that_may_not_be_read_is_unreadable():
    with open_folder() as folder, without_privileges():
        path = folder / "a.parquet"
        path.write_bytes(OLD)
        path.chmod(0)
        with pytest.raises(UnreadableError, match="permission denied"):
            LocalSource(path)


# Sweeping


def test_what_dead_processes_left_is_swept_and_nothing_else(path):
    dead = f".a.parquet.0123456789ab{temporary.TEMPORARY_SUFFIX}"
    foreign_files = [
        f".a.parquet.notes{temporary.TEMPORARY_SUFFIX}",
        f".a.parquet.b.0123456789ab{temporary.TEMPORARY_SUFFIX}",
        f".b.parquet.0123456789ab{temporary.TEMPORARY_SUFFIX}",
        f"a.parquet.0123456789ab{temporary.TEMPORARY_SUFFIX}",
        ".a.parquet.0123456789ab",
        "a.parquet.sbbf-tmp",
    ]
    for name in (dead, *foreign_files):
        path.with_name(name).write_bytes(b"x")
    append(path)
    assert names(path.parent) == sorted(["a.parquet", *foreign_files])


def test_what_a_living_process_writes_is_not_swept(path):
    results = []

    def sweep_meanwhile(draft: LocalSource) -> None:
        sweep(str(path))
        results.append(os.path.exists(draft.name))

    append(path, verify=sweep_meanwhile)
    assert results == [True]
    assert path.read_bytes() == NEW


def test_a_temporary_file_that_was_swept_before_it_was_locked_is_created_again(path, monkeypatch):
    lock, swept = fcntl.flock, []

    def sweep_first(fd: int, how: int) -> None:
        name = os.readlink(f"/proc/self/fd/{fd}")
        if name.endswith(temporary.TEMPORARY_SUFFIX) and not swept:
            swept.append(name)
            os.unlink(name)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    append(path)
    assert swept
    assert path.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet"]


@pytest.mark.timeout(10)
@each("kind", ["link", "dangling link", "loop", "fifo", "folder"])
def test_files_of_other_users_under_such_names_are_not_touched(path, monkeypatch, kind):
    planted, victim = path.with_name(f".a.parquet.0123456789ab{temporary.TEMPORARY_SUFFIX}"), path.with_name("victim")
    if kind == "fifo":
        os.mkfifo(planted)
    elif kind == "folder":
        planted.mkdir()
    else:
        planted.symlink_to(planted if kind == "loop" else victim)
        if kind == "link":
            victim.write_bytes(b"x")
    paths: list[object] = []
    really_open = os.open
    monkeypatch.setattr(os, "open", lambda name, *more, **options: paths.append(name) or really_open(name, *more, **options))
    append(path)
    assert str(planted) not in map(str, paths)
    assert os.path.lexists(planted)
    assert path.read_bytes() == NEW


# Holes


@each("by_kernel", [True, False])
@each("data", [(), (0,), (20,), (0, 31), (5, 6, 17)])
def test_a_copy_has_the_holes_of_its_source(path, monkeypatch, data, by_kernel):
    """A file of 4 MiB, of which only some have content; the last bytes are always such."""
    if not by_kernel:
        monkeypatch.setattr(os, "copy_file_range", failing(errno.EXDEV))
    with open(path, "wb") as stream:
        for place in data:
            os.pwrite(stream.fileno(), os.urandom(1 << 17), place << 17)
        os.ftruncate(stream.fileno(), 4 << 20)
    size = path.stat().st_blocks * 512
    if size >= 4 << 20:
        pytest.skip("this file system has no holes")
    for target in (path.with_name("b.parquet"), path):
        old = path.read_bytes()
        append(path, target)
        assert target.read_bytes() == old + b"new bytes"
        assert target.stat().st_blocks * 512 <= size + (1 << 17)


def test_a_copy_of_a_part_ends_within_data_and_within_holes(path):
    with open(path, "wb") as stream:
        os.pwrite(stream.fileno(), os.urandom(1 << 20), 1 << 20)
        os.ftruncate(stream.fileno(), 4 << 20)
    old = path.read_bytes()
    for keep in (0, 1, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, 2 << 20, 3 << 20, 4 << 20):
        out = path.with_name(f"out{keep}")
        with LocalSource(path) as source:
            replace(source, str(out), keep, [b"new"], accept)
        assert out.read_bytes() == old[:keep] + b"new"
