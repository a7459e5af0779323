"""Folders may contain anything: no name stops the listing of the others."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.storage.listing import entries, has_files
from sbbf_tool.storage.places import parquet_files
from support.places import as_user, needs_root, open_folder
from support.tables import each


def names(folder: Path, pattern: str = "", *, links: bool = False) -> list[str]:
    """Return the names of a listing, with a mark for those behind links; with `links`, also those
    of links to folders."""
    files = entries(str(folder / pattern) if pattern else str(folder))
    return [
        os.path.relpath(entry.path, folder) + ("@" if entry.is_link else "")
        for entry in files
        if links or not entry.is_folder
    ]


@pytest.fixture
def lake(tmp_path):
    lake = tmp_path / "lake"
    for name in ("a.parquet", "day=1/b.parquet", "z.parquet"):
        (lake / name).parent.mkdir(parents=True, exist_ok=True)
        (lake / name).touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "c.parquet").touch()
    return lake


@each("name", ["loop", "loop.parquet"])
@each("target", ["{self}", "missing", "a.parquet/x", "x" * 300, "/" + "y/" * 2000, "{other}"])
def test_a_link_that_leads_nowhere_stops_nothing(lake, name, target):
    link, second_link = lake / name, lake / "other"
    second_link.symlink_to(link)
    link.symlink_to(target.format(self=name, other="other"))
    there = sorted(
        [
            "a.parquet",
            "day=1/b.parquet",
            "z.parquet",
            *([f"{name}@"] if name.endswith(".parquet") else []),
        ]
    )
    assert names(lake) == there, "reading the link reports why it cannot be read"
    assert names(lake, "*.parquet") == [path for path in there if not path.startswith("day")]


@needs_root
@each("mode", [0o000, 0o311, 0o644])
def test_a_folder_that_may_not_be_listed_is_named_and_stops_nothing(mode):
    with open_folder() as folder:
        for name in ("a.parquet", "m/b.parquet", "z.parquet"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()
        (folder / "to-m").symlink_to(folder / "m" / "b.parquet")
        (folder / "m").chmod(mode)
        with as_user(12345, 12345):
            files = names(folder)
        assert [name for name in files if name != "to-m@"] == [
            "a.parquet",
            "m/b.parquet" if mode == 0o644 else "m",
            "z.parquet",
        ]


def has_entries(folder: Path) -> bool:
    try:
        return bool(list(entries(str(folder))))
    except UnreadableError:
        return False


SHAPES = {
    (): False,
    ("a.parquet",): True,
    (".a.parquet", "_a.parquet"): False,
    ("_a=1.parquet",): True,
    ("day=1/b.parquet",): True,
    ("_tmp/b.parquet", ".git/b.parquet"): False,
    ("a/b/c/d/e.parquet",): True,
    ("a/", "b.parquet/c.parquet"): True,
    ("link.parquet -> elsewhere",): False,
    ("link.parquet -> elsewhere/c.parquet",): True,
    ("link.parquet -> nowhere",): True,
    ("link -> .",): False,
}


@each("shape, expected", SHAPES.items())
def test_a_folder_has_files_exactly_if_its_listing_has_entries(tmp_path, shape, expected):
    (tmp_path / "lake").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "c.parquet").touch()
    for name in shape:
        path, _, target = name.partition(" -> ")
        place = tmp_path / "lake" / path
        if path.endswith("/"):
            place.mkdir(parents=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if target:
            place.symlink_to(tmp_path / target if target[0] != "." else target)
        else:
            place.touch()
    assert (has_files(str(tmp_path / "lake")), has_entries(tmp_path / "lake")) == (
        expected,
        expected,
    )


def test_what_is_neither_file_nor_folder_stops_nothing(lake):
    os.mkfifo(lake / "fifo.parquet")
    os.mkfifo(lake / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(lake / "s.parquet"))
        assert names(lake) == [
            "a.parquet",
            "day=1/b.parquet",
            "fifo.parquet",
            "s.parquet",
            "z.parquet",
        ]


@pytest.mark.slow
def test_folders_deeper_than_any_stack_and_than_any_path(lake):
    here = os.getcwd()
    os.chdir(lake)
    try:
        for _ in range(2200):
            os.mkdir("d")
            os.chdir("d")
        Path("deep.parquet").touch()
        paths = list(parquet_files(str(lake)))
    finally:
        os.chdir(here)
        # No path is long enough for `rmtree` of a single name.
        os.system(f"rm -rf {lake}/d")
    assert [os.path.relpath(path, lake) for path in (paths[0], *paths[2:])] == [
        "a.parquet",
        "day=1/b.parquet",
        "z.parquet",
    ]
    assert len(paths[1]) > 4000, "the place where it goes no deeper is named"


def test_names_that_vanish_are_left_out(lake):
    for number in range(200):
        (lake / f"gone{number}").mkdir()
        (lake / f"gone{number}" / "x.parquet").touch()
    stop = threading.Event()

    def vanish() -> None:
        for number in reversed(range(200)):
            (lake / f"gone{number}" / "x.parquet").unlink()
            (lake / f"gone{number}").rmdir()
        stop.set()

    thread = threading.Thread(target=vanish)
    thread.start()
    while not stop.is_set():
        files = names(lake)
        assert {"a.parquet", "z.parquet"} <= set(files)
        assert all(name.endswith(".parquet") for name in files)
    thread.join()


def test_links_are_distinguished_from_files(lake):
    elsewhere = lake.parent / "elsewhere"
    (lake / "file.parquet").symlink_to(elsewhere / "c.parquet")
    (lake / "folder").symlink_to(elsewhere)
    (lake / "folder.parquet").symlink_to(elsewhere)
    read = ["a.parquet", "day=1/b.parquet", "file.parquet@", "z.parquet"]
    assert names(lake) == read
    assert names(lake, links=True) == [
        "a.parquet",
        "day=1/b.parquet",
        "file.parquet@",
        "folder@",
        "folder.parquet@",
        "z.parquet",
    ]
    # A link that is named is followed.
    assert names(lake, "file.parquet") == ["file.parquet"]
    assert names(lake, "folder") == ["folder/c.parquet"]
    assert names(lake, "folder/*.parquet") == ["folder/c.parquet"]
    # One that a pattern meets is one that a listing meets.
    assert names(lake, "f*.parquet", links=True) == ["file.parquet@", "folder.parquet/c.parquet@"]
    assert names(lake, "*/c.parquet", links=True) == [
        "folder/c.parquet@",
        "folder.parquet/c.parquet@",
    ]
    # One that a pattern meets with the folder that has it is one file.
    assert names(lake, "**") == read


@each(
    "pattern",
    ["**/*.parquet", "**/**/*.parquet", "./**/*.parquet", "{0}/**/*.parquet", "**/[abz].parquet"],
)
def test_a_pattern_of_any_depth_does_not_go_in_circles(lake, pattern, monkeypatch):
    """Two links to a folder in itself lead to 2 ** 40 paths; `**` follows none, as in bash."""
    monkeypatch.chdir(lake)
    expected = [lake / "a.parquet", lake / "day=1" / "b.parquet", lake / "z.parquet"]
    for name in ("one", "two"):
        (lake / "day=1" / name).symlink_to(lake)
    assert [Path(entry.path).absolute() for entry in entries(pattern.format(lake))] == expected


@each(
    "form",
    [
        "{}/a b/x.parquet",
        "file:{}/a b/x.parquet",
        "file:{}/a%20b/x.parquet",
        "file://{}/a%20b/x.parquet",
    ],
)
def test_names_as_hadoop_and_spark_print_them(form, tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "x.parquet").touch()
    assert list(parquet_files(form.format(tmp_path))) == [f"{tmp_path}/a b/x.parquet"]
    assert list(parquet_files(form.format(tmp_path).removesuffix("/x.parquet"))) == [
        f"{tmp_path}/a b/x.parquet"
    ]


def test_an_existing_name_with_a_percent_sign_is_meant_as_it_is(tmp_path):
    (tmp_path / "k=%20.parquet").touch()
    assert list(parquet_files(f"file:{tmp_path}/k=%20.parquet")) == [f"{tmp_path}/k=%20.parquet"]


@each(
    "name, hint",
    [
        ("dbfs:/mnt/x", "/dbfs"),
        ("dbfs://mnt/x", "/dbfs"),
        ("hdfs:/x", "hdfs://"),
        ("s3:/b/k", "s3://"),
    ],
)
def test_paths_of_other_systems_get_a_hint(name, hint):
    with pytest.raises(UsageError) as raised:
        list(parquet_files(name))
    assert hint in raised.value.hint


@needs_root
@each("mode", [0o000, 0o311, 0o644])
def test_a_folder_that_may_not_be_listed_counts_as_a_file(mode):
    with open_folder() as folder:
        (folder / "m").mkdir()
        (folder / "m").chmod(mode)
        with as_user(12345, 12345):
            assert has_files(str(folder)) == has_entries(folder) == (mode != 0o644)
