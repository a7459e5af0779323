"""The one way in which this package replaces a local file: from the plan to the new name.

    lock         lock the old file: a second `sbbf` that would change it waits or is refused
    write        the kept bytes, then the new ones, into a locked temporary file beside the target
    attributes   owner, mode and extended attributes of the old file; a copy never gives more users
                 access than the original
    sync         write the temporary file to the disk
    verify       read it as any other reader would
    exchange     give the temporary file the target's name, and remove the old file, unless another
                 writer has replaced it
    sync         write the names in the folder to the disk

At every moment the target is either the complete old file or the complete new one. A killed process
leaves a temporary file, which the next command on the same target removes: it is locked only while
its process lives.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from sbbf_tool.errors import ChangedError, RefusedError, UnreadableError, WriteError, exists_error
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage import system_calls
from sbbf_tool.storage.attributes import carry_over
from sbbf_tool.storage.copying import BegunCopy, copy
from sbbf_tool.storage.leftovers import (
    PRIVATE,
    TEMPORARY_SUFFIX,
    left_names,
    open_locked,
    remove_left,
    sweep,
    temporary_path,
)
from sbbf_tool.storage.source import LocalSource, Source
from sbbf_tool.storage.system_calls import (
    FORBIDDEN,
    NO_FOLLOW,
    READ,
    close,
    kind_of,
    leads_to,
    lock,
    lock_exclusively,
    open_to_change,
    read_at,
    reason_of,
    sync,
    sync_folder,
    unlock,
    write_all,
)
from sbbf_tool.storage.threads import cleaning_up

if TYPE_CHECKING:
    from sbbf_tool.storage.source import Bytes

OTHER_FOLDER = "write to another folder"
_BLOCK_BYTES = 1 << 20
USUAL = 0o666
"""Mode of new files, before the umask applies."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF)


@contextmanager
def begin_copy(source: Source, target: str, count: int) -> Iterator[BegunCopy | None]:
    """Yield the copy that a thread makes of the first `count` bytes for a replacement; None if this
    would not be faster."""
    if not isinstance(source, LocalSource) or count < BegunCopy.MIN_BYTES:
        yield None
        return
    real = os.path.realpath(target)
    if real != os.path.realpath(source.name):
        remove_left(real)
    with (
        temporary_file(real, target, PRIVATE, source.descriptor) as (path, fd),
        BegunCopy(source, count, real, path, fd) as begun,
    ):
        yield begun


def replace_local(
    source: Source,
    target: str,
    keep: int,
    pieces: Iterable[Bytes],
    verify: Callable[[Source], None],
    begun: BegunCopy | None = None,
) -> list[str]:
    """Make `target` the first `keep` bytes of `source` followed by `pieces`, in one step and only
    after `verify` accepts them.

    `target` is the source's own path, or one that does not exist. `begun` is its copy, if
    `begin_copy` began one. Mode, owner and extended attributes of a local source are kept; symbolic
    links are followed. Returns warnings as text. Raises RefusedError (another writer, source
    changed, target exists, no permission) and WriteError (such as a full disk); the old file stays
    intact in every case.
    """
    real = os.path.realpath(target)
    old = _find_old(source, target, real)
    if old is None:
        ensure_free(target)
        remove_left(real)
    elif not old.is_unchanged():
        raise ChangedError.after_open(old.name)
    else:
        ensure_open_to_changes(target)
    if begun is not None and (begun.target != real or begun.count > keep):
        begun = None
    with ExitStack() as stack:
        if old is not None:
            stack.enter_context(sole_writer(old))
        if begun is not None:
            temporary = begun.path
            fd = begun.fd
        else:
            mode = PRIVATE if isinstance(source, LocalSource) else USUAL
            temporary, fd = stack.enter_context(
                temporary_file(
                    real, target, mode, source.descriptor, is_locked_here=old is not None
                )
            )
        try:
            warnings = _write_new(source, fd, keep, pieces, begun)
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
            hint = None if old is None else "the old file is untouched"
            raise WriteError(reason_of(error), file=target, hint=hint) from error
        if old is not None:
            warnings += _link_warnings(old)
        return warnings + sync_name(real, target)


