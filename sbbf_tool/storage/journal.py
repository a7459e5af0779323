"""The journal of an append: the state before the append, stored beside the file while it changes.

    .NAME.sbbf-journal      JSON: `length` and `ends_with` of the old file; `new_length` and `new_ends_with` of the new file

Any user who may create files in a folder can put such a file there, and a journal determines the length to which a file is truncated. So it
counts only if it is a regular file with one name, of at most 4 KiB, that its group and others cannot write, and that belongs to the owner
of the Parquet file, to this user or to root; and if the file has those bytes before that length, and a footer that ends there.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from sbbf_tool.display import quote_word
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.storage.system_calls import NO_FOLLOW, READ, close, read_all, read_at, reason_of, user_id

TAIL_BYTES = 64
"""Number of last bytes of a file that its journal stores."""
_LARGEST = 4 << 10
_SMALLEST_FILE = 12
_MAGICS = (b"PAR1", b"PARE")
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP)

EnsureFooter = Callable[[Callable[[int, int], bytes], int], None]
"""Callable that takes a function to read a file by offset and length, and raises UnreadableError unless a footer ends at the given byte."""


class Journal(NamedTuple):
    length: int
    ends_with: bytes
    new_length: int
    new_ends_with: bytes

    def old_length(self, path: str, fd: int, ensure_footer: EnsureFooter) -> int | None:
        """Return the length to truncate the open file to, or None if another writer replaced the file or wrote after its old bytes.

        Raises RefusedError if no footer ends at that length.
        """
        size = os.fstat(fd).st_size
        if not self.length <= size <= self.new_length or _bytes_before(fd, self.length, self.ends_with) != self.ends_with:
            return None
        if not (size == self.length or self._is_own_end(fd, size)) and _bytes_before(fd, size, _MAGICS[0]) == self.ends_with[-4:]:
            with suppress(UnreadableError):
                ensure_footer(partial(_read, fd), size)
                return None
        try:
            ensure_footer(partial(_read, fd), self.length)
        except UnreadableError as error:
            rule = f"its length is {self.length:,} bytes, but no footer ends there ({error.message})"
            raise trust_error(path, None, rule) from error
        return self.length

    def _is_own_end(self, fd: int, size: int) -> bool:
        """Return whether the file ends as the append lets it end; after a loss of power, bytes that did not reach the disk are zeros."""
        end, own_end = _bytes_before(fd, size, self.new_ends_with), self.new_ends_with
        return size == self.new_length and len(end) == len(own_end) and all(map(lambda byte, own: byte in (0, own), end, own_end))


def journal_of(path: str) -> str:
    """Return the path of a file's journal, whether or not it exists."""
    folder, base = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{base}.sbbf-journal")


def read_journal(path: str, fd: int | None = None) -> Journal | None:
    """Read the journal of the file at `path`, which may be open as `fd`; None if there is none. Raises RefusedError if it breaks a rule."""
    status = None
    try:
        status = os.lstat(journal_of(path))
        owner = os.stat(path if fd is None else fd).st_uid
        _ensure_ours(path, status, owner)
        # Another file may replace the journal after this check.
        journal_fd = os.open(journal_of(path), READ | NO_FOLLOW)
        try:
            status = os.fstat(journal_fd)
            if status.st_nlink == 0:
                return None  # its append has ended in the meantime
            _ensure_ours(path, status, owner)
            return parse_journal(read_at(journal_fd, _LARGEST, 0))
        finally:
            close(journal_fd)
    except OSError as error:
        if isinstance(error, FileNotFoundError) or (status is None and error.errno in _ABSENT):
            return None
        raise trust_error(path, status, f"it cannot be read ({reason_of(error)})") from error
    except ValueError as error:
        raise trust_error(path, status, str(error)) from None


def build_journal(journal: Journal) -> bytes:
    return json.dumps({name: value.hex() if isinstance(value, bytes) else value for name, value in journal._asdict().items()}).encode()


def parse_journal(data: bytes) -> Journal:
    """Parse a journal. Raises ValueError."""
    try:
        entry = json.loads(data.decode("ascii"))
        journal = Journal(entry["length"], bytes.fromhex(entry["ends_with"]), entry["new_length"], bytes.fromhex(entry["new_ends_with"]))
        is_sound = (
            type(journal.length) is type(journal.new_length) is int
            and _SMALLEST_FILE <= journal.length <= journal.new_length
            and len(journal.ends_with) == min(TAIL_BYTES, journal.length)
            and journal.ends_with.endswith(_MAGICS)
        )
    except (ValueError, RecursionError, LookupError, TypeError):
        is_sound = False
    if not is_sound:
        raise ValueError("it is not a journal as sbbf writes it")
    return journal


def _ensure_ours(path: str, status: os.stat_result, owner: int) -> None:
    rules = (
        (stat.S_ISREG(status.st_mode), "it is not a regular file"),
        (status.st_uid in (owner, user_id(), 0), "it belongs neither to the file's owner, nor to you, nor to root"),
        (not status.st_mode & 0o022, f"its group or other users can write it (mode {stat.S_IMODE(status.st_mode):04o})"),
        (status.st_nlink == 1, f"it has {status.st_nlink} names (hard links)"),
        (status.st_size <= _LARGEST, f"it has {status.st_size:,} bytes, but a journal has at most {_LARGEST:,}"),
    )
    for is_kept, rule in rules:
        if not is_kept:
            raise trust_error(path, status, rule)


def trust_error(path: str, status: os.stat_result | None, rule: str) -> RefusedError:
    """Return the error for a journal that breaks a rule."""
    owner = "" if status is None else f", which belongs to user {status.st_uid},"
    reason = f"the journal {journal_of(path)}{owner} cannot be trusted: {rule}"
    return RefusedError(reason, file=path, hint=f"if no append was interrupted, remove it: rm {quote_word(journal_of(path))}")


def _bytes_before(fd: int, end: int, like: bytes) -> bytes:
    """Read as many bytes before `end` as `like` has."""
    return read_at(fd, len(like), end - len(like)) if end >= len(like) else b""


def _read(fd: int, offset: int, length: int) -> bytes:
    data = read_all(fd, length, offset)
    if len(data) < length:
        raise UnreadableError("the file became shorter while it was read", place=f"byte {offset + len(data):,}")
    return data
