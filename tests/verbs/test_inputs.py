"""Files that are read through a file system object, and open files: the same answers, and no change
to either.

Parameters that take several texts or values take one of them alone: never its characters.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import sbbf_tool
from sbbf_tool.arguments import as_names
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.rules.rule import Limits
from sbbf_tool.storage.inputs import OpenFileSource
from support.tables import each

FIXTURES = Path(__file__).parents[2] / "fixtures"
DATA = FIXTURES / "pyarrow-filters.parquet"

READ: dict[str, Callable[..., Any]] = {
    "inspect": sbbf_tool.inspect,
    "probe": lambda path, **options: sbbf_tool.probe(path, "id", [1000, -1], **options),
    "verify": sbbf_tool.verify,
    "check": sbbf_tool.check,
    "explain": lambda path, **options: sbbf_tool.explain(path, "id", 1000, **options),
    "advise": sbbf_tool.advise,
}
CHANGE: dict[str, Callable[..., Any]] = {
    "add": lambda path, **options: sbbf_tool.add_filters(path, ["id"], rebuild="all", **options),
    "remove": sbbf_tool.remove_filters,
    "resize": lambda path, **options: sbbf_tool.resize_filters(path, max_bytes=64, **options),
    "repair": sbbf_tool.repair,
}
every_reader = each("read", READ)


@pytest.fixture
def memory() -> Any:
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pipe_file("/lake/a.parquet", DATA.read_bytes())
    return files


def subtree(memory: Any, folder: Path) -> tuple[Any, str]:
    shutil.copy(DATA, folder / "a.parquet")
    return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem()), "a.parquet"


FILESYSTEMS: dict[str, Callable[[Any, Path], tuple[Any, str]]] = {
    "pyarrow local": lambda memory, folder: (fs.LocalFileSystem(), str(DATA)),
    "pyarrow subtree": subtree,
    "fsspec local": lambda memory, folder: (fsspec.filesystem("file"), str(DATA)),
    "fsspec memory": lambda memory, folder: (memory, "lake/a.parquet"),
    "fsspec memory by URL": lambda memory, folder: (memory, "memory://lake/a.parquet"),
    "fsspec in pyarrow": lambda memory, folder: (
        fs.PyFileSystem(fs.FSSpecHandler(memory)),
        "/lake/a.parquet",
    ),
}
every_filesystem = each("kind", list(FILESYSTEMS))


def without_place(report: Any) -> Any:
    """The report without what depends on where the file is: its name, requests, and a fix, which
    names it."""
    names = {
        field: ""
        for field in ("file", "paths", "sampled_files", "bytes_read", "requests", "fix", "plan")
        if hasattr(report, field)
    }
    if hasattr(report, "findings"):
        names["findings"] = tuple(
            replace(finding, file="", fix=None) for finding in report.findings
        )
    return replace(report, **names)


@pytest.mark.slow
@every_filesystem
@every_reader
def test_a_file_system_gives_the_same_answers(
    memory: Any, tmp_path: Path, kind: str, read: Callable[..., Any]
) -> None:
    filesystem, path = FILESYSTEMS[kind](memory, tmp_path)
    report = read(path, filesystem=filesystem)
    assert without_place(report) == without_place(read(DATA))


@every_reader
def test_an_open_file_gives_the_same_answers_and_stays_open(read: Callable[..., Any]) -> None:
    expected = without_place(read(DATA))
    with (
        DATA.open("rb") as file,
        io.BytesIO(DATA.read_bytes()) as stream,
        tempfile.TemporaryFile() as copy,
        pa.OSFile(str(DATA)) as arrow,
    ):
        copy.write(DATA.read_bytes())
        for handle in (file, stream, copy, arrow):
            handle.seek(17)
            assert without_place(read(handle)) == expected
            assert handle.tell() == 17


@each("names", ["lake", "lake/", "lake/*.parquet", ["lake/a.parquet", "lake/day=1"]])
def test_advise_and_prune_list_folders_and_globs(memory: Any, names: str | list[str]) -> None:
    memory.pipe_file("/lake/day=1/b.parquet", DATA.read_bytes())
    memory.pipe_file("/lake/_hidden/c.parquet", DATA.read_bytes())
    memory.pipe_file("/lake/notes.txt", b"")
    files = 1 if names == "lake/*.parquet" else 2
    advice = sbbf_tool.advise(names, filesystem=memory)
    assert (advice.files, advice.fix) == (files, None)
    report = sbbf_tool.prune(names, "id", [1000], filesystem=memory)
    assert report.total_files == files
    assert report.row_groups == files
    assert report.warnings == ()
    assert report.dataset().to_table().num_rows == 100 * files


def test_a_file_that_is_changed_while_it_is_read_is_an_error(memory: Any) -> None:
    from sbbf_tool.storage import places
    from sbbf_tool.storage.inputs import find_input

    with places.open_source(find_input("lake/a.parquet", memory)) as source:
        assert source.is_unchanged()
        memory.pipe_file("/lake/a.parquet", DATA.read_bytes())
        assert not source.is_unchanged()
    memory.pipe_file("/lake/big", bytes(1 << 20))
    with places.open_source(find_input("lake/big", memory)) as source:
        memory.pipe_file("/lake/big", bytes(1 << 20))
        with pytest.raises(UnreadableError, match=r"^/lake/big: .*changed"):
            source.read(0, 10)
    stream = io.BytesIO(bytes(1 << 20))
    with OpenFileSource(stream) as open_source:
        stream.truncate(100)
        assert not open_source.is_unchanged()
        with pytest.raises(
            UnreadableError,
            match=r"^<open file>: byte 100: the file became shorter while it was read",
        ):
            open_source.read(0, 1000)


@every_reader
def test_missing_and_broken_files_are_named(memory: Any, read: Callable[..., Any]) -> None:
    memory.pipe_file("/lake/broken.parquet", b"PAR1 no footer")
    for path in ("none.parquet", "lake/broken.parquet"):
        with pytest.raises(
            UnreadableError, match=rf"^/{path}: |^{path}: no file can be read; /{path}: "
        ):
            read(path, filesystem=memory)
    with pytest.raises(UnreadableError, match=r"^<open file>: "):
        read(io.BytesIO(b"PAR1 no footer"))


class Failing(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A file system whose service fails with errors of its own."""

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        raise LookupError("the token has expired")


