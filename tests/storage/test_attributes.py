"""Owner, mode and attributes of a new file: it never lets more users in than the old one."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

from sbbf_tool.storage.local import replace_local
from sbbf_tool.storage.source import LocalSource, PlannedSource
from storage.replacing import set_attribute
from support.places import as_user, needs_root, open_folder
from support.tables import each

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
OWNER, USER, GROUP, MASK, OTHER_ENTRY = 0x01, 0x02, 0x04, 0x10, 0x20
NO_ID = 0xFFFFFFFF
ME, MY_GROUP, ANALYSTS, BOB = 20001, 20002, 20003, 20004


def copied(path: Path, target: Path | None = None) -> list[str]:
    with LocalSource(path) as source:
        return replace_local(
            source, os.fspath(target or path), source.size, [b"new"], lambda draft: None
        )


def access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def allowed(status: os.stat_result, user: int, groups: set[int]) -> int:
    """What a user may do with a file that has no access list."""
    if user == status.st_uid:
        return status.st_mode >> 6 & 7
    return status.st_mode >> (3 if status.st_gid in groups else 0) & 7


@pytest.mark.slow
@needs_root
@each("groups", [(MY_GROUP,), (MY_GROUP, ANALYSTS)])
def test_no_user_may_do_more_with_a_new_file(groups):
    """Every mode of a file that belongs to another user: for users with each set of groups."""
    with open_folder() as folder:
        old = folder / "old"
        old.write_bytes(b"old")
        os.chown(old, 12345, ANALYSTS)
        for mode in range(0o400, 0o10000):
            # One without which no program can verify its own file, and one that means nothing for
            # files.
            if not mode & stat.S_IRUSR or mode & stat.S_ISVTX or (mode > 0o777 and mode % 37):
                continue
            old.chmod(mode)
            new = folder / "new"
            with LocalSource(old) as source, as_user(ME, *groups):
                replace_local(source, str(new), source.size, [], lambda draft: None)
            before, after = old.stat(), new.stat()
            for groups in (set(), {ANALYSTS}, {MY_GROUP}, {ANALYSTS, MY_GROUP}):
                more = allowed(after, BOB, groups) & ~allowed(before, BOB, groups)
                assert not more, (
                    f"{mode:04o} became {after.st_mode:04o}, and a user of groups {groups} "
                    f"gained {more:o}"
                )
            if after.st_mode & stat.S_ISUID:
                assert after.st_uid == before.st_uid
            if after.st_mode & stat.S_ISGID:
                assert after.st_gid == before.st_gid
            new.unlink()


@needs_root
def test_a_warning_reports_a_reduced_mode():
    with open_folder() as folder:
        path = folder / "a"
        path.write_bytes(b"old")
        os.chown(path, ME, ANALYSTS)
        path.chmod(0o640)
        with as_user(ME, MY_GROUP):
            (warning,) = copied(path)
        assert mode_of(path) == 0o600
        assert "owner 20001:20003" in warning
        assert "mode 0640, which is 0600 now" in warning


# Access lists


def test_the_default_list_of_a_folder_opens_no_copy(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    entries = (
        (OWNER, 7, NO_ID),
        (USER, 7, BOB),
        (GROUP, 7, NO_ID),
        (MASK, 7, NO_ID),
        (OTHER_ENTRY, 0, NO_ID),
    )
    set_attribute(tmp_path, DEFAULT, access_list(*entries))
    copied(path, tmp_path / "b")
    copied(path)
    for name in ("a", "b"):
        assert ACCESS not in os.listxattr(tmp_path / name)
        assert mode_of(tmp_path / name) == 0o640


def test_a_copy_has_the_access_list(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    entries = (
        (OWNER, 6, NO_ID),
        (USER, 4, BOB),
        (GROUP, 0, NO_ID),
        (MASK, 4, NO_ID),
        (OTHER_ENTRY, 0, NO_ID),
    )
    set_attribute(path, ACCESS, access_list(*entries))
    assert copied(path) == []
    assert os.getxattr(path, ACCESS) == access_list(*entries)
    assert mode_of(path) == 0o640


@needs_root
def test_an_access_list_of_a_group_that_is_lost_allows_nothing():
    with open_folder() as folder:
        path = folder / "a"
        path.write_bytes(b"old")
        os.chown(path, ME, ANALYSTS)
        entries = (
            (OWNER, 6, NO_ID),
            (USER, 6, BOB),
            (GROUP, 0, NO_ID),
            (MASK, 6, NO_ID),
            (OTHER_ENTRY, 4, NO_ID),
        )
        set_attribute(path, ACCESS, access_list(*entries))
        with as_user(ME, MY_GROUP):
            copied(path)
        for user, groups in ((BOB, (BOB,)), (12345, (ANALYSTS,)), (12345, (MY_GROUP,))):
            with as_user(user, *groups):
                assert not os.access(path, os.R_OK, effective_ids=True)


def test_a_list_that_the_new_place_cannot_hold_leaves_the_owner_alone(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    entries = (
        (OWNER, 6, NO_ID),
        (USER, 6, BOB),
        (GROUP, 0, NO_ID),
        (MASK, 6, NO_ID),
        (OTHER_ENTRY, 0, NO_ID),
    )
    set_attribute(path, ACCESS, access_list(*entries))

    def cannot(*arguments: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", cannot)
    (warning,) = copied(path)
    assert f"attribute {ACCESS}" in warning
    assert mode_of(path) == 0o600


@each("name", ["security.ima", "security.evm"])
def test_a_signature_of_the_old_content_is_not_carried(tmp_path, name):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    set_attribute(path, name, b"\4" + bytes(32))
    assert copied(path) == []
    assert name not in os.listxattr(path)


# Files that are no copy of a local one


@each("mask", [0, 0o022, 0o027, 0o077])
@each("has_default_list", [False, True])
def test_a_new_file_has_the_mode_that_any_program_gives_it(
    tmp_path, monkeypatch, mask, has_default_list
):
    """The umask is one of the whole process: to set it, even for a moment, opens the files of other
    threads."""
    source = tmp_path / "source"
    source.write_bytes(b"old")
    if has_default_list:
        entries = (
            (OWNER, 7, NO_ID),
            (USER, 4, BOB),
            (GROUP, 4, NO_ID),
            (MASK, 5, NO_ID),
            (OTHER_ENTRY, 0, NO_ID),
        )
        set_attribute(tmp_path, DEFAULT, access_list(*entries))
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch, LocalSource(source) as local:
            patch.delattr(os, "umask")
            planned_source = PlannedSource("s3://bucket/key", local, 3, [b"new"])
            replace_local(planned_source, str(tmp_path / "ours"), 3, [b"new"], lambda draft: None)
        (tmp_path / "theirs").write_bytes(b"x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "ours") == mode_of(tmp_path / "theirs")
    for name in os.listxattr(tmp_path / "theirs"):
        assert os.getxattr(tmp_path / "ours", name) == os.getxattr(tmp_path / "theirs", name)
