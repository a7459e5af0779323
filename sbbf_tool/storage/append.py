"""Append to a file in place: nothing is copied, and a journal beside the file restores it after a
crash.

    lock        lock the descriptor that writes; without a lock, nothing is appended
    journal     write the journal to disk before the first byte of the file changes
    append      write the new bytes, and call fsync before and after the last eight: no reader finds
                a footer without its filters
    verify      read the file as any other reader would
    forget      remove the journal: only now is the change final

During the append, other readers see a file without a footer. If a journal remains and no process
has the lock, the file must be truncated to its old length, unless another writer has changed it
since: the old bytes differ, or the file is longer than the new one, or it is complete but is not
the new one. Other programs ignore the lock: `append` writes only to the file that was read, and
truncates only its own bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from sbbf_tool.errors import ChangedError, RefusedError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.journal import (
    TAIL_BYTES,
    EnsureFooter,
    Journal,
    build_journal,
    journal_of,
    read_journal,
)
from sbbf_tool.storage.journal import parse_journal as parse_journal
from sbbf_tool.storage.local import remove_stale_checksum, sync_name, temporary_file
from sbbf_tool.storage.source import LocalSource, Piece, PlannedSource, Source
from sbbf_tool.storage.system_calls import (
    READ,
    close,
    ensure_can_change,
    is_locked,
    is_open_file,
    kind_of,
    leads_to,
    lock,
    open_to_change,
    read_at,
    reason_of,
    sync,
    sync_folder,
    write_all,
)

_BLOCK_BYTES = 1 << 20
_END_BYTES = 8
"""Without the last bytes of a Parquet file, the length of its footer and the magic, no reader takes
it for one."""


def append(
    source: LocalSource, pieces: Sequence[Piece], verify: Callable[[LocalSource], None]
) -> list[str]:
    """Append `pieces` to the source's file in place, and keep them only if `verify` accepts the
    result. Returns warnings as text.

    Raises RefusedError and WriteError. In both cases the file is truncated to its old length; if
    even that fails, the next `recover` truncates it. Bytes that another writer added in the
    meantime stay.
    """
    real = os.path.realpath(source.name)
    with _lock_file(source.name, real) as fd:
        # The path may name another file than when the source was opened.
        if not is_open_file(source._stat, fd) or not source.is_unchanged():
            raise ChangedError.after_open(source.name)
        tail = _Tail(source, real, fd, pieces)
        try:
            with _keep_journal(tail):
                try:
                    tail.write()
                    with LocalSource(source.name) as new_file:
                        tail.ensure_whole(new_file)
                        verify(new_file)
                        tail.ensure_whole(new_file)
                except BaseException as error:
                    tail.undo()
                    if isinstance(error, OSError):
                        raise WriteError(
                            reason_of(error),
                            file=source.name,
                            hint="the file was truncated to its old length",
                        ) from error
                    raise
        except OSError as error:
            hint = "the next change to this file, such as repair, truncates it to its old length"
            raise WriteError(
                f"the append could not be finished: {reason_of(error)}", file=source.name, hint=hint
            ) from error
    return sync_name(real, source.name)


def ensure_appendable(name: str) -> None:
    """Raise RefusedError if a file cannot be appended to, as far as this can be checked in
    advance."""
    # On an overlay file system, opening a file for writing copies it to the upper layer; this must
    # happen before the file is read.
    if os.path.isfile(name):
        with _lock_file(name, os.path.realpath(name)):
            pass


def recover(path: str, ensure_footer: EnsureFooter, *, changes: bool = True) -> int | None:
    """Truncate a file to the length that the journal of an interrupted append records; without
    `changes`, only determine this length.

    Returns that length, or None if there is nothing to do. If another writer has changed the file
    since, its journal is removed and the file does not change. Raises WriteError, RefusedError if
    the journal cannot be trusted, and ChangedError if the append is still running.
    """
    # Read before opening the file for writing, so that a forged journal is reported even if this
    # user may not write the file.
    if read_journal(path) is None:
        return None
    real = os.path.realpath(path)
    if changes:
        ensure_can_change(path)
    try:
        fd = open_to_change(real) if changes else os.open(real, READ)
    except OSError as error:
        reason = (
            "an append was interrupted, and the file cannot be truncated to its old length: "
            f"{reason_of(error)}"
        )
        raise WriteError(reason, file=path, hint="make it writable") from error
    try:
        if changes:
            return _undo_append(path, real, fd, ensure_footer)
        return _find_old_length(path, fd, ensure_footer)
    except OSError as error:
        raise WriteError(reason_of(error), file=path) from error
    finally:
        close(fd)


def _undo_append(path: str, real: str, fd: int, ensure_footer: EnsureFooter) -> int | None:
    """Truncate the open file and remove its journal: see `recover`. Raises OSError."""
    _lock(fd, path, "appending to")
    # The process that held the lock until now may have finished.
    journal = read_journal(path, fd)
    if journal is None:
        return None
    length = journal.old_length(path, fd, ensure_footer)
    if not leads_to(real, fd):
        raise ChangedError(
            "another process replaced the file", file=path, hint="run the command again"
        )
    if length is not None:
        _truncate(fd, length)
    with suppress(FileNotFoundError):
        os.unlink(journal_of(real))
    sync_folder(os.path.dirname(real))
    return length


def _find_old_length(path: str, fd: int, ensure_footer: EnsureFooter) -> int | None:
    """Return the length to which the open file is to be truncated; None if there is nothing to
    do."""
    if is_locked(fd):
        hint = "wait until it has finished, and run the command again"
        raise ChangedError("another process is appending to this file", file=path, hint=hint)
    # The process that held the lock until now may have finished.
    journal = read_journal(path, fd)
    return None if journal is None else journal.old_length(path, fd, ensure_footer)


@contextmanager
def _lock_file(name: str, real: str) -> Iterator[int]:
    """Yield a descriptor of the file, open for appending and locked. Raises RefusedError."""
    try:
        fd = open_to_change(real, os.O_APPEND)
    except OSError as error:
        raise RefusedError(
            f"the file cannot be written: {reason_of(error)}", file=name, hint=ELSEWHERE
        ) from error
    try:
        names = _lock(fd, name, "writing").st_nlink
        if names > 1:
            # The journal is beside one of the names.
            reason = (
                f"the file has {names} names (hard links), and an interrupted append can be undone "
                "through only one of them"
            )
            raise RefusedError(reason, file=name, hint=f"do not append, or {ELSEWHERE}")
        yield fd
    finally:
        close(fd)


def _lock(fd: int, name: str, work: str) -> os.stat_result:
    """Lock a file and return its status."""
    try:
        lock(fd, name, work)
        return os.fstat(fd)
    except OSError as error:
        hint = "without a lock, two processes could change the file at the same time"
        raise RefusedError(
            f"the file cannot be locked: {reason_of(error)}", file=name, hint=hint
        ) from error


class _Tail:
    """The bytes to append to a file, and whether any of them are written. `fd` is open for
    appending."""

    def __init__(self, source: LocalSource, real: str, fd: int, pieces: Sequence[Piece]) -> None:
        self.source = source
        self.real = real
        self.fd = fd
        self.new = PlannedSource(source.name, source, source.size, pieces)
        self.is_written = False
        self.journal = Journal(
            source.size, _last_bytes(source, 0), self.new.size, _last_bytes(self.new, source.size)
        )
        # Where the bytes that this process has written begin and end, and how far from their place
        # in `new`.
        self._start = source.size
        self._end = self.new.size
        self._shift = 0

    def write(self) -> None:
        """Write the blocks at the end of the file. Raises ChangedError if the file changed after it
        was locked, and OSError."""
        remove_stale_checksum(self.real)
        if not self.source.is_unchanged():
            raise ChangedError.after_open(self.source.name)
        self.is_written = True
        end = self.source.size
        start_of_end = self.new.size - _END_BYTES
        while end < self.new.size:
            if end == start_of_end:
                sync(self.fd)
            if os.fstat(self.fd).st_size != end:
                raise ChangedError.after_open(self.source.name)
            next_stop = start_of_end if end < start_of_end else self.new.size
            block = self.new.read(end, min(_BLOCK_BYTES, next_stop - end))
            write_all(self.fd, block)
            end += len(block)
            position = os.lseek(self.fd, 0, os.SEEK_CUR)
            if position != end:
                # Another writer changed the file's length between the check and the write.
                self._start = position - len(block)
                self._end = position
                self._shift = end - position
                raise ChangedError.after_open(self.source.name)
        sync(self.fd)

    def ensure_whole(self, new_file: LocalSource) -> None:
        """Raise ChangedError if the path names another file than the one that is open, or its size
        is not that of the new file."""
        is_same = is_open_file(new_file._stat, self.fd) and leads_to(self.real, self.fd)
        if not is_same or os.fstat(self.fd).st_size != self.new.size:
            raise ChangedError.after_open(self.source.name)

    def undo(self) -> None:
        """Truncate the written bytes. Raises ChangedError if another writer changed the file (its
        bytes stay), and OSError."""
        if not self.is_written:
            return
        is_own = self._is_own_end()
        if is_own:
            _truncate(self.fd, self._start)
        self.is_written = False
        size = self.source.size
        old_end = self.journal.ends_with
        is_restored = (
            is_own
            and self._start == size
            and read_at(self.fd, len(old_end), size - len(old_end)) == old_end
        )
        if not is_restored:
            reason = (
                "another process wrote to the file during the append; its bytes are still there"
            )
            raise ChangedError(
                reason,
                file=self.source.name,
                hint="wait until it has finished, check the file, and run the command again",
            )

    def _is_own_end(self) -> bool:
        """Return whether the file has from the start on only bytes that this process has
        written."""
        position = self._start
        size = os.fstat(self.fd).st_size
        end = min(size, self._end)
        while position < end:
            expected = self.new.read(position + self._shift, min(_BLOCK_BYTES, end - position))
            if read_at(self.fd, len(expected), position) != expected:
                return False
            position += len(expected)
        return position == size


@contextmanager
def _keep_journal(tail: _Tail) -> Iterator[None]:
    """Keep the journal on disk while the block runs; it stays if the process dies or the file
    cannot be truncated."""
    source = tail.source
    path = journal_of(tail.real)
    is_placed = is_accepted = False
    try:
        try:
            with temporary_file(tail.real, source.name, is_locked_here=True) as (temporary, fd):
                write_all(fd, build_journal(tail.journal))
                with suppress(OSError):
                    # The file's owner can then undo an append that another user began. Only root
                    # may change the owner.
                    os.fchown(fd, source._stat.st_uid, -1)
                sync(fd)
                os.rename(temporary, path)
                is_placed = True
            sync_folder(os.path.dirname(path))
        except OSError as error:
            hint = "without a journal, a crash during the append could not be undone"
            raise kind_of(error)(
                f"the journal cannot be written beside the file: {reason_of(error)}",
                file=source.name,
                hint=hint,
            ) from error
        yield
        is_accepted = True
    finally:
        if is_accepted:
            with suppress(FileNotFoundError):
                os.unlink(path)
        elif is_placed and not tail.is_written:
            # Of a file that is complete, the journal may stay: the next command tries again.
            with suppress(OSError):
                os.unlink(path)


def _truncate(fd: int, length: int) -> None:
    os.ftruncate(fd, length)
    sync(fd)


def _last_bytes(source: Source, start: int) -> bytes:
    """Return the last bytes of a source, as many as a journal stores, none of them before
    `start`."""
    start = max(start, source.size - TAIL_BYTES)
    return source.read(start, source.size - start)