def test_errors_of_a_file_system_are_those_of_this_package() -> None:
    with pytest.raises(UnreadableError, match=r"^a.parquet: the file cannot be read"):
        sbbf_tool.inspect("a.parquet", filesystem=Failing())


@every_reader
def test_what_cannot_be_read_is_refused(read: Callable[..., Any], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    with (
        os.fdopen(reader, "rb") as pipe,
        pytest.raises(UsageError, match=r"cannot seek.*io.BytesIO"),
    ):
        read(pipe)
    with DATA.open(encoding="latin-1") as text, pytest.raises(UsageError, match=r'text mode.*"rb"'):
        read(text)
    with (
        (tmp_path / "new").open("wb") as new,
        pytest.raises(UsageError, match=r"not open for reading"),
    ):
        read(new)
    closed_stream = io.BytesIO()
    closed_stream.close()
    with pytest.raises(UnreadableError, match=r"closed"):
        read(closed_stream)
    with pytest.raises(UsageError, match=r"a path, a URL or an open binary file, not int"):
        read(3)
    with pytest.raises(
        UsageError, match=r"must be a pyarrow.fs.FileSystem or an fsspec file system, not str"
    ):
        read("a.parquet", filesystem="s3")
    with pytest.raises(UsageError, match=r"no path in a file system"):
        read(io.BytesIO(), filesystem=fs.LocalFileSystem())


def test_prune_takes_paths() -> None:
    with pytest.raises(UsageError, match=r"prune takes paths or a pyarrow dataset, not BytesIO"):
        sbbf_tool.prune(io.BytesIO(), "id", [1])  # type: ignore[arg-type]
    import pyarrow.dataset as ds

    with pytest.raises(UsageError, match=r"a dataset has its own file system"):
        sbbf_tool.prune(ds.dataset(DATA), "id", [1], filesystem=fs.LocalFileSystem())


@each("change", CHANGE)
@each("target", [{"in_place": True}, {"dry_run": True}, {"output": "new.parquet"}])
def test_changes_need_a_path(
    memory: Any, change: Callable[..., Any], target: dict[str, Any]
) -> None:
    with (
        DATA.open("rb") as file,
        pytest.raises(
            UsageError,
            match=r"an open file cannot be changed: .*locked and published.*give the path",
        ),
    ):
        change(file, **target)


@each("path", sorted((FIXTURES / "encrypted").glob("*.encrypted")))
def test_keys_decrypt_what_is_read_through_both(memory: Any, path: Path) -> None:
    keys = sbbf_tool.Keys.from_json((FIXTURES / "encrypted" / "keys.json").read_text())
    if "supplied" in path.name:
        keys = replace(keys, aad_prefix=b"fixtures")
    memory.pipe_file("/encrypted", path.read_bytes())
    expected = sbbf_tool.inspect(path, keys=keys)
    assert any(row.encrypted for row in expected.filters) or "signed" in path.name
    assert without_place(
        sbbf_tool.inspect("encrypted", keys=keys, filesystem=memory)
    ) == without_place(expected)
    assert without_place(
        sbbf_tool.inspect(io.BytesIO(path.read_bytes()), keys=keys)
    ) == without_place(expected)


ROWS = 200


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "filtered.parquet"
    columns = {
        "ab": ["abc", *(f"value {at}" for at in range(ROWS - 1))],
        "a": range(ROWS),
        "b": range(ROWS),
    }
    pq.write_table(pa.table(columns), path)
    sbbf_tool.add_filters(path, ["ab", "a", "b"], in_place=True)
    return path


CASES: dict[str, tuple[str, Callable[[Path, Any], object]]] = {
    "Policy.select": (
        "fpp-above-limit",
        lambda path, argument: Policy(Limits(max_fpp=0.5), select=argument),
    ),
    "Policy.ignore": ("format", lambda path, argument: Policy(ignore=argument)),
    "FilterSpec.columns": ("ab", lambda path, argument: FilterSpec(argument)),
    "FilterSpec.paths": ("PATH", lambda path, argument: FilterSpec("ab", paths=argument)),
    "add_filters": (
        "ab",
        lambda path, argument: sbbf_tool.add_filters(path, argument, dry_run=True, rebuild="all"),
    ),
    "advise.names": ("PATH", lambda path, argument: sbbf_tool.advise(argument)),
    "advise.queries": (
        "ab = 'abc'",
        lambda path, argument: sbbf_tool.advise(path, queries=argument),
    ),
    "advise.engine_names": (
        "duckdb",
        lambda path, argument: sbbf_tool.advise(path, engine_names=argument),
    ),
    "engines": ("duckdb-1.4", lambda path, argument: sbbf_tool.engines(mine=argument)),
    "inspect": ("ab", lambda path, argument: sbbf_tool.inspect(path, argument)),
    "probe": ("abc", lambda path, argument: sbbf_tool.probe(path, "ab", argument)),
    "prune.data": ("PATH", lambda path, argument: sbbf_tool.prune(argument, "ab", ["abc"])),
    "prune.values": ("abc", lambda path, argument: sbbf_tool.prune(path, "ab", argument)),
    "remove_filters": (
        "ab",
        lambda path, argument: sbbf_tool.remove_filters(path, argument, dry_run=True),
    ),
    "repair": ("ab", lambda path, argument: sbbf_tool.repair(path, argument, dry_run=True)),
    "resize_filters": (
        "ab",
        lambda path, argument: sbbf_tool.resize_filters(path, argument, fpp=0.3, dry_run=True),
    ),
    "verify": ("ab", lambda path, argument: sbbf_tool.verify(path, argument)),
}


def comparable(result: Any) -> Any:
    """A result without what two runs never have in common."""
    varying = {"seconds": 0.0, "_dataset": None}
    names = {field.name for field in fields(result)} if is_dataclass(result) else set()
    return (
        replace(result, **{name: value for name, value in varying.items() if name in names})
        if names
        else result
    )


@each("name", list(CASES), every=8)
def test_a_single_value_is_accepted_for_a_list(path, name):
    value, call = CASES[name]
    alone = [str(path), path] if value == "PATH" else [value, np.str_(value)]
    expected = comparable(call(path, iter(alone[:1])))
    for argument in alone:
        assert comparable(call(path, argument)) == expected


@each("columns", [b"ab", 5, None, ["ab", None], [b"ab"]])
def test_a_column_s_name_is_text(columns):
    with pytest.raises(UsageError, match="the name of a column is text"):
        as_names(columns)


@each(
    "options, words",
    [
        ({"jobs": "x"}, "a number of at least 1, not 'x'"),
        ({"in_place": "no"}, "in_place must be True or False, not 'no'"),
        ({"columns": {"ab": 0.1}}, "names of columns are a list, not {'ab': 0.1}"),
    ],
)
def test_arguments_of_other_types_are_refused(path, options, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        sbbf_tool.add_filters(path, **{"columns": ["ab"], "in_place": True, **options})
    if "jobs" in options:
        with pytest.raises(UsageError, match=re.escape(words)):
            sbbf_tool.inspect(path, **options)


def test_a_buffer_that_is_filled_again_is_another_value(path):
    buffer = bytearray(b"not")
    values = (buffer,)
    assert sbbf_tool.probe(path, "ab", values).is_absent
    buffer[:] = b"abc"
    assert not sbbf_tool.probe(path, "ab", values).is_absent
