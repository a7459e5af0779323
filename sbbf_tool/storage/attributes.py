"""The attributes that a new file takes over from the old one: owner, mode and extended attributes.

A copy never gives more users access than the original.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

_ACCESS_LIST = "system.posix_acl_access"
_OF_CONTENT = ("security.ima", "security.evm")
"""Signatures of content and attributes: the kernel refuses to open a file that does not match its
signature."""


def carry_over(name: str, source: int, status: os.stat_result, fd: int) -> list[str]:
    """Give `fd` the owner, extended attributes and mode of the open file `source`; return warnings
    about the ones that cannot be kept."""
    losses = _carry_over_owner(status, fd)
    lost_attributes, keeps_list = _carry_over_attributes(source, fd)
    losses += lost_attributes
    fresh = os.fstat(fd)
    old_mode = stat.S_IMODE(status.st_mode)
    mode = _safe_mode(old_mode, status, fresh, keeps_list)
    if mode != old_mode:
        losses.append(f"mode {old_mode:04o}, which is {mode:04o} now")
    if mode != stat.S_IMODE(fresh.st_mode):
        # A copied access list has already set the mode; setting it again may change lists of other
        # kinds.
        os.fchmod(fd, mode)
    if not losses:
        return []
    return [f"{name}: these attributes could not be kept: {', '.join(losses)}"]


def _carry_over_owner(status: os.stat_result, fd: int) -> list[str]:
    """Give a file an owner and a group; return what is lost."""
    fresh = os.fstat(fd)
    # A folder with the setgid bit gives new files its own group instead of the group of the
    # process.
    if (status.st_uid, status.st_gid) == (fresh.st_uid, fresh.st_gid):
        return []
    try:
        os.fchown(fd, status.st_uid, status.st_gid)
    except OSError:
        with suppress(OSError):
            # Members of the file's group can keep the group even if they cannot keep the owner.
            os.fchown(fd, -1, status.st_gid)
        return [f"owner {status.st_uid}:{status.st_gid}"]
    return []


def _carry_over_attributes(source: int, fd: int) -> tuple[list[str], bool | None]:
    """Copy the extended attributes; return what is lost, and whether the access list is kept, or
    None if there is none."""
    attributes = []
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            attributes = [name for name in os.listxattr(source) if name not in _OF_CONTENT]
        if _ACCESS_LIST not in attributes:
            # The new file inherits the folder's default list, which would take effect when the mode
            # is set.
            with suppress(OSError):
                os.removexattr(fd, _ACCESS_LIST)
    losses = []
    for attribute in attributes:
        try:
            os.setxattr(fd, attribute, os.getxattr(source, attribute))
        except OSError:
            losses.append(f"attribute {attribute}")
    keeps_list = None
    if _ACCESS_LIST in attributes:
        keeps_list = f"attribute {_ACCESS_LIST}" not in losses
    return losses, keeps_list


def _safe_mode(mode: int, old: os.stat_result, new: os.stat_result, keeps_list: bool | None) -> int:
    """Return the mode for a file with the owner and group of `new`, so that no user gets more
    access than before.

    `keeps_list` is whether the old file's access list is kept, or None if it has none.
    """
    if new.st_uid != old.st_uid:
        mode &= ~stat.S_ISUID
    if new.st_gid != old.st_gid:
        # Members of the old group now count as others, who must not get access that the group did
        # not have.
        denied_to_group = ~(mode >> 3) & stat.S_IRWXO
        mode &= ~(stat.S_ISGID | stat.S_IRWXG | denied_to_group)
    if keeps_list is False or (keeps_list and new.st_gid != old.st_gid):
        # The group bits are the mask of the list, not the group's permissions: without the list,
        # only the owner's bits are certain.
        mode &= ~(stat.S_IRWXG | stat.S_IRWXO)
    return mode
