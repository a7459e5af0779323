"""Append to a file in place: nothing is copied, and a journal beside the file restores it after a crash.

    lock        lock the descriptor that writes; without a lock, nothing is appended
    journal     write the journal to disk before the first byte of the file changes; see `journal`
    append      write the new bytes after the old ones, and call fsync before and after the last eight: after a loss of power no reader
                finds a footer whose filters did not reach the disk
    verify      read the file as any other reader would
    forget      remove the journal: only now is the change final

During the append, other readers see a file without a footer; `local.replace` avoids this. If a journal remains and no process has the lock,
the file must be truncated to its old length, unless another writer has changed it since: the old bytes differ, or the file is longer than
the new one, or it is complete but is not the new one. After a loss of power, any of the appended bytes may be zeros, also before the last.

Other programs ignore the lock. So `append` writes only to the file that was read, and truncates only its own bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from sbbf_tool.errors import ChangedError, RefusedError, UnreadableError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.journal import (
    TAIL_BYTES,
    EnsureFooter,
    Journal,
    build_journal,
    ensure_footer_there,
    has_journal,
    journal_of,
    read_journal,
)
from sbbf_tool.storage.local import LocalSource, remove_stale_checksum
from sbbf_tool.storage.locks import is_locked, is_open_file, leads_to, lock, open_to_change
from sbbf_tool.storage.source import Bytes, Piece, blocks_of
from sbbf_tool.storage.system_calls import READ, ensure_can_change, read_at, sync
from sbbf_tool.storage.system_errors import FORBIDDEN, close, reason_of
from sbbf_tool.storage.temporary import sync_folder, temporary_file, write_all

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
                except OSError as error:
                    tail.undo()
                    raise WriteError(reason_of(error), file=source.name, hint="the file was truncated to its old length") from error
                except BaseException:
                    tail.undo()
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
    if not has_journal(path):
        return None
    ensure_can_change(path)
    real = os.path.realpath(path)
    try:
        # Read before opening the file for writing, so that a forged journal is reported even if this user may not write the file.
        read_journal(path, os.stat(real).st_uid)
        fd = open_to_change(real)
    except OSError as error:
        raise WriteError(
            f"an append was interrupted, and the file cannot be truncated to its old length: {reason_of(error)}",
            file=path,
            hint="make it writable",
        ) from error
    try:
        _lock(fd, path, "appending to", "without a lock, sbbf cannot determine whether the append is still running")
        journal = read_journal(path, os.fstat(fd).st_uid)
        if journal is None:
            # The process that held the lock until now has finished.
            return None
        length = journal.old_length(fd, ensure_footer)
        if length is not None:
            ensure_footer_there(path, journal, fd, ensure_footer)
        if not leads_to(real, fd):
            raise ChangedError("another process replaced the file", file=path, hint="run the command again")
        if length is not None:
            _truncate(fd, length)
        with suppress(FileNotFoundError):
            os.unlink(journal_of(real))
        sync_folder(os.path.dirname(real))
    except OSError as error:
        raise WriteError(reason_of(error), file=path) from error
    finally:
        close(fd)
    return length


def interrupted_length(path: str, ensure_footer: EnsureFooter) -> int | None:
    """Return the length that `recover` would truncate this file to, or None if it would not change the file. Changes nothing.

    Raises ChangedError if the append is still running, and RefusedError if the journal cannot be trusted.
    """
    if not has_journal(path):
        return None
    try:
        fd = os.open(path, READ)
    except OSError as error:
        raise UnreadableError(reason_of(error), file=path) from error
    try:
        journal = read_journal(path, os.fstat(fd).st_uid)
        if journal is not None and is_locked(fd):
            raise ChangedError(
                "another process is appending to this file", file=path, hint="wait until it has finished, and run the command again"
            )
        # The append may have ended, and removed its journal, since the journal was read.
        journal = read_journal(path, os.fstat(fd).st_uid)
        length = journal.old_length(fd, ensure_footer) if journal is not None else None
        if journal is not None and length is not None:
            ensure_footer_there(path, journal, fd, ensure_footer)
        return length
    except OSError as error:
        raise UnreadableError(reason_of(error), file=path) from error
    finally:
        close(fd)


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
            # The journal is stored beside one of the names; a process that opens the file by another name does not find it.
            reason = f"the file has {names} names (hard links), and an interrupted append can be undone through only one of them"
            hint = f"do not append, or {ELSEWHERE}"
            raise RefusedError(reason, file=name, hint=hint)
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
    if not leads_to(real, fd) or os.fstat(fd).st_size != source.size + tail.length:
        raise ChangedError.after_open(source.name)


class _Tail:
    """The bytes to append to a file, and whether any of them are written. `fd` is open for appending."""

    def __init__(self, source: LocalSource, fd: int, pieces: Sequence[Piece]) -> None:
        self.source = source
        self.fd = fd
        self.pieces = pieces
        self.length = sum(map(len, pieces))
        self.is_written = False
        self._stray_block: tuple[int, Bytes] | None = None
        remembered = min(source.size, TAIL_BYTES)
        self._old_end = source.read(source.size - remembered, remembered)

    def journal(self) -> Journal:
        return Journal(self.source.size, self._old_end, self.source.size + self.length, _last_bytes(self.pieces))

    def write(self, real: str) -> None:
        """Write the blocks at the end of the file. Raises ChangedError if the file changed after it was locked, and OSError."""
        remove_stale_checksum(real)
        if not self.source.is_unchanged():
            raise ChangedError.after_open(self.source.name)
        self.is_written = True
        end, start_of_end = self.source.size, self.source.size + self.length - _END_BYTES
        for block in filter(len, _split(blocks_of(self.pieces), self.length - _END_BYTES)):
            if end == start_of_end:
                sync(self.fd)
            if os.fstat(self.fd).st_size != end:
                raise ChangedError.after_open(self.source.name)
            write_all(self.fd, block)
            end += len(block)
            if (position := os.lseek(self.fd, 0, os.SEEK_CUR)) != end:
                # Another writer changed the file's length between the check and the write.
                self._stray_block = position - len(block), block
                raise ChangedError.after_open(self.source.name)
        sync(self.fd)

    def undo(self) -> None:
        """Truncate the written bytes. Raises ChangedError if another writer changed the file (its bytes stay), and OSError."""
        if not self.is_written:
            return
        start = self._find_start()
        if start is not None:
            _truncate(self.fd, start)
        self.is_written = False
        size = self.source.size
        if start != size or read_at(self.fd, len(self._old_end), size - len(self._old_end)) != self._old_end:
            reason = "another process wrote to the file during the append; its bytes are still there"
            raise ChangedError(reason, file=self.source.name, hint="wait until it has finished, check the file, and run the command again")

    def _find_start(self) -> int | None:
        """Return the byte at which this tail begins, or None if another writer's bytes are in it or after it."""
        size = os.fstat(self.fd).st_size
        start, blocks = (
            (self.source.size, blocks_of(self.pieces)) if self._stray_block is None else (self._stray_block[0], [self._stray_block[1]])
        )
        return start if self._holds_blocks(start, size, blocks) else None

    def _holds_blocks(self, start: int, end: int, blocks: Iterable[Bytes]) -> bool:
        """Return whether the file's bytes from `start` to `end` are the first bytes of these blocks."""
        for block in blocks:
            expected = memoryview(block).cast("B")[: max(0, end - start)]
            if not expected:
                break
            if read_at(self.fd, len(expected), start) != expected:
                return False
            start += len(expected)
        return start == end


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
        if is_accepted:
            with suppress(FileNotFoundError):
                os.unlink(path)
        elif is_placed and not tail.is_written:
            # If the journal cannot be removed, the next command tries again: it describes a file that is already complete.
            with suppress(OSError):
                os.unlink(path)


def _split(blocks: Iterable[Bytes], place: int) -> Iterator[Bytes]:
    """Yield the bytes of these blocks, so that a block begins at `place`, counted from the first byte."""
    for block in blocks:
        view = memoryview(block).cast("B")
        if 0 < place < len(view):
            yield view[:place]
            yield view[place:]
        else:
            yield view
        place -= len(view)


def _truncate(fd: int, length: int) -> None:
    os.ftruncate(fd, length)
    sync(fd)


def _last_bytes(pieces: Sequence[Piece]) -> bytes:
    last = b""
    for piece in reversed(pieces):
        start = max(0, len(piece) - TAIL_BYTES)
        last = (bytes(piece[start:]) if isinstance(piece, Bytes) else piece.read(start, len(piece) - start)) + last
        if len(last) >= TAIL_BYTES:
            break
    return last[-TAIL_BYTES:]
