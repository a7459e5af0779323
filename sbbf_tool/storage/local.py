"""Files on a local file system: ranged reads, and the one function of the package that replaces a user's file.

`replace` writes a temporary file beside the target, verifies it, and only then exchanges the names of both. At every moment the target is
either the complete old file or the complete new one. A killed process leaves a temporary file, which the next command on the same target
removes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from sbbf_tool.errors import ChangedError, MissingError, RefusedError, UnreadableError, WriteError
from sbbf_tool.storage import system_calls
from sbbf_tool.storage.attributes import carry_over
from sbbf_tool.storage.copying import BegunCopy, copy
from sbbf_tool.storage.source import Source, ensure_within
from sbbf_tool.storage.system_calls import FORBIDDEN, READ, close, leads_to, lock, open_to_change, read_all, reason_of, sync, unlock
from sbbf_tool.storage.temporary import (
    PRIVATE,
    TEMPORARY_SUFFIX,
    USUAL,
    creation_error,
    sync_folder,
    temporary_file,
    temporary_path,
    write_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import NativeFile

    from sbbf_tool.storage.source import Bytes

_CAP_FOWNER = 1 << 3
_ELSEWHERE = "write to another folder"
_NO_RENAME = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class LocalSource(Source):
    """A file open for ranged reads; `name` is the user's name for it. Use as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fsdecode(path)
        self._fd = -1
        try:
            # Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
            self._fd = os.open(self.name, READ)
            self._stat = os.fstat(self._fd)
        except (OSError, ValueError) as error:
            self.close()
            raise (MissingError if isinstance(error, FileNotFoundError) else UnreadableError)(reason_of(error), file=self.name) from error
        if not stat.S_ISREG(self._stat.st_mode):
            self.close()
            if stat.S_ISDIR(self._stat.st_mode):
                raise UnreadableError("it is a folder", file=self.name, hint="name one of its files")
            raise UnreadableError("not a regular file", file=self.name)
        self.size = self._stat.st_size

    @property
    def descriptor(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1

    def read(self, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes from `offset`. Raises UnreadableError if the file is too short."""
        ensure_within(self, offset, length)
        try:
            data = read_all(self._fd, length, offset)
        except OSError as error:
            raise UnreadableError(reason_of(error), file=self.name, place=f"byte {offset:,}") from error
        if len(data) < length:
            raise UnreadableError("the file became shorter while it was read", file=self.name, place=f"byte {offset + len(data):,}")
        self.bytes_read += length
        return data

    def open_arrow(self) -> NativeFile:
        """Open an independent pyarrow stream over the same open file, even if its path now names another."""
        import pyarrow

        link = f"/proc/self/fd/{self._fd}"
        return pyarrow.OSFile(link if os.path.exists(link) else self.name)

    def is_unchanged(self) -> bool:
        """Return whether path and open file are unchanged: inode, size, modification time (mtime) and change time (ctime)."""
        try:
            now = (_identity(os.stat(self.name)), _identity(os.fstat(self._fd)))
        except OSError:
            return False
        return now == (_identity(self._stat),) * 2

    def is_file_of(self, status: os.stat_result) -> bool:
        """Return whether a status is that of the open file and its content is unchanged, whatever its name is: a rename changes ctime."""
        return os.path.samestat(status, os.fstat(self._fd)) and _identity(status)[2:4] == _identity(self._stat)[2:4]


def _identity(status: os.stat_result) -> tuple[int, ...]:
    # A writer can set mtime back, but not ctime.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def begin_copy(source: Source, target: str, count: int) -> BegunCopy | None:
    """Return the copy that a thread makes of the first `count` bytes for `replace`; None if this would not be faster."""
    return BegunCopy(source, os.path.realpath(target), count) if isinstance(source, LocalSource) and count >= BegunCopy.MIN_BYTES else None


def replace(
    source: Source,
    target: str,
    keep: int,
    pieces: Iterable[Bytes],
    verify: Callable[[Source], None],
    begun: BegunCopy | None = None,
) -> list[str]:
    """Make `target` the first `keep` bytes of `source` followed by `pieces`, in one step and only after `verify` accepts them.

    `target` is the source's own path, or one that does not exist. `begun` is its copy, if `begin_copy` began one. Mode, owner and extended
    attributes of a local source are kept; symbolic links are followed. Returns warnings as text. Raises RefusedError (another writer,
    source changed, target exists, no permission) and WriteError (such as a full disk); the old file stays intact in every case.
    """
    real = os.path.realpath(target)
    local = source if isinstance(source, LocalSource) else None
    old = local if local is not None and (target == local.name or real == os.path.realpath(local.name)) else None
    if old is None:
        ensure_free(target)
    elif not old.is_unchanged():
        raise ChangedError.after_open(old.name)
    else:
        _ensure_open_to_changes(target)
    warnings = []
    with ExitStack() as stack:
        if old is not None:
            stack.enter_context(sole_writer(old))
        if begun is not None and begun.target == real and begun.count <= keep:
            temporary, fd = begun.path, begun.fd
        else:
            begun = None
            temporary, fd = stack.enter_context(temporary_file(real, target, USUAL if local is None else PRIVATE, source.descriptor))
        try:
            copy(source, fd, keep, start=0 if begun is None else begun.finish())
            for piece in pieces:
                write_all(fd, piece)
            if local is not None:
                warnings += carry_over(local.name, local._fd, local._stat, fd)
            sync(fd)
            with LocalSource(temporary) as new_file:
                verify(new_file)
            if not source.is_unchanged():
                raise ChangedError.after_open(source.name)
            remove_stale_checksum(real)
            if old is None:
                give_new_name(temporary, real)
            else:
                _take_place(old, temporary, fd, real)
        except OSError as error:
            raise WriteError(reason_of(error), file=target, hint="the old file is untouched") from error
        if old is not None and old._stat.st_nlink > 1:
            warnings.append(f"the file has {old._stat.st_nlink} hard links; the other names keep the old content")
        return warnings + sync_name(real, target)


def _take_place(old: LocalSource, temporary: str, fd: int, real: str) -> None:
    """Exchange the names of the new file and the old one, and remove the old one.

    If another writer has put a file there since the last check, that file gets its name back. Where the file system cannot exchange names,
    that file is lost, and so it is if the process is killed before the file has its name back. Raises OSError, ChangedError, and
    RefusedError if a file of another writer had to get a name of its own; a command begins again only after ChangedError.
    """
    try:
        system_calls.exchange(temporary, real)
    except FileNotFoundError:
        raise ChangedError.after_open(old.name) from None
    except OSError as error:
        if error.errno not in system_calls.NO_EXCHANGE:
            raise
        os.rename(temporary, real)
        return
    try:
        given, received = os.fstat(fd), os.lstat(temporary)
        is_old = old.is_file_of(received)
    except OSError:
        return  # as after a rename, which file systems make that ignore the flag, such as some by FUSE
    if is_old:
        with suppress(OSError):
            os.unlink(temporary)
        return
    expected = None
    try:
        # What comes back is what was given, unless another writer was faster again.
        while expected is None or not os.path.samestat(received, expected):
            system_calls.exchange(temporary, real)
            expected, given, received = given, received, os.lstat(temporary)
    finally:
        if not leads_to(temporary, fd):
            kept = temporary.removesuffix(TEMPORARY_SUFFIX) + ".sbbf-kept"
            os.rename(temporary, kept)
            reason = f"several other processes replaced the file at the same time; {kept} is the file of one of them"
            raise RefusedError(reason, file=old.name, hint="compare both files, and run the command again")
    raise ChangedError.after_open(old.name)


def give_new_name(temporary: str, target: str) -> None:
    """Rename a file to a name that must not exist. Raises RefusedError if it does, and OSError."""
    try:
        # Unlike a rename, a link fails if the target appears in the meantime.
        os.link(temporary, target)
    except OSError:
        if os.path.lexists(target):
            raise _exists(target) from None
        os.rename(temporary, target)


def remove_stale_checksum(path: str) -> None:
    """Remove the checksum that Hadoop wrote for the file's old bytes: Spark would fail to read the new ones."""
    folder, base = os.path.split(path)
    try:
        os.unlink(os.path.join(folder, f".{base}.crc"))
    except OSError as error:
        # A file with a name of the maximum length has no checksum file.
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise


def sync_name(real: str, target: str) -> list[str]:
    """Write the new name of a file to the disk; return a warning if this fails."""
    try:
        sync_folder(os.path.dirname(real))
    except OSError as error:
        return [f"{target}: the new file is in place, but may not survive a power failure: {reason_of(error)}"]
    return []


@contextmanager
def sole_writer(source: LocalSource) -> Iterator[None]:
    """Hold the lock on the old file. A second writer that waits for the lock then finds another file at the path, and reports it."""
    fd = source._fd
    with ExitStack() as stack:
        try:
            try:
                lock(fd, source.name, "writing")
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
                # NFS locks only a writable descriptor.
                fd = open_to_change(os.path.realpath(source.name))
                stack.callback(close, fd)
                lock(fd, source.name, "writing")
                if not os.path.samestat(os.fstat(fd), source._stat):
                    raise ChangedError.after_open(source.name) from None
        except OSError as error:
            # The copy is made even if the file system has no locks or the file is read-only: it still replaces the file in one step.
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, *FORBIDDEN):
                raise UnreadableError(reason_of(error), file=source.name) from error
        try:
            yield
        finally:
            with suppress(OSError):
                unlock(fd)


def ensure_free(target: str) -> None:
    """Raise RefusedError if the name exists or no file can have it."""
    try:
        os.lstat(target)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise RefusedError(reason_of(error), file=target, hint="name another path") from error
    raise _exists(target)


def ensure_replaceable(target: str, *, append: bool = False) -> None:
    """Raise RefusedError if `replace`, or an append, could not change `target`, as far as this can be checked in advance."""
    real = os.path.realpath(target)
    ensure_open_to_new_files(os.path.dirname(real), target)
    try:
        place, old = os.stat(os.path.dirname(real)), os.stat(real)
    except OSError:
        return
    _ensure_open_to_changes(target)
    if place.st_mode & stat.S_ISVTX and not append and os.geteuid() not in (old.st_uid, place.st_uid) and not _acts_as_any_owner():
        message = f"the file belongs to user {old.st_uid}, and its folder is sticky: only its owner can replace it"
        raise RefusedError(message, file=target, hint=f"{_ELSEWHERE}, or append to the file")


def _ensure_open_to_changes(target: str) -> None:
    if not os.access(target, os.W_OK, effective_ids=True):
        raise RefusedError("no permission to write the file", file=target, hint=f"make it writable (chmod u+w), or {_ELSEWHERE}")


def ensure_renames(target: str) -> None:
    """Raise RefusedError or WriteError if a new file could not get the name `target`, which is the last step of `replace`."""
    real = os.path.realpath(target) if os.path.islink(target) else target
    with temporary_file(real, target) as (path, _):
        other = temporary_path(real)
        try:
            os.rename(path, other)
            os.unlink(other)
        except OSError as error:
            with suppress(OSError):
                os.unlink(other)
            if error.errno in _NO_RENAME:
                message = f"this file system cannot rename a file ({reason_of(error)}), by which sbbf replaces a file in one step"
                raise RefusedError(message, file=target, hint="write the result to another file system, and copy it there") from error
            raise creation_error(error, target) from error


def ensure_open_to_new_files(folder: str, target: str) -> None:
    """Raise RefusedError for `target` if this process may not create files in `folder`."""
    if not os.access(folder or ".", os.W_OK | os.X_OK, effective_ids=True):
        raise RefusedError("cannot create a file beside the target: no permission to write to the folder", file=target, hint=_ELSEWHERE)


def _acts_as_any_owner() -> bool:
    """Return whether this process has the capability CAP_FOWNER."""
    try:
        with open("/proc/thread-self/status", "rb") as lines:
            effective = next(line.split()[1] for line in lines if line.startswith(b"CapEff:"))
        return bool(int(effective, 16) & _CAP_FOWNER)
    except (OSError, StopIteration, ValueError, IndexError):
        return os.geteuid() == 0


def _exists(target: str) -> RefusedError:
    return RefusedError("the target exists", file=target, hint="name another, or remove it first")
