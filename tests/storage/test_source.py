"""Opening and reading a local file, and which files a folder or a pattern means."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.globs import matches_any
from sbbf_tool.storage.places import parquet_files
from sbbf_tool.storage.source import LocalSource
from support.tables import each


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(bytes(range(100)))
    return path


# Reading


def test_a_range_has_exactly_the_requested_bytes(path):
    with LocalSource(path) as source:
        assert source.size == 100
        assert source.read(10, 5) == bytes(range(10, 15))
        assert source.read(0, 100) == bytes(range(100))
        assert source.read(100, 0) == b""
        assert source.read_up_to(90, 50) == bytes(range(90, 100))
        assert source.read_up_to(100, 50) == b""
        assert source.bytes_read == 5 + 100 + 10


@each(
    "offset, length", [(0, 101), (100, 1), (-1, 5), (5, -1), (2**62, 1), (0, 2**62), (2**63, 2**63)]
)
def test_a_range_outside_the_file_is_unreadable(path, offset, length):
    with LocalSource(path) as source, pytest.raises(UnreadableError, match="outside the file"):
        source.read(offset, length)


def test_a_file_that_becomes_shorter_is_unreadable(path):
    with LocalSource(path) as source:
        os.truncate(path, 50)
        assert source.read(0, 50) == bytes(range(50))
        with pytest.raises(UnreadableError, match="became shorter"):
            source.read(40, 20)


def test_what_is_open_stays_what_it_was_when_the_name_is_given_to_another(path):
    with LocalSource(path) as source:
        other_path = path.with_name("other")
        other_path.write_bytes(b"x" * 100)
        os.rename(other_path, path)
        assert source.read(1, 2) == b"\1\2"
        with source.open_arrow() as stream:
            assert stream.read(3) == b"\0\1\2"
        assert not source.is_unchanged()


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def rewrite_and_set_the_time_back(path: Path) -> None:
    status = path.stat()
    with open(path, "r+b") as stream:
        stream.write(b"x")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def restrict_to_owner(path: Path) -> None:
    path.chmod(0o600)


CHANGES = [append, touch, os.unlink, rewrite_and_set_the_time_back, restrict_to_owner]


@each("change", CHANGES)
def test_a_change_is_noticed(path, change):
    path.chmod(0o644)
    with LocalSource(path) as source:
        assert source.is_unchanged()
        # The clock of file times stands still for some milliseconds.
        other_path = path.with_name("other")
        other_path.touch()
        while other_path.stat().st_ctime_ns == path.stat().st_ctime_ns:
            other_path.touch()
        change(path)
        assert not source.is_unchanged()


# What is no file to read


@contextmanager
def a_socket(path: Path) -> Iterator[str]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        yield str(path)


@pytest.mark.timeout(10)
@each(
    "kind",
    ["fifo", "folder", "device", "socket", "missing", "loop", "too long", "below a file", "NUL"],
)
def test_anything_but_a_file_is_unreadable_and_is_not_waited_for(tmp_path, path, kind):
    name = str(tmp_path / "it")
    others = {
        "device": "/dev/null",
        "too long": str(tmp_path / ("x" * 300)),
        "below a file": f"{path}/it",
        "NUL": "a\0b",
    }
    name = others.get(kind, name)
    {"fifo": os.mkfifo, "folder": os.mkdir, "loop": lambda link: os.symlink(link, link)}.get(
        kind, str
    )(name)
    descriptors = len(os.listdir("/proc/self/fd"))
    with (
        a_socket(Path(name)) if kind == "socket" else open(os.devnull),
        pytest.raises(UnreadableError) as caught,
    ):
        LocalSource(name)
    assert caught.value.file == name
    assert caught.value.message
    assert len(os.listdir("/proc/self/fd")) == descriptors


# Folders and patterns


@pytest.fixture
def lake(tmp_path):
    for name in (
        "b.parquet",
        "a.parquet",
        "notes.txt",
        "_hidden.parquet",
        ".a.parquet.crc",
        ".tmp.parquet",
        "day=2/part-1.parquet",
        "day=1/part-0.parquet",
        "_temporary/x.parquet",
        ".staging/y.parquet",
        "_delta_log/00.checkpoint.parquet",
        "odd[1].parquet",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


PARQUET_FILES = [
    "a.parquet",
    "b.parquet",
    "day=1/part-0.parquet",
    "day=2/part-1.parquet",
    "odd[1].parquet",
]
"""The Parquet files of `lake`, in the order in which they are listed."""


def names(folder: Path, pattern: str) -> list[str]:
    return [os.path.relpath(path, folder) for path in parquet_files(str(folder / pattern))]


def test_a_folder_means_the_parquet_files_below_it_but_hidden_ones(lake):
    assert names(lake, "") == PARQUET_FILES
    assert names(lake, "day=1") == ["day=1/part-0.parquet"]


@each("backwards", [False, True])
def test_the_order_does_not_depend_on_the_file_system(lake, monkeypatch, backwards):
    """`os.scandir` returns names in any order, which stays the same for one folder: two listings in
    a row show nothing."""
    scandir, calls = os.scandir, []

    @contextmanager
    def ordered(path):
        calls.append(path)
        with scandir(path) as entries:
            yield iter(sorted(entries, key=lambda entry: entry.name, reverse=backwards))

    monkeypatch.setattr(os, "scandir", ordered)
    assert names(lake, "") == PARQUET_FILES
    assert names(lake, "?.parquet") == ["a.parquet", "b.parquet"]
    assert names(lake, "day=*") == ["day=1/part-0.parquet", "day=2/part-1.parquet"]
    assert calls


def test_a_file_path_is_never_read_as_a_pattern(lake):
    for name in ("notes.txt", "_hidden.parquet", "odd[1].parquet", "missing.parquet"):
        assert names(lake, name) == [name]


def test_a_pattern_means_what_it_matches_and_folders_their_files(lake):
    assert names(lake, "day=*/*.parquet") == ["day=1/part-0.parquet", "day=2/part-1.parquet"]
    assert names(lake, "day=*") == ["day=1/part-0.parquet", "day=2/part-1.parquet"]
    assert names(lake, "**/part-*.parquet") == ["day=1/part-0.parquet", "day=2/part-1.parquet"]


@each(
    "pattern, complaint",
    [("*.orc", "no file matches"), ("_temporary/empty", "no Parquet file below")],
)
def test_nothing_found_is_an_error(lake, pattern, complaint):
    (lake / "_temporary" / "empty").mkdir()
    with pytest.raises(UnreadableError, match=complaint):
        list(parquet_files(str(lake / pattern)))


@each(
    "glob, folder, path",
    [
        (".", "/a/b", "/a/b/c"),
        ("..", "/a/b", "/a/x"),
        ("a/../c", "/f", "/f/c"),
        ("x//y", "/f", "/f/x/y"),
        ("/x/", "/f", "/x/y"),
        ("*.p", "/f", "/f/a.p"),
        ("**", "/f", "/f/a/b"),
        ("[ab]?/**/c", "/f", "/f/ax/1/2/c"),
        ("s3://b/x*", "/f", "s3://b/xy/z"),
    ],
)
def test_a_glob_matches_a_file_and_what_is_below_a_folder(
    glob: str, folder: str, path: str
) -> None:
    assert matches_any([glob], folder, path)


@each(
    "glob, path",
    [
        ("x", "/f/xy"),
        (".", "/g/a"),
        ("*", "/g"),
        ("*.p", "/f/a/b.q"),
        ("s3://b/x", "s3://b/xy"),
        ("[a", "/f/a"),
        ("a+", "/f/aa"),
    ],
)
def test_a_glob_does_not_match_other_files(glob: str, path: str) -> None:
    assert not matches_any([glob], "/f", path)


def test_a_hostile_name_costs_little_time():
    start = time.process_time()
    assert not matches_any(["*a*a*a*a*.parquet"], "/f", f"/f/{'a' * 250}")
    assert matches_any(["*a*a?a*a*.parquet"], "/f", f"/f/{'a' * 200}.parquet")
    assert time.process_time() - start < 5