def _find_old(source: Source, target: str, real: str) -> LocalSource | None:
    """Return the source if its own file is to be replaced; None if there will be another file."""
    if not isinstance(source, LocalSource):
        return None
    if target == source.name or real == os.path.realpath(source.name):
        return source
    return None


def _write_new(
    source: Source, fd: int, keep: int, pieces: Iterable[Bytes], begun: BegunCopy | None
) -> list[str]:
    """Write the bytes and the attributes of the new file to the disk; return warnings."""
    copy(source, fd, keep, start=0 if begun is None else begun.finish())
    for piece in pieces:
        write_all(fd, piece)
    warnings = []
    if isinstance(source, LocalSource):
        warnings = carry_over(source.name, source._fd, source._stat, fd)
    sync(fd)
    return warnings


def _link_warnings(old: LocalSource) -> list[str]:
    count = old._stat.st_nlink
    if count <= 1:
        return []
    return [f"the file has {count} hard links; the other names keep the old content"]


def _take_place(old: LocalSource, temporary: str, fd: int, real: str) -> None:
    """Exchange the names of the new file and the old one, and remove the old one.

    If another writer has put a file there since the last check, that file gets its name back. Where
    the file system cannot exchange names, that file is lost, and so it is if the process is killed
    before the file has its name back. Raises OSError, ChangedError, and RefusedError if a file of
    another writer had to get a name of its own; a command begins again only after ChangedError.
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
    # Held at once: what another writer put there must not be swept before it has its name back.
    held = _hold(temporary)
    try:
        received = _status_of(temporary, held)
    except OSError as error:
        if not _exchanges_names(real):
            # As after a rename, which file systems make that ignore the flag, such as some by FUSE.
            return
        raise _lost_error(old, error) from error
    if old.is_file_of(received):
        close(held)
        with suppress(OSError):
            os.unlink(temporary)
        return
    _give_back(old, temporary, fd, real, held)


def _give_back(old: LocalSource, temporary: str, fd: int, real: str, held: int) -> None:
    """Give the file of another writer, open as `held`, its name back. Raises ChangedError, or
    RefusedError if it had to get another name, and WriteError if it is lost."""
    given = os.fstat(fd)
    received = _status_of(temporary, held)
    expected = None
    try:
        # What comes back is what was given, unless another writer was faster again.
        while expected is None or not os.path.samestat(received, expected):
            system_calls.exchange(temporary, real)
            close(held)
            held = _hold(temporary)
            expected = given
            given = received
            received = _status_of(temporary, held)
    finally:
        try:
            if not leads_to(temporary, fd):
                kept = _keep(old, temporary, held)
                reason = (
                    f"several other processes replaced the file at the same time; {kept} is "
                    "the file of one of them"
                )
                raise RefusedError(
                    reason, file=old.name, hint="compare both files, and run the command again"
                )
        finally:
            close(held)
    raise ChangedError.after_open(old.name)


def _status_of(path: str, held: int) -> os.stat_result:
    """Return the status of a file that is open as `held`, or, if it could not be opened, that of
    its path."""
    return os.lstat(path) if held < 0 else os.fstat(held)


def _hold(path: str) -> int:
    """Open and lock a file, so that no `sweep` removes it, and its bytes are there if another
    program does; return its descriptor, or -1 if it is no regular file or cannot be opened."""
    try:
        fd = os.open(path, READ | NO_FOLLOW)
    except OSError:
        return -1
    with suppress(OSError):
        lock_exclusively(fd)
    return fd


def _keep(old: LocalSource, temporary: str, held: int) -> str:
    """Give the file of another writer a name of its own, which `sweep` does not know; if the file
    was removed meanwhile, write its bytes there. Returns the path; raises WriteError."""
    kept = temporary.removesuffix(TEMPORARY_SUFFIX) + ".sbbf-kept"
    try:
        os.rename(temporary, kept)
        return kept
    except FileNotFoundError as error:
        if held < 0:
            raise _lost_error(old, error) from error
    fd = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    try:
        offset = 0
        while block := read_at(held, _BLOCK_BYTES, offset):
            write_all(fd, block)
            offset += len(block)
        carry_over(kept, held, os.fstat(held), fd)
        sync(fd)
    finally:
        close(fd)
    return kept


def _exchanges_names(path: str) -> bool:
    """Return whether the file system exchanges names: some rename instead, and report success."""
    first = temporary_path(path)
    second = temporary_path(path)
    try:
        close(open_locked(first))
        close(open_locked(second))
        system_calls.exchange(first, second)
        return os.path.lexists(first)
    except OSError:
        return True
    finally:
        for name in (first, second):
            with suppress(OSError):
                os.unlink(name)


def _lost_error(old: LocalSource, error: OSError) -> WriteError:
    """Return the error for a file of another writer that is gone since its name was exchanged."""
    return WriteError(
        "another process replaced the file at the same time, and what it wrote was removed before "
        f"it had its name back ({reason_of(error)}): the file is the old one with this change",
        file=old.name,
        hint="let the other process write the file again",
    )


def give_new_name(temporary: str, target: str) -> None:
    """Rename a file to a name that must not exist. Raises RefusedError if it does, and OSError."""
    try:
        # Unlike a rename, a link fails if the target appears in the meantime.
        os.link(temporary, target)
    except OSError:
        if os.path.lexists(target):
            raise exists_error(target) from None
        os.rename(temporary, target)


def remove_stale_checksum(path: str) -> None:
    """Remove the checksum that Hadoop wrote for the file's old bytes: Spark would fail to read the
    new ones."""
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
        return [
            f"{target}: the new file is in place, but may not survive a power failure: "
            f"{reason_of(error)}"
        ]
    return []


@contextmanager
def sole_writer(source: LocalSource) -> Iterator[None]:
    """Hold the lock on the old file. A second writer that waits for the lock then finds another
    file at the path, and reports it."""
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
            # The copy is made even if the file system has no locks or the file is read-only: it
            # still replaces the file in one step.
            if error.errno not in (*_NO_LOCKS, *FORBIDDEN):
                raise UnreadableError(reason_of(error), file=source.name) from error
        try:
            yield
        finally:
            with suppress(OSError):
                unlock(fd)


def ensure_free(target: str) -> None:
    """Raise RefusedError if the name exists or no file can have it.

    A file that a killed command gave the name does not count: it still has its temporary name.
    """
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise RefusedError(reason_of(error), file=target, hint="name another path") from error
    if not (stat.S_ISREG(status.st_mode) and left_names(os.path.realpath(target), status)):
        raise exists_error(target)


def ensure_open_to_changes(target: str) -> None:
    """Raise RefusedError if this process may not write an existing file."""
    if not os.access(target, os.W_OK, effective_ids=True):
        raise RefusedError(
            "no permission to write the file",
            file=target,
            hint=f"make it writable (chmod u+w), or {OTHER_FOLDER}",
        )


@contextmanager
def temporary_file(
    real: str,
    target: str,
    mode: int = PRIVATE,
    original: int | None = None,
    *,
    is_locked_here: bool = False,
) -> Iterator[tuple[str, int]]:
    """Create a locked file beside the path `real`, which has no links; yield its path and
    descriptor. Remove it unless it was renamed.

    The file is empty, or a clone of the open file `original` where the system makes clones of
    files. The umask, or the folder's default access list, reduces `mode` as for any new file.
    Temporary files of killed processes are removed first; `is_locked_here` is whether this process
    has the lock on the target. Raises RefusedError about `target` without permission to create a
    file there, and WriteError if creating it fails.
    """
    sweep(*os.path.split(real), is_locked_here=is_locked_here)
    path = temporary_path(real)

    def remove_own() -> None:
        if leads_to(path, fd):
            os.unlink(path)

    # The file is removed however this block ends, even if creating it is interrupted.
    try:
        try:
            fd = open_locked(path, mode, original)
        except OSError as error:
            raise creation_error(error, target) from error
        try:
            with cleaning_up(remove_own):
                yield path, fd
        finally:
            close(fd)
    finally:
        # Usually the file no longer exists. If it cannot be removed, the next command tries again.
        with suppress(OSError):
            os.unlink(path)


def creation_error(error: OSError, target: str) -> RefusedError | WriteError:
    message = reason_of(error)
    if error.errno in FORBIDDEN:
        message = f"cannot create a file beside the target: {message}"
    return kind_of(error)(message, file=target, hint=ELSEWHERE)
