"""Appending to a file where it stands: nothing is copied, and a journal beside the file makes it whole again after a crash.

    journal     `.NAME.sbbf-journal`, on disk before the first byte of the file changes: the old length, and the bytes it ended with
    append      the new bytes, behind the old ones, then fsync
    verify      as a stranger would
    forget      remove the journal: only now does the change count

While the bytes arrive, other readers see a file without a footer; that is the price, and `local.replace` does not have it. A journal
that is still there afterwards, and that no living process holds, means "cut back to the old length".
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from sbbf_tool.errors import RefusedError, UnreadableError, WriteError
from sbbf_tool.storage.local import LocalSource, reason_of, remove_stale_checksum, sole_writer, sync_folder, write_all

JOURNAL_SUFFIX = ".sbbf-journal"
_REMEMBERED_BYTES = 64


def append(source: LocalSource, pieces: Iterable[bytes | bytearray | memoryview], verify: Callable[[LocalSource], None]) -> None:
    """Put `pieces` behind the source's bytes in the file itself, and keep them only if `verify` accepts the result.

    Raises RefusedError (another writer, source changed, no permission) and WriteError (disk full and the like); the file has its old
    length again in both cases.
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
            with _journal(source, real):
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
        finally:
            os.close(fd)


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


def journal_of(path: str) -> str:
    """Where the journal of a file is, or would be."""
    folder, base = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{base}{JOURNAL_SUFFIX}")


@contextmanager
def _journal(source: LocalSource, real: str) -> Iterator[None]:
    """The journal, on disk while the block runs; it stays where the process dies in it."""
    path = journal_of(real)
    remembered = min(source.size, _REMEMBERED_BYTES)
    entry = {"length": source.size, "ends_with": source.read(source.size - remembered, remembered).hex()}
    temporary = f"{path}.{os.urandom(4).hex()}"
    try:
        with open(temporary, "x", encoding="ascii") as stream:
            json.dump(entry, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise RefusedError(
            f"no journal can be written beside it: {reason_of(error)}", file=source.name, hint="without one a crash could not be undone"
        ) from error
    accepted = False
    try:
        yield
        accepted = True
    finally:
        # Longer than before without having been accepted: only a cut that failed leaves it so, and then the journal must stay.
        if accepted or os.stat(real).st_size == source.size:
            os.unlink(path)
            sync_folder(os.path.dirname(path))


def _append(source: LocalSource, fd: int, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    remove_stale_checksum(os.path.realpath(source.name))
    os.lseek(fd, source.size, os.SEEK_SET)
    for piece in pieces:
        write_all(fd, piece)
    os.fsync(fd)


def _cut(fd: int, length: int) -> None:
    os.ftruncate(fd, length)
    os.fsync(fd)


def _remembered_length(journal: str, fd: int) -> int | None:
    """The old length, if this file had it and ended then with what the journal says."""
    try:
        with open(journal, encoding="ascii") as stream:
            entry = json.load(stream)
        length, ends_with = int(entry["length"]), bytes.fromhex(entry["ends_with"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"a journal that cannot be read ({type(error).__name__})", file=journal, hint="remove it") from error
    if os.fstat(fd).st_size < length or os.pread(fd, len(ends_with), length - len(ends_with)) != ends_with:
        return None
    return length
