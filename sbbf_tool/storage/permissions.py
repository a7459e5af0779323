"""Checks before a change: what prevents that a target is written, as far as this can be seen in
advance.

They save the work on a file that could not be published; publishing repeats those that matter.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from sbbf_tool.errors import MissingError, RefusedError, UnreadableError
from sbbf_tool.storage import leftovers, local
from sbbf_tool.storage.append import ensure_appendable
from sbbf_tool.storage.names import is_url, locate
from sbbf_tool.storage.source import Source
from sbbf_tool.storage.system_calls import ensure_can_change, reason_of

_NO_RENAME = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_CAP_FOWNER = 1 << 3


def ensure_writable(target: str, *, in_place: bool, append: bool = False) -> None:
    """Raise RefusedError if `target` cannot or must not be written, as far as this can be checked
    in advance.

    Unless a file is changed in place, the target must not exist, and must not be the source itself.
    """
    ensure_can_change(target)
    if is_url(target):
        # Local files need not wait for the modules of the services.
        from sbbf_tool.storage.objects import stores

        if append:
            raise RefusedError(
                "an object cannot be appended to",
                file=target,
                hint="do not append: the store copies the old bytes itself",
            )
        stores.ensure_writable(target, in_place=in_place)
        return
    try:
        path = locate(target)
    except UnreadableError as error:
        raise RefusedError(error.message, file=target, hint=error.hint) from None
    folder = os.path.dirname(path)
    if not os.path.isdir(folder or "."):
        if in_place:
            raise MissingError("no such file or directory", file=target)
        raise RefusedError(
            "the folder of the target does not exist", file=target, hint="create it first"
        )
    if append:
        ensure_appendable(path)
    if not in_place:
        local.ensure_free(path)
        ensure_open_to_new_files(folder, target)


def ensure_changeable_in_place(target: str, source: Source, *, append: bool = False) -> None:
    """Raise RefusedError if `target`, open as `source`, could not be changed in place, as far as
    this can be checked in advance."""
    if is_url(target):
        from sbbf_tool.storage.objects import stores

        stores.ensure_version_replaceable(source)
        return
    real = os.path.realpath(locate(target))
    folder = os.path.dirname(real)
    ensure_open_to_new_files(folder, target)
    try:
        folder_status = os.stat(folder)
        status = os.stat(real)
    except OSError:
        return
    local.ensure_open_to_changes(target)
    if append or not folder_status.st_mode & stat.S_ISVTX:
        return
    may_replace = os.geteuid() in (status.st_uid, folder_status.st_uid) or _acts_as_any_owner()
    if not may_replace:
        message = (
            f"the file belongs to user {status.st_uid}, and its folder is sticky: only its owner "
            "can replace it"
        )
        raise RefusedError(
            message, file=target, hint=f"{local.OTHER_FOLDER}, or append to the file"
        )


def _acts_as_any_owner() -> bool:
    """Return whether this process has the capability CAP_FOWNER."""
    try:
        with open("/proc/thread-self/status", "rb") as lines:
            effective = next(line.split()[1] for line in lines if line.startswith(b"CapEff:"))
        return bool(int(effective, 16) & _CAP_FOWNER)
    except (OSError, StopIteration, ValueError, IndexError):
        return os.geteuid() == 0


def ensure_open_to_new_files(folder: str, target: str) -> None:
    """Raise RefusedError for `target` if this process may not create files in `folder`."""
    if not os.access(folder or ".", os.W_OK | os.X_OK, effective_ids=True):
        message = "cannot create a file beside the target: no permission to write to the folder"
        raise RefusedError(message, file=target, hint=local.OTHER_FOLDER)


def ensure_renames(target: str, known: str | None = None) -> str | None:
    """Raise RefusedError or WriteError if a new file could not get the name of a local target,
    which is the last step of `replace`.

    Return the folder of the target, which is not tried again if it is `known` from the call before.
    """
    if is_url(target):
        return None
    path = locate(target)
    real = os.path.realpath(path) if os.path.islink(path) else path
    folder = os.path.dirname(real)
    if folder == known:
        return known
    with local.temporary_file(real, target) as (temporary, _):
        new_name = leftovers.temporary_path(real)
        try:
            os.rename(temporary, new_name)
        except OSError as error:
            if error.errno in _NO_RENAME:
                message = (
                    f"this file system cannot rename a file ({reason_of(error)}), by which sbbf "
                    "replaces a file in one step"
                )
                raise RefusedError(
                    message,
                    file=target,
                    hint="write the result to another file system, and copy it there",
                ) from error
            raise local.creation_error(error, target) from error
        finally:
            with suppress(OSError):
                os.unlink(new_name)
    return folder
