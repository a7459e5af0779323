"""The journal of an append, and to which length an interrupted one is undone.

The journal `.NAME.sbbf-journal` states, in JSON, `length` and `ends_with` of the old file, and
`new_length` and `new_ends_with` of the new one. Any user who may create files in a folder can put
such a file there, and a journal determines the length to which a file is truncated. So it counts
only if it is a regular file with one name, of at most 4 KiB, that its group and others cannot
write, and that belongs to the owner of the Parquet file, to this user or to root; and if the file
has those bytes before that length, and a footer that ends there.
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
from sbbf_tool.storage.leftovers import JOURNAL_SUFFIX, MOST_JOURNAL_BYTES
from sbbf_tool.storage.system_calls import (
    NO_FOLLOW,
    READ,
    close,
    read_all,
    read_at,
    reason_of,
    user_id,
)

TAIL_BYTES = 64
"""Number of last bytes of a file that its journal stores."""
_SMALLEST_FILE = 12
_MAGICS = (b"PAR1", b"PARE")
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP)

EnsureFooter = Callable[[Callable[[int, int], bytes], int], None]
"""Callable that takes a function to read a file by offset and length, and raises UnreadableError
unless a footer ends at the given byte."""


class Journal(NamedTuple):
    length: int
    ends_with: bytes
    new_length: int
    new_ends_with: bytes

    def old_length(self, path: str, fd: int, ensure_footer: EnsureFooter) -> int | None:
        """Return the length to truncate the open file to, or None if another writer replaced the
        file or wrote after its old bytes.

        Raises RefusedError if no footer ends at that length.
        """
        size = os.fstat(fd).st_size
        if not self.length <= size <= self.new_length:
            return None
        if _bytes_before(fd, self.length, self.ends_with) != self.ends_with:
            return None
        is_own = size == self.length or self._is_own_end(fd, size)
        if not is_own and _bytes_before(fd, size, _MAGICS[0]) == self.ends_with[-4:]:
            with suppress(UnreadableError):
                ensure_footer(partial(_read, fd), size)
                return None
        try:
            ensure_footer(partial(_read, fd), self.length)
        except UnreadableError as error:
            rule = (
                f"its length is {self.length:,} bytes, but no footer ends there ({error.message})"
            )
            raise _trust_error(path, None, rule) from error
        return self.length

    def _is_own_end(self, fd: int, size: int) -> bool:
        """Return whether the file ends as the append lets it end; after a loss of power, bytes that
        did not reach the disk are zeros."""
        end = _bytes_before(fd, size, self.new_ends_with)
        if size != self.new_length or len(end) != len(self.new_ends_with):
            return False
        pairs = zip(end, self.new_ends_with, strict=True)
        return all(byte in (0, own) for byte, own in pairs)


def journal_of(path: str) -> str:
    """Return the path of a file's journal, whether or not it exists."""
    folder, base = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{base}{JOURNAL_SUFFIX}")


def read_journal(path: str, fd: int | None = None) -> Journal | None:
    """Read the journal of the file at `path`, which may be open as `fd`; None if there is none.
    Raises RefusedError if it breaks a rule."""
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
                # Its append has ended in the meantime.
                return None
            _ensure_ours(path, status, owner)
            return parse_journal(read_at(journal_fd, MOST_JOURNAL_BYTES, 0))
        finally:
            close(journal_fd)
    except OSError as error:
        if isinstance(error, FileNotFoundError) or (status is None and error.errno in _ABSENT):
            return None
        raise _trust_error(path, status, f"it cannot be read ({reason_of(error)})") from error
    except ValueError as error:
        raise _trust_error(path, status, str(error)) from None


def build_journal(journal: Journal) -> bytes:
    entry = journal._asdict()
    entry["ends_with"] = journal.ends_with.hex()
    entry["new_ends_with"] = journal.new_ends_with.hex()
    return json.dumps(entry).encode()


def parse_journal(data: bytes) -> Journal:
    """Parse a journal. Raises ValueError."""
    try:
        entry = json.loads(data.decode("ascii"))
        journal = Journal(
            entry["length"],
            bytes.fromhex(entry["ends_with"]),
            entry["new_length"],
            bytes.fromhex(entry["new_ends_with"]),
        )
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
        (
            status.st_uid in (owner, user_id(), 0),
            "it belongs neither to the file's owner, nor to you, nor to root",
        ),
        (
            not status.st_mode & 0o022,
            f"its group or other users can write it (mode {stat.S_IMODE(status.st_mode):04o})",
        ),
        (status.st_nlink == 1, f"it has {status.st_nlink} names (hard links)"),
        (
            status.st_size <= MOST_JOURNAL_BYTES,
            f"it has {status.st_size:,} bytes, but a journal has at most {MOST_JOURNAL_BYTES:,}",
        ),
    )
    for is_kept, rule in rules:
        if not is_kept:
            raise _trust_error(path, status, rule)


def _trust_error(path: str, status: os.stat_result | None, rule: str) -> RefusedError:
    """Return the error for a journal that breaks a rule."""
    journal = journal_of(path)
    owner = "" if status is None else f", which belongs to user {status.st_uid},"
    return RefusedError(
        f"the journal {journal}{owner} cannot be trusted: {rule}",
        file=path,
        hint=f"if no append was interrupted, remove it: rm {quote_word(journal)}",
    )


def _bytes_before(fd: int, end: int, like: bytes) -> bytes:
    """Read as many bytes before `end` as `like` has."""
    start = end - len(like)
    return b"" if start < 0 else read_at(fd, len(like), start)


def _read(fd: int, offset: int, length: int) -> bytes:
    data = read_all(fd, length, offset)
    if len(data) < length:
        raise UnreadableError(
            "the file became shorter while it was read", place=f"byte {offset + len(data):,}"
        )
    return data
