"""Append to a file in place: nothing is copied, and a journal beside the file restores it after a crash.

    lock        lock the descriptor that writes; without a lock, nothing is appended
    journal     write the journal to disk before the first byte of the file changes; see `journal`
    append      write the new bytes, and call fsync before and after the last eight: no reader finds a footer without its filters
    verify      read the file as any other reader would
    forget      remove the journal: only now is the change final

During the append, other readers see a file without a footer. If a journal remains and no process has the lock, the file must be truncated
to its old length, unless another writer has changed it since: the old bytes differ, or the file is longer than the new one, or it is
complete but is not the new one. Other programs ignore the lock: `append` writes only to the file that was read, and truncates only its own
bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from sbbf_tool.errors import ChangedError, RefusedError, UnreadableError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.journal import (
    TAIL_BYTES,
    EnsureFooter,
    Journal,
    build_journal,
    ensure_footer_there,
    journal_of,
    read_journal,
    status_of,
)
from sbbf_tool.storage.local import LocalSource, remove_stale_checksum
from sbbf_tool.storage.locks import is_locked, is_open_file, leads_to, lock, open_to_change
from sbbf_tool.storage.source import Piece, PlannedSource, Source
from sbbf_tool.storage.system_calls import READ, ensure_can_change, read_at, sync
from sbbf_tool.storage.system_errors import FORBIDDEN, close, reason_of
from sbbf_tool.storage.temporary import sync_folder, temporary_file, write_all

_BLOCK_BYTES = 1 << 20
_END_BYTES = 8
"""Without the last bytes of a Parquet file, the length of its footer and the magic, no reader takes it for one."""


def append(source: LocalSource, pieces: Sequence[Piece], verify: Callable[[LocalSource], None]) -> list[str]:
    """Append `pieces` to the source's file in place, and keep them only if `verify` accepts the result.

    Returns warnings as text. Raises RefusedError (another writer, source changed, no permission, no lock, several names) and WriteError
    (such as a full disk). In both cases the file is truncated to its old length; if even that fails, the next `recover` truncates it. Bytes
    that another writer added in the meantime stay.
    """
    real = os.path.realpath(source.name)
    with _lock_file(source.name, real) as fd:
        # The path may name another file than when the source was opened.
        if not is_open_file(source._stat, fd) or not source.is_unchanged():
            raise ChangedError.after_open(source.name)
        tail = _Tail(source, fd, pieces)
        try:
            with _keep_journal(source, real, tail):
                try:
                    tail.write(real)
                    _ensure_unchanged(source, real, fd, tail)
                    with LocalSource(source.name) as new_file:
                        if not is_open_file(new_file._stat, fd):
                            raise ChangedError.after_open(source.name)
                        verify(new_file)
                    _ensure_unchanged(source, real, fd, tail)
                except BaseException as error:
                    tail.undo()
                    if isinstance(error, OSError):
                        raise WriteError(reason_of(error), file=source.name, hint="the file was truncated to its old length") from error
                    raise
        except OSError as error:
            hint = "the next change to this file, such as repair, truncates it to its old length"
            raise WriteError(f"the append could not be finished: {reason_of(error)}", file=source.name, hint=hint) from error
    try:
        sync_folder(os.path.dirname(real))
    except OSError as error:
        return [f"{source.name}: the new file is in place, but may not survive a power failure: {reason_of(error)}"]
    return []


def ensure_appendable(name: str) -> None:
    """Raise RefusedError if a file cannot be appended to, as far as this can be checked in advance."""
    # On an overlay file system, opening a file for writing copies it to the upper layer; this must happen before the file is read.
    if os.path.isfile(name):
        with _lock_file(name, os.path.realpath(name)):
            pass


def recover(path: str, ensure_footer: EnsureFooter) -> int | None:
    """Truncate a file to the length that the journal of an interrupted append records.

    Returns that length, or None if there is nothing to do. If the file was replaced after the append, its journal is removed and the file
    does not change. Raises WriteError, and RefusedError if the journal cannot be trusted or the append is still running.
    """
    if status_of(path) is None:
        return None
    ensure_can_change(path)
    real = os.path.realpath(path)
    try:
        # Read before opening the file for writing, so that a forged journal is reported even if this user may not write the file.
        read_journal(path, os.stat(real).st_uid)
        fd = open_to_change(real)
    except OSError as error:
        reason = f"an append was interrupted, and the file cannot be truncated to its old length: {reason_of(error)}"
        raise WriteError(reason, file=path, hint="make it writable") from error
    try:
        _lock(fd, path, "appending to", "without a lock, sbbf cannot determine whether the append is still running")
        # The process that held the lock until now may have finished.
        if (journal := read_journal(path, os.fstat(fd).st_uid)) is None:
            return None
        length = _old_length(path, journal, fd, ensure_footer)
        if not leads_to(real, fd):
            raise ChangedError("another process replaced the file", file=path, hint="run the command again")
        if length is not None:
            _truncate(fd, length)
        with suppress(FileNotFoundError):
            os.unlink(journal_of(real))
        sync_folder(os.path.dirname(real))
        return length
    except OSError as error:
        raise WriteError(reason_of(error), file=path) from error
    finally:
        close(fd)


def interrupted_length(path: str, ensure_footer: EnsureFooter) -> int | None:
    """Return the length that `recover` would truncate this file to, or None if it would not change the file. Changes nothing.

    Raises ChangedError if the append is still running, and RefusedError if the journal cannot be trusted.
    """
    if status_of(path) is None:
        return None
    try:
        fd = os.open(path, READ)
        try:
            if read_journal(path, os.fstat(fd).st_uid) is not None and is_locked(fd):
                hint = "wait until it has finished, and run the command again"
                raise ChangedError("another process is appending to this file", file=path, hint=hint)
            # The append may have ended, and removed its journal, since the journal was read.
            journal = read_journal(path, os.fstat(fd).st_uid)
            return None if journal is None else _old_length(path, journal, fd, ensure_footer)
        finally:
            close(fd)
    except OSError as error:
        raise UnreadableError(reason_of(error), file=path) from error


def _old_length(path: str, journal: Journal, fd: int, ensure_footer: EnsureFooter) -> int | None:
    length = journal.old_length(fd, ensure_footer)
    if length is not None:
        ensure_footer_there(path, journal, fd, ensure_footer)
    return length


@contextmanager
def _lock_file(name: str, real: str) -> Iterator[int]:
    """Yield a descriptor of the file, open for appending and locked. Raises RefusedError."""
    try:
        fd = open_to_change(real, os.O_APPEND)
    except OSError as error:
        raise RefusedError(f"the file cannot be written: {reason_of(error)}", file=name, hint=ELSEWHERE) from error
    try:
        _lock(fd, name, "writing", "without a lock, concurrent appends could overwrite each other; do not append")
        try:
            names = os.fstat(fd).st_nlink
        except OSError as error:
            raise RefusedError(f"the file cannot be examined: {reason_of(error)}", file=name, hint="run the command again") from error
        if names > 1:
            # The journal is beside one of the names.
            reason = f"the file has {names} names (hard links), and an interrupted append can be undone through only one of them"
            raise RefusedError(reason, file=name, hint=f"do not append, or {ELSEWHERE}")
        yield fd
    finally:
        close(fd)


def _lock(fd: int, name: str, work: str, hint: str) -> None:
    try:
        lock(fd, name, work)
    except OSError as error:
        raise RefusedError(f"the file cannot be locked: {reason_of(error)}", file=name, hint=hint) from error


def _ensure_unchanged(source: LocalSource, real: str, fd: int, tail: _Tail) -> None:
    """Raise ChangedError if the path now names another file, or if the file is not the old one followed by the tail."""
    if not leads_to(real, fd) or os.fstat(fd).st_size != tail.new.size:
        raise ChangedError.after_open(source.name)


class _Tail:
    """The bytes to append to a file, and whether any of them are written. `fd` is open for appending."""

    def __init__(self, source: LocalSource, fd: int, pieces: Sequence[Piece]) -> None:
        self.source, self.fd = source, fd
        self.new = PlannedSource(source.name, source, source.size, pieces)
        self.is_written = False
        self._old_end = _last_bytes(source, 0)
        # Where the bytes that this process has written begin and end, and how far from their place in `new`.
        self._start, self._end, self._shift = source.size, self.new.size, 0

    def journal(self) -> Journal:
        return Journal(self.source.size, self._old_end, self.new.size, _last_bytes(self.new, self.source.size))

    def write(self, real: str) -> None:
        """Write the blocks at the end of the file. Raises ChangedError if the file changed after it was locked, and OSError."""
        remove_stale_checksum(real)
        if not self.source.is_unchanged():
            raise ChangedError.after_open(self.source.name)
        self.is_written = True
        end, start_of_end = self.source.size, self.new.size - _END_BYTES
        while end < self.new.size:
            if end == start_of_end:
                sync(self.fd)
            if os.fstat(self.fd).st_size != end:
                raise ChangedError.after_open(self.source.name)
            block = self.new.read(end, min(_BLOCK_BYTES, (start_of_end if end < start_of_end else self.new.size) - end))
            write_all(self.fd, block)
            end += len(block)
            if (position := os.lseek(self.fd, 0, os.SEEK_CUR)) != end:
                # Another writer changed the file's length between the check and the write.
                self._start, self._end, self._shift = position - len(block), position, end - position
                raise ChangedError.after_open(self.source.name)
        sync(self.fd)

    def undo(self) -> None:
        """Truncate the written bytes. Raises ChangedError if another writer changed the file (its bytes stay), and OSError."""
        if not self.is_written:
            return
        is_own = self._is_own_end()
        if is_own:
            _truncate(self.fd, self._start)
        self.is_written = False
        size, old_end = self.source.size, self._old_end
        if not is_own or self._start != size or read_at(self.fd, len(old_end), size - len(old_end)) != old_end:
            reason = "another process wrote to the file during the append; its bytes are still there"
            raise ChangedError(reason, file=self.source.name, hint="wait until it has finished, check the file, and run the command again")

    def _is_own_end(self) -> bool:
        """Return whether the file has from the start on only bytes that this process has written."""
        position, size = self._start, os.fstat(self.fd).st_size
        while position < min(size, self._end):
            expected = self.new.read(position + self._shift, min(_BLOCK_BYTES, size - position, self._end - position))
            if read_at(self.fd, len(expected), position) != expected:
                return False
            position += len(expected)
        return position == size


@contextmanager
def _keep_journal(source: LocalSource, real: str, tail: _Tail) -> Iterator[None]:
    """Keep the journal on disk while the block runs; it stays if the process dies or the file cannot be truncated."""
    path = journal_of(real)
    is_placed = is_accepted = False
    try:
        try:
            with temporary_file(*os.path.split(real)) as (temporary, fd):
                write_all(fd, build_journal(tail.journal()))
                with suppress(OSError):
                    # The file's owner can then undo an append that another user began. Only root may change the owner.
                    os.fchown(fd, source._stat.st_uid, -1)
                sync(fd)
                os.rename(temporary, path)
                is_placed = True
            sync_folder(os.path.dirname(path))
        except OSError as error:
            kind = RefusedError if error.errno in FORBIDDEN else WriteError
            hint = "without a journal, a crash during the append could not be undone"
            raise kind(f"the journal cannot be written beside the file: {reason_of(error)}", file=source.name, hint=hint) from error
        yield
        is_accepted = True
    finally:
        # Of a file that is complete, the journal may stay: the next command tries again.
        if is_accepted or (is_placed and not tail.is_written):
            with suppress(FileNotFoundError if is_accepted else OSError):
                os.unlink(path)


def _truncate(fd: int, length: int) -> None:
    os.ftruncate(fd, length)
    sync(fd)


def _last_bytes(source: Source, start: int) -> bytes:
    """Return the last bytes of a source, as many as a journal stores, none of them before `start`."""
    start = max(start, source.size - TAIL_BYTES)
    return source.read(start, source.size - start)
