"""Every way in which the tool writes: an initial file or table, and the command line that changes
it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from sbbf_tool.cli import run
from sbbf_tool.file import interrupted
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.storage.copying import BegunCopy

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
EVENTS, ORDERS = FIXTURES / "events.parquet", FIXTURES / "paimon" / "orders"
FILE, OUT, TABLE = "a.parquet", "out.parquet", "orders"


def plain(path: Path) -> None:
    shutil.copyfile(EVENTS, path)


def filtered(path: Path) -> None:
    plain(path)
    _sbbf("add-filter", path, "-c", "user_id", "-c", "session", "--in-place")


def without_lengths(path: Path) -> None:
    """Write a file as Trino and Impala do."""
    filtered(path)
    with ParquetFile.open(path) as file:
        places = {
            (number, column.index): FilterPlace(place.offset, None)
            for number in range(file.footer.num_row_groups)
            for column in file.footer.columns
            if (place := file.footer.filter_place(number, column.index)) is not None
        }
        footer = set_filters(file.footer.raw, places)
        content = file.source.read(0, file.footer.start)
    path.write_bytes(content + footer + build_tail(footer))


def saturated(path: Path) -> None:
    plain(path)
    _sbbf(
        "add-filter",
        path,
        "-c",
        "user_id",
        "--max-bytes",
        "64",
        "--allow",
        "weak-filters",
        "--in-place",
    )


def orders(path: Path) -> None:
    """Paimon's table, in which two data files of four have no index."""
    shutil.copytree(ORDERS, path)


def _sbbf(*arguments: object) -> None:
    with redirect_stdout(io.StringIO()):
        assert run([str(argument) for argument in arguments]) == 0


@dataclass(frozen=True)
class WritePath:
    prepare: Callable[[Path], None]
    arguments: tuple[str, ...]
    """Return the arguments with the file's name instead of FILE, relative to its folder."""
    is_copied_by_thread: bool = False
    """Whether a thread copies the file while its filters are built, as it does for large files."""

    @property
    def target(self) -> str:
        return OUT if OUT in self.arguments else FILE

    @property
    def appends(self) -> bool:
        return "--append" in self.arguments

    def act(self, folder: Path) -> int:
        """Run the command in this process, in this folder; return its exit code."""
        min_bytes = 1 if self.is_copied_by_thread else BegunCopy.MIN_BYTES
        with (
            chdir(folder),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
            patch.object(BegunCopy, "MIN_BYTES", min_bytes),
        ):
            return run(list(self.arguments))


_ADD = ("add-filter", FILE, "-c", "user_id", "-c", "session", "--jobs", "1")

WRITE_PATHS = {
    "add": WritePath(plain, (*_ADD, "--in-place")),
    "add elsewhere": WritePath(plain, (*_ADD, "-o", OUT)),
    "add, copied by a thread": WritePath(plain, (*_ADD, "--in-place"), is_copied_by_thread=True),
    "append": WritePath(plain, (*_ADD, "--in-place", "--append")),
    "remove, cutting back": WritePath(filtered, ("remove-filter", FILE, "--in-place")),
    "remove, with a new footer": WritePath(
        filtered, ("remove-filter", FILE, "-c", "user_id", "--in-place")
    ),
    "remove, compacting": WritePath(
        filtered, ("remove-filter", FILE, "-c", "user_id", "--compact", "--in-place")
    ),
    "repair": WritePath(without_lengths, ("repair", FILE, "--quick", "--in-place")),
    "repair, rebuilding": WritePath(saturated, ("repair", FILE, "--in-place")),
    "resize": WritePath(
        filtered, ("resize", FILE, "--max-bytes", "64", "--allow", "weak-filters", "--in-place")
    ),
}


@dataclass(frozen=True)
class CommitPath:
    """A commit to the Delta table in the folder, which replaces each file by a copy that is there
    already."""

    def act(self, folder: Path) -> int:
        """Commit in this process; return the exit code of the command that would."""
        from sbbf_tool.errors import SbbfError
        from support.delta_logs import CHANGE, find_copies, open_table

        try:
            table = open_table(folder / TABLE)
            return 0 if table.commit(find_copies(table), CHANGE).num_files else 1
        except SbbfError as error:
            return error.exit_code


COMMIT = "Delta commit"
ADD_INDEX = "paimon add-index"
TABLE_PATHS = {ADD_INDEX: WritePath(orders, ("paimon", "add-index", TABLE)), COMMIT: CommitPath()}
"""The ways that change a table, which is a folder of files."""

LAKE, INDEX = "lake", "lake.sbbfx"


def no_file(path: Path) -> None:
    """Leave the folder as it is: its test writes a lake."""


INDEX_PATHS = {
    "build": WritePath(no_file, ("index", LAKE, "-c", "v", "-o", INDEX, "--jobs", "1")),
    "update": WritePath(no_file, ("index", INDEX, "--jobs", "1")),
    "compact": WritePath(no_file, ("index", INDEX, "--compact", "--jobs", "1")),
}
"""The ways that write an index."""


@dataclass(frozen=True)
class Before:
    """A folder's only file, and the output of the undisturbed command for it."""

    name: str
    path: WritePath
    old: bytes
    new: bytes

    def lay_out(self, folder: Path) -> Path:
        """Put only the old file in `folder`, which is made or cleared."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / FILE).write_bytes(self.old)
        return folder

    def expected(self, folder: Path, *, done: bool) -> dict[str, bytes]:
        """Return the expected content of the folder after the command, or without it."""
        if self.path.target == OUT:
            return {FILE: self.old, OUT: self.new} if done else {FILE: self.old}
        return {FILE: self.new if done else self.old}


def prepare(path: WritePath, folder: Path) -> Before:
    """Make the old file, run the command once, and verify the new file against its data."""
    folder.mkdir()
    path.prepare(folder / FILE)
    old = (folder / FILE).read_bytes()
    assert path.act(folder) == 0
    _sbbf("verify", folder / path.target)
    new = (folder / path.target).read_bytes()
    assert old != new
    return Before(folder.name, path, old, new)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_whole(before: Before, folder: Path) -> None:
    """The old file or the new one at once, or, where it was appended to, once the append is undone;
    then the next command cleans up."""
    actual = contents(folder)
    whole = (before.expected(folder, done=False), before.expected(folder, done=True))
    if before.path.appends:
        interrupted.undo(str(folder / FILE), str(folder / FILE), None)
        actual = contents(folder)
    assert {name: data for name, data in actual.items() if name in (FILE, OUT)} in whole
    was_done = actual.get(OUT if before.path.target == OUT else FILE) == before.new
    again = before.path.act(folder)
    assert again == 0 or was_done
    if OUT in actual:
        # A name that is taken is refused at once; a command that works on that file finds what was
        # left beside it.
        run(["repair", str(folder / OUT), "--in-place", "--quick"])
    assert contents(folder) == before.expected(folder, done=True)
