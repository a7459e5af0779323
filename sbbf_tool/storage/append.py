"""Appending to a file where it stands: nothing is copied, and a journal beside the file makes it whole again after a crash.

    journal     `.NAME.sbbf-journal`, on disk before the first byte of the file changes: length and last bytes, those it had and those
                it shall have
    append      the new bytes, behind the old ones, then fsync
    verify      as a stranger would
    forget      remove the journal: only now does the change count

While the bytes arrive, other readers see a file without a footer; that is the price, and `local.replace` does not have it. A journal
that is still there afterwards, and that no living process holds, means "cut back to the old length", unless what stands there now is
none of ours: a file that is longer, or as whole as the old one was and not the one that was being made.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from sbbf_tool.errors import RefusedError, UnreadableError, WriteError
from sbbf_tool.storage.local import LocalSource, remove_stale_checksum, sole_writer
from sbbf_tool.storage.source import Bytes, Piece, blocks_of
from sbbf_tool.storage.system_errors import FORBIDDEN, reason_of
from sbbf_tool.storage.temporary import sync_folder, temporary_file, write_all

JOURNAL_SUFFIX = ".sbbf-journal"
_REMEMBERED_BYTES = 64
_MAGIC_BYTES = 4
"""By which a whole file ends."""


def append(source: LocalSource, pieces: Sequence[Piece], verify: Callable[[LocalSource], None]) -> list[str]:
    """Put `pieces` behind the source's bytes in the file itself, and keep them only if `verify` accepts the result.

    Answers with warnings in words. Raises RefusedError (another writer, source changed, no permission) and WriteError (disk full and
    the like); the file has its old length again in both cases, or, where the disk refuses even that, after the next `recover`.
    """
    real = os.path.realpath(source.name)
    with sole_writer(source):
        if not source.is_unchanged():
            raise RefusedError("the file changed while it was worked on", file=source.name, hint="run the command again")
        try:
            fd = os.open(real, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RefusedError(f"cannot be written: {reason_of(error)}", file=source.name, hint="write elsewhere with -o") from error
        try:
            with _journal(source, real, pieces):
                try:
                    _append(source, fd, pieces)
                    with LocalSource(source.name) as written:
                        verify(written)
                except OSError as error:
                    _cut(fd, source.size)
                    raise WriteError(reason_of(error), file=source.name, hint="the file was cut back to what it was") from error
                except BaseException:
                    _cut(fd, source.size)
                    raise
        except OSError as error:
            hint = "the next command on this file, or sbbf repair, cuts it back to what it was"
            raise WriteError(f"the append could not be finished: {reason_of(error)}", file=source.name, hint=hint) from error
        finally:
            os.close(fd)
    try:
        sync_folder(os.path.dirname(real))
    except OSError as error:
        return [f"{source.name}: is in place, but may not survive a power failure: {reason_of(error)}"]
    return []


def recover(path: str) -> int | None:
    """Cut a file back to the length that an interrupted append remembers; answers with that length, or None where there is nothing to do.

    A journal that does not fit the file (it was replaced since) is removed and the file left alone. Raises WriteError.
    """
    real = os.path.realpath(path)
    journal = journal_of(real)
    if not os.path.lexists(journal):
        return None
    try:
        fd = os.open(real, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise WriteError(
            f"an append was interrupted, and the file cannot be cut back: {reason_of(error)}", file=path, hint="make it writable"
        ) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError("another process is appending to this file", file=path, hint="wait for it and run again") from None
        if not os.path.lexists(journal):
            # Who held the lock until now has finished.
            return None
        length = _remembered_length(journal, fd)
        if length is not None:
            _cut(fd, length)
        with suppress(FileNotFoundError):
            os.unlink(journal)
        sync_folder(os.path.dirname(real))
    except OSError as error:
        raise WriteError(reason_of(error), file=path) from error
    finally:
        os.close(fd)
    return length


def interrupted_length(path: str) -> int | None:
    """The length that `recover` would cut this file back to; None where it would leave it alone. Only reads."""
    journal = journal_of(path)
    if not os.path.lexists(journal):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(reason_of(error), file=path) from error
    try:
        return _remembered_length(journal, fd)
    finally:
        os.close(fd)


def journal_of(path: str) -> str:
    """Where the journal of a file is, or would be."""
    folder, base = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{base}{JOURNAL_SUFFIX}")


@contextmanager
def _journal(source: LocalSource, real: str, pieces: Sequence[Piece]) -> Iterator[None]:
    """The journal, on disk while the block runs; it stays where the process dies in it."""
    path = journal_of(real)
    remembered = min(source.size, _REMEMBERED_BYTES)
    entry = {
        "length": source.size,
        "ends_with": source.read(source.size - remembered, remembered).hex(),
        "new_length": source.size + sum(map(len, pieces)),
        "new_ends_with": _last_bytes(pieces).hex(),
    }
    try:
        with temporary_file(*os.path.split(real)) as (temporary, fd):
            write_all(fd, json.dumps(entry).encode())
            os.fsync(fd)
            os.rename(temporary, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        kind = RefusedError if error.errno in FORBIDDEN else WriteError
        raise kind(
            f"no journal can be written beside it: {reason_of(error)}", file=source.name, hint="without one a crash could not be undone"
        ) from error
    accepted = False
    try:
        yield
        accepted = True
    finally:
        # Longer than before without having been accepted: only a cut that failed leaves it so, and then the journal must stay.
        if accepted or os.stat(real).st_size == source.size:
            with suppress(FileNotFoundError):
                os.unlink(path)


def _append(source: LocalSource, fd: int, pieces: Iterable[Piece]) -> None:
    remove_stale_checksum(os.path.realpath(source.name))
    os.lseek(fd, source.size, os.SEEK_SET)
    for block in blocks_of(pieces):
        write_all(fd, block)
    os.fsync(fd)


def _cut(fd: int, length: int) -> None:
    os.ftruncate(fd, length)
    os.fsync(fd)


def _last_bytes(pieces: Sequence[Piece]) -> bytes:
    last = b""
    for piece in reversed(pieces):
        start = max(0, len(piece) - _REMEMBERED_BYTES)
        last = (bytes(piece[start:]) if isinstance(piece, Bytes) else piece.read(start, len(piece) - start)) + last
        if len(last) >= _REMEMBERED_BYTES:
            break
    return last[-_REMEMBERED_BYTES:]


def _remembered_length(journal: str, fd: int) -> int | None:
    """The old length, if this file had it and ended then with what the journal says, and nobody else has written it since."""
    try:
        with open(journal, encoding="ascii") as stream:
            entry = json.load(stream)
        length, ends_with = int(entry["length"]), bytes.fromhex(entry["ends_with"])
        new_length, new_ends_with = int(entry["new_length"]), bytes.fromhex(entry["new_ends_with"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"a journal that cannot be read ({type(error).__name__})", file=journal, hint="remove it") from error
    size = os.fstat(fd).st_size
    if not length <= size <= new_length or _bytes_before(fd, length, ends_with) != ends_with:
        return None
    is_finished = size == new_length and _bytes_before(fd, size, new_ends_with) == new_ends_with
    magic = ends_with[-_MAGIC_BYTES:]
    is_whole = _bytes_before(fd, size, magic) == magic
    return None if size > length and is_whole and not is_finished else length


def _bytes_before(fd: int, end: int, like: bytes) -> bytes:
    """As many bytes before `end` as `like` has."""
    return os.pread(fd, len(like), end - len(like)) if end >= len(like) else b""
