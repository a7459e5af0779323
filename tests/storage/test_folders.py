"""Many files in local folders, reports and the like: whole or not there, and nothing is left beside
them."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli.formats import Conclusion, Item, View, choose_outputs
from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.reports.rows import OK, Row
from sbbf_tool.storage import whole
from sbbf_tool.storage.folders import LocalFolders
from sbbf_tool.storage.leftovers import TEMPORARY_SUFFIX, open_locked, temporary_path
from sbbf_tool.storage.whole import write_whole
from sbbf_tool.verbs.add_filter import AddReport
from support.places import needs_root, open_folder, small_disk, without_privileges
from support.tables import each


@pytest.fixture
def files() -> LocalFolders:
    return LocalFolders()


def test_a_name_that_is_taken_stays_as_it_is(files: LocalFolders, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("a", "dangling"):
        with pytest.raises(FileExistsError):
            files.create(str(tmp_path / name), b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["a", "dangling"]


@each("url", ["s3://bucket/a", "hdfs://namenode:8020/a", "x-y.z+1://a"])
def test_a_url_of_another_store_is_no_local_path(files: LocalFolders, url: str) -> None:
    for call in (files.read, files.list, files.resolve):
        with pytest.raises(OSError, match="only local folders") as raised:
            call(url)
        assert raised.value.errno == errno.ENOTSUP


def test_a_pipe_is_not_waited_for(files: LocalFolders, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            files.read(str(tmp_path / name))


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    dead, alive = (temporary_path(str(tmp_path / "other")) for _ in range(2))
    os.close(open_locked(dead))
    fd = open_locked(alive)
    foreign = tmp_path / ".someone.tmp"
    foreign.touch()
    files = LocalFolders()
    files.create(str(tmp_path / "a"), b"abc")
    assert not os.path.exists(dead)
    assert os.path.exists(alive)
    assert foreign.exists()
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


@each("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_nothing_is_created(
    files: LocalFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def link(*paths: str) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(PermissionError, match="no hard links"):
        files.create(str(tmp_path / "a"), b"abc")
    assert os.listdir(tmp_path) == []


@each("call", ["write", "fsync", "link"])
def test_a_call_that_fails_leaves_nothing_behind(
    files: LocalFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error"):
        files.create(str(tmp_path / "a"), b"abc")
    assert os.listdir(tmp_path) == []


ROW = Row("a.parquet", OK, None, 0, 1.0)


def save_report(path: Path, rows: int = 1) -> None:
    view = View[AddReport]()
    view.row, view.is_single, view.has_rows_of_files = Row[AddReport], False, True
    with replace(choose_outputs(None, str(path)), format="json").open(view) as sinks:
        for sink in sinks:
            for _ in range(rows):
                sink.add(Item("add-filter", None, ROW))
            sink.end(Conclusion())


def write(path: Path, data: bytes = b"new") -> None:
    with write_whole(path, overwrite=True) as stream:
        stream.write(data)


@each("content", [None, b"an old report"])
def test_what_is_written_after_an_error_goes_nowhere(tmp_path, content):
    """pyarrow writes the footer of a Parquet file when it deletes the writer; by then the
    descriptor may be that of another file."""
    path = tmp_path / "r.parquet"
    if content is not None:
        path.write_bytes(content)
    block = write_whole(path, overwrite=True)
    stream = block.__enter__()
    writer = pq.ParquetWriter(stream, pa.schema([("v", pa.int64())]))
    assert not block.__exit__(KeyError, KeyError(), None)
    descriptor = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
    assert descriptor == stream.fileno()
    del writer
    os.close(descriptor)
    assert (tmp_path / "other").read_bytes() == b""
    assert sorted(os.listdir(tmp_path)) == (
        ["other"] if content is None else ["other", "r.parquet"]
    )


@each("content", [None, b"an old file"])
def test_a_full_disk_leaves_what_was_there(tmp_path, content):
    with small_disk(tmp_path / "disk", "64k") as disk:
        path = disk / "file.json"
        if content is not None:
            path.write_bytes(content)
        (disk / "rest").write_bytes(bytes(40 << 10))
        with pytest.raises(WriteError, match="no space left") as caught:
            write(path, bytes(100 << 10))
        assert caught.value.file == str(path)
        with pytest.raises(WriteError, match="no space left"):
            write(disk / "other", bytes(1 << 20))
        assert sorted(os.listdir(disk)) == (["rest"] if content is None else ["file.json", "rest"])
        assert content is None or path.read_bytes() == content


@each("name", ["report.parquet", "report.json"])
def test_a_report_is_not_written_on_a_full_disk(tmp_path, name):
    with small_disk(tmp_path / "disk", "4k") as disk:
        (disk / "rest").write_bytes(bytes(4 << 10))
        with pytest.raises(WriteError, match="no space left"):
            save_report(disk / name, 10_000)
        assert os.listdir(disk) == ["rest"]


@each("save", [save_report, write])
def test_a_link_planted_under_a_name_that_can_be_guessed_is_not_written_through(tmp_path, save):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = tmp_path / "shared"
    folder.mkdir()
    name = "out.parquet"
    for planted in (
        f".{name}.{os.getpid()}{TEMPORARY_SUFFIX}",
        f".{name}{TEMPORARY_SUFFIX}",
        f"{name}.new",
        f".{name}.tmp",
    ):
        (folder / planted).symlink_to(victim)
    save(folder / name)
    assert victim.read_bytes() == b"precious"
    assert not (folder / name).is_symlink()


def test_a_file_that_came_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "file.json"
    with pytest.raises(RefusedError, match="exists"), write_whole(path, overwrite=False):
        path.write_bytes(b"precious")
    assert path.read_bytes() == b"precious"


@each("mode", [0o600, 0o640, 0o644])
def test_an_old_file_keeps_its_mode_and_a_private_one_has_its_own(tmp_path, mode):
    path = tmp_path / "file.json"
    path.touch()
    path.chmod(mode)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    with write_whole(path, overwrite=True, mode=0o600) as stream:
        stream.write(b"secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file.json", tmp_path / "file.json"
    link.symlink_to(target)
    for data in (b"one", b"two"):
        write(link, data)
        assert link.is_symlink()
        assert target.read_bytes() == data


def test_a_fifo_and_standard_output_are_written_to(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    write(fifo)
    reader.join()
    assert read == [b"new"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    program = "\n".join(
        (
            "from sbbf_tool.storage.whole import write_whole",
            "with write_whole('/dev/stdout', overwrite=True) as stream:",
            "    stream.write(b'{}\\n')",
            "print('more')",
        )
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == b"{}\nmore\n"
    for mode in ("wb", "ab"):
        with (tmp_path / "output").open(mode) as output:
            subprocess.run(command, stdout=output, check=True)
    assert (tmp_path / "output").read_bytes() == b"{}\nmore\n" * 2


def test_a_fifo_that_no_process_reads_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(whole, "_READER_SECONDS", 0.05)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(WriteError, match="no process reads it"):
        write(tmp_path / "fifo")


@needs_root
@each("leads_to", ["victim", "nothing"])
def test_a_link_of_another_user_is_not_followed(tmp_path, leads_to):
    (tmp_path / "victim").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / leads_to)
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)
    with pytest.raises(
        RefusedError, match=r"the path is a symbolic link of another user \(uid 12345\)"
    ):
        write(tmp_path / "link")
    assert sorted(os.listdir(tmp_path)) == ["link", "victim"]
    assert (tmp_path / "victim").read_bytes() == b"old"


@needs_root
def test_a_file_that_may_not_be_written_is_refused():
    with open_folder() as folder, without_privileges():
        path = folder / "file.json"
        path.write_bytes(b"old")
        path.chmod(0o444)
        with pytest.raises(RefusedError, match="no permission"):
            write(path)
        assert path.read_bytes() == b"old"
