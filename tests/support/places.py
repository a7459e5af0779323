"""Folders with the conditions that a test needs: a user without privileges, a disk that is full."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def without_privileges() -> Iterator[None]:
    """Run the block as an unprivileged user; without root the tests already run as one."""
    if os.geteuid() != 0:
        yield
        return
    with as_user(NOBODY, NOBODY):
        yield


@contextmanager
def as_user(user: int, group: int, *more_groups: int) -> Iterator[None]:
    """Run the block as this user, with this group and `more_groups`. Needs root."""
    groups = os.getgroups()
    os.setgroups(more_groups)
    os.setresgid(group, group, 0)
    os.setresuid(user, user, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that every user can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="sbbf-test-"))
    try:
        folder.chmod(0o777)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system of this size; skip the test where none can be mounted."""
    folder.mkdir()
    if not shutil.which("mount"):
        pytest.skip("no file system can be mounted: there is no mount")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def disk_of_whole_seconds(folder: Path) -> Iterator[Path]:
    """Mount an ext4 file system with inodes of 128 bytes, whose times have no fractions; skip the
    test where none can be mounted."""
    image = folder.with_suffix(".image")
    folder.mkdir()
    if not all(map(shutil.which, ("mkfs.ext4", "mount", "umount"))):
        pytest.skip("no file system can be mounted: there is no mkfs.ext4, or no mount")
    image.write_bytes(b"")
    os.truncate(image, 16 << 20)
    commands = (
        ["mkfs.ext4", "-q", "-F", "-I", "128", str(image)],
        ["mount", "-o", "loop", str(image), str(folder)],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system can be mounted: {done.stderr.strip().splitlines()[-1]}")
    try:
        yield folder
    finally:
        # A test that is skipped, or fails, may still hold files of it.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
