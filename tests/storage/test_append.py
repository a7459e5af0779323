"""Appending in place: the file is the old one or the new one afterwards, whatever fails in
between."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from sbbf_tool import RefusedError, UnreadableError, WriteError
from sbbf_tool.storage import append as append_module
from sbbf_tool.storage.append import append, recover
from sbbf_tool.storage.source import LocalSource
from sbbf_tool.storage.system_calls import write_all
from support.tables import each

OLD = b"the old bytes, as long as they may be; " * 10 + b"PAR1"


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "some.parquet"
    file.write_bytes(OLD)
    return file


def accept(draft: LocalSource) -> None:
    pass


def any_footer(read, end: int) -> None:
    """test_journal covers what `recover` requires of a file; these files have no footer."""


def test_appends_and_forgets_the_journal(path):
    with LocalSource(path) as source:
        append(source, [b"new ", bytearray(b"bytes")], accept)
    assert path.read_bytes() == OLD + b"new bytes"
    assert os.listdir(path.parent) == [path.name]


def test_what_is_not_accepted_is_cut_off_again(path):
    def refuse(draft: LocalSource) -> None:
        raise UnreadableError("not this")

    with LocalSource(path) as source, pytest.raises(UnreadableError, match="not this"):
        append(source, [b"new"], refuse)
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


def test_a_second_concurrent_append_is_refused(path):
    refused = []
    with LocalSource(path) as source, LocalSource(path) as second:

        def meanwhile(draft: LocalSource) -> None:
            with pytest.raises(RefusedError, match="another process is writing"):
                append(second, [b"mine"], accept)
            refused.append(draft.size)

        append(source, [b"new"], meanwhile)
    assert refused == [len(OLD) + 3]
    assert path.read_bytes() == OLD + b"new"


@each("number, kind", [(errno.ENOSPC, WriteError), (errno.EROFS, RefusedError)])
def test_without_a_journal_the_file_does_not_change(path, monkeypatch, number, kind):
    def fail(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(append_module.os, "fsync", fail)
    with LocalSource(path) as source, pytest.raises(kind, match="the journal cannot be written"):
        append(source, [b"new"], accept)
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


def killed_while(path, moment: str) -> None:
    """A process that appends to the file, killed at that moment: with its bytes half written, or
    written and not yet accepted."""
    if child := os.fork():
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        return

    def die(*written: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def write(fd: int, piece: bytes) -> None:
        write_all(fd, piece)
        if piece == b"half of it" and moment == "writing":
            die()

    append_module.write_all = write
    append(LocalSource(path), [b"half of it", b"and the rest of it, PAR1"], die)


@each("moment", ["writing", "verifying"])
def test_recover_truncates_the_append_of_a_killed_process(path, moment):
    killed_while(path, moment)
    assert path.read_bytes() != OLD
    assert recover(str(path), any_footer) == len(OLD)
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]
    assert recover(str(path), any_footer) is None


@each("moment", ["writing", "verifying"])
@each("behind", [b"somebody else's, PAR1", b"x" * 1000, b"x" * 1000 + b"PAR1"])
def test_recover_keeps_bytes_that_another_program_put_after_the_old_ones(path, moment, behind):
    killed_while(path, moment)
    path.write_bytes(OLD + behind)
    assert recover(str(path), any_footer) is None
    assert path.read_bytes() == OLD + behind
    assert os.listdir(path.parent) == [path.name]


def test_recover_takes_away_a_part_that_a_crash_kept_back(path):
    """After a power failure a file may have its new length and zeros at its end."""
    killed_while(path, "verifying")
    with path.open("r+b") as stream:
        stream.seek(-10, os.SEEK_END)
        stream.write(bytes(10))
    assert recover(str(path), any_footer) == len(OLD)
    assert path.read_bytes() == OLD


def test_a_file_without_write_permission_is_refused(path):
    if os.geteuid() == 0:
        pytest.skip("root may write every file")
    path.chmod(0o444)
    with LocalSource(path) as source, pytest.raises(RefusedError, match="cannot be written"):
        append(source, [b"new"], accept)


def test_a_journal_whose_file_is_gone_is_not_followed(path):
    killed_while(path, "writing")
    os.rename(path, path.with_name("elsewhere"))
    assert recover(str(path), any_footer) is None
    path.mkdir()
    with pytest.raises(WriteError, match="cannot be truncated"):
        recover(str(path), any_footer)
