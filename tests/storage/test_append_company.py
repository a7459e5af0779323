"""Appending where other writers are, who know of no lock: at every line of it, each thing that one
of them may do to the file.

What another writer put there is there afterwards, to the byte, and success means that the file has
what was appended.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

from sbbf_tool import RefusedError, add_filters
from sbbf_tool.errors import SbbfError
from sbbf_tool.storage import append as append_module
from sbbf_tool.storage import journal, leftovers, local, system_calls
from sbbf_tool.storage.append import append, journal_of, recover
from sbbf_tool.storage.source import LocalSource
from support.tables import each

OLD = bytes(range(256)) * 40 + b"PAR1"
PIECES = [
    b"a filter's header, ",
    bytearray(b"its bitset, " * 100),
    memoryview(b"and a footer, PAR1"),
]
NEW = OLD + b"".join(PIECES)
LINES_OF = {module.__file__ for module in (append_module, journal, local, leftovers, system_calls)}


class OtherWriter(NamedTuple):
    """What another writer does to the file, and what has to be there afterwards, given the old
    length of the file then."""

    act: Callable[[Path], None]
    is_kept: Callable[[Path], bool]


def _renamed(content: bytes) -> OtherWriter:
    def act(path: Path) -> None:
        other_path = path.with_name("other")
        other_path.write_bytes(content)
        os.rename(other_path, path)

    return OtherWriter(act, lambda path: path.read_bytes() == content)


def _rewritten(content: bytes) -> OtherWriter:
    return OtherWriter(
        lambda path: path.write_bytes(content), lambda path: path.read_bytes() == content
    )


def _linked() -> OtherWriter:
    """The name becomes a link to another file, which is no business of ours."""
    theirs = b"somebody's keys; " * 1000

    def act(path: Path) -> None:
        path.with_name("theirs").write_bytes(theirs)
        path.unlink()
        path.symlink_to("theirs")

    return OtherWriter(
        act, lambda path: path.is_symlink() and path.with_name("theirs").read_bytes() == theirs
    )


def _appended(content: bytes) -> OtherWriter:
    def act(path: Path) -> None:
        with path.open("ab") as stream:
            stream.write(content)

    return OtherWriter(act, lambda path: content in path.read_bytes())


def _special(make: Callable[[Path], object], is_kept: Callable[[Path], bool]) -> OtherWriter:
    def act(path: Path) -> None:
        path.unlink()
        make(path)

    return OtherWriter(act, is_kept)


OTHER_WRITERS = {
    "renames a longer file into place": _renamed(b"longer, " * 5000 + b"PAR1"),
    "renames a shorter file into place": _renamed(b"shorter, PAR1"),
    "renames a file of the same length into place": _renamed(bytes(len(OLD))),
    "renames a file of the new length into place": _renamed(bytes(len(NEW))),
    "rewrites the file, longer": _rewritten(b"longer, " * 5000 + b"PAR1"),
    "rewrites the file, shorter": _rewritten(b"shorter, PAR1"),
    "rewrites the file, a little shorter": _rewritten(b"~" * (len(OLD) - 100) + b"PAR1"),
    "rewrites the file at its length": _rewritten(b"~" * len(OLD)),
    "rewrites the file at the new length": _rewritten(b"~" * len(NEW)),
    "empties the file": _rewritten(b""),
    "appends": _appended(b"appended by another, PAR1"),
    "appends much": _appended(b"appended by another, " * 1000),
    "makes it a link": _linked(),
    "makes it a FIFO": _special(os.mkfifo, lambda path: path.is_fifo()),
    "makes it a folder": _special(os.mkdir, lambda path: path.is_dir()),
    "removes it": _special(lambda path: None, lambda path: not path.exists()),
}


class AtLine:
    """Calls `act` once, before the line number `at` (from 0) that runs in these files. `count` is
    how many ran."""

    def __init__(self, at: int | None, act: Callable[[], None]) -> None:
        self.at, self.act, self.count = at, act, 0

    def __enter__(self) -> AtLine:
        sys.settrace(self._call)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code: CodeType = frame.f_code
        return self._line if code.co_filename in LINES_OF else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            number, self.count = self.count, self.count + 1
            if number == self.at:
                sys.settrace(None)
                self.act()
                sys.settrace(self._call)
        return self._line


def verify(draft: LocalSource) -> None:
    """As an operation does: by what it reads."""
    if draft.read(0, draft.size) != NEW:
        raise SbbfError("nothing was changed: the new file is not what it should be")


def append_while(
    path: Path, at: int | None, act: Callable[[], None]
) -> tuple[int, SbbfError | None]:
    """Append, disturbed before that line; how many lines ran, and the error if there was one."""
    path.write_bytes(OLD)
    with LocalSource(path) as source, AtLine(at, act) as lines:
        try:
            append(source, PIECES, verify)
        except SbbfError as error:
            return lines.count, error
    return lines.count, None


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.heavy), 17])
@each("name", list(OTHER_WRITERS))
def test_another_writer_at_any_line(tmp_path, name, step):
    writer = OTHER_WRITERS[name]
    folder = tmp_path / "it"
    folder.mkdir()
    path = folder / "a.parquet"
    count, error = append_while(path, None, lambda: None)
    assert error is None
    assert path.read_bytes() == NEW
    successes = []
    for at in range(list(OTHER_WRITERS).index(name) % step, count, step):
        shutil.rmtree(folder)
        folder.mkdir()
        # What the file has when the other writer comes: success after that was none any more.
        originals: list[bytes] = []

        def act(originals: list[bytes] = originals) -> None:
            originals.append(path.read_bytes())
            writer.act(path)

        _, error = append_while(path, at, act)
        assert originals, at
        assert writer.is_kept(path), (at, error)
        assert error is None or "nothing was changed" not in str(error), (at, error)
        if error is None:
            successes.append(at)
            assert originals == [NEW], (at, "reported as done")
        # Nothing is left by which the next command would change what is there now.
        before = path.read_bytes() if path.is_file() else None
        if os.path.lexists(journal_of(str(path))) and path.is_file() and not path.is_symlink():
            recover(str(path), lambda read, end: None)
            assert path.read_bytes() == before or name.startswith("appends"), at
            assert writer.is_kept(path), at
    # Who comes after all is done undoes nothing of it.
    assert successes == [at for at in successes if at > count // 2]


@each("way", ["link", "rename and link back"])
def test_a_name_that_leads_elsewhere_before_the_file_is_opened(tmp_path, way):
    path, theirs = tmp_path / "a.parquet", tmp_path / "theirs"
    path.write_bytes(OLD)
    theirs.write_bytes(OLD)
    with LocalSource(path) as source:
        path.rename(tmp_path / "moved")
        if way == "link":
            path.symlink_to(theirs)
        else:
            theirs.rename(path)
            theirs = path
        with pytest.raises(RefusedError, match="changed"):
            append(source, PIECES, verify)
    assert theirs.read_bytes() == OLD
    assert (tmp_path / "moved").read_bytes() == OLD


# Names


@each("names", [2, 3])
def test_a_file_of_several_names_is_not_appended_to(fixtures, tmp_path, names):
    path = Path(shutil.copy(fixtures / "events.parquet", tmp_path / "a.parquet"))
    old = path.read_bytes()
    for number in range(1, names):
        os.link(path, tmp_path / f"name {number}")
    for dry_run in (True, False):
        with pytest.raises(RefusedError, match=rf"has {names} names \(hard links\).*do not append"):
            add_filters(path, ["user_id"], in_place=True, append=True, dry_run=dry_run)
    assert path.read_bytes() == old
    assert len(os.listdir(tmp_path)) == names
    assert add_filters(path, ["user_id"], in_place=True).filters


# The journal


def test_a_folder_that_cannot_be_synced_leaves_no_journal(tmp_path, monkeypatch):
    """The journal has its name by then, and may not survive a power failure: so nothing is written,
    and it goes."""
    path = tmp_path / "a.parquet"
    path.write_bytes(OLD)
    real = os.fsync

    def fsync(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(5, "Input/output error")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with (
        LocalSource(path) as source,
        pytest.raises(
            SbbfError, match="the journal cannot be written beside the file: input/output error"
        ),
    ):
        append(source, PIECES, verify)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == [path.name]
