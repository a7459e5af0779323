"""The folder of an index while a command changes it.

Segments have names that were never used, and `current.json` is replaced as the last step: a reader
has the old index or the new one, and a process that is killed leaves files that nothing names. The
next command that changes the index removes them. It removes former segments when they are old,
since a reader may have opened the old `current.json` a moment ago.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from sbbf_tool.display import redact
from sbbf_tool.errors import ChangedError, RefusedError, UsageError
from sbbf_tool.extensions.index import contents
from sbbf_tool.extensions.index.contents import CURRENT, Contents
from sbbf_tool.frozen import replace
from sbbf_tool.storage import places
from sbbf_tool.storage.globs import matches_any
from sbbf_tool.storage.leftovers import sweep
from sbbf_tool.storage.system_calls import READ, close, leads_to, lock, open_to_change
from sbbf_tool.storage.whole import ensure_own_link, write_whole

_KEPT_SECONDS = 3600
"""Time for which readers may have a former segment open."""


class IndexTarget:
    """What an index is to be, or is: its folder, and what `current.json` states. Use as a context
    manager."""

    def __init__(self, folder: str, new: Contents | None = None) -> None:
        """Take what a new index is to state; without it the index exists, and is updated. Raises
        SbbfError."""
        if places.is_url(folder):
            raise RefusedError(
                "an index is written on this machine",
                file=folder,
                hint="write it to a folder, and copy that to the store",
            )
        self.name = folder
        self.folder = places.absolute(folder).rstrip("/")
        self.current = os.path.join(self.folder, CURRENT)
        self.is_new = new is not None
        if new is None:
            self.before = contents.read(self.folder)
        else:
            self._ensure_apart_from(new.lake)
            self._ensure_new()
            ensure_own_link(self.folder)
            self.before = new
        self._stack = ExitStack()
        self._is_begun = self._is_locked = False

    def _ensure_apart_from(self, lake: Sequence[str]) -> None:
        """Raise SbbfError if a new index of these paths cannot be in this folder."""
        if not self.folder.endswith(contents.SUFFIX):
            raise UsageError(f"the name of an index ends with {contents.SUFFIX}", file=self.name)
        for name in lake:
            if redact(name) != name:
                raise RefusedError(
                    "an index keeps the URL, and others could read its password or signature",
                    file=name,
                    hint="give credentials as variables of the environment",
                )
            if not places.is_url(name):
                folder = os.path.realpath(name).rstrip("/")
                segment = f"{self.folder}/_.parquet"
                if segment.startswith(f"{folder}/") or matches_any((folder,), "/", segment):
                    raise UsageError(
                        f"the index would be among the files of {name}",
                        file=self.name,
                        hint="name another folder",
                    )

    def __enter__(self) -> IndexTarget:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.is_new and self._is_begun:
            with suppress(OSError):
                os.rmdir(self.folder)  # if it is empty
        self._stack.close()

    def begin(self) -> None:
        """Make the folder, keep other processes from changing the index, and remove what killed
        ones have left there. Raises SbbfError."""
        try:
            if self.is_new:
                os.makedirs(self.folder, exist_ok=True)
                with suppress(OSError):  # Windows opens no folder
                    self._lock(os.open(self.folder, READ), "building")
            else:
                self._fd = open_to_change(self.current)
                self._lock(self._fd, "updating")
        except OSError as error:
            work = "created" if self.is_new else "changed"
            raise RefusedError(
                f"the index cannot be {work}: {error.strerror or error}", file=self.folder
            ) from error
        if self.is_new:
            self._ensure_new()
        else:
            self.before = contents.read(self.folder)
            self._ensure_own()
        self._is_begun = True
        sweep(self.folder, is_locked_here=self._is_locked)
        self._remove_unnamed(self.before)

    def _lock(self, fd: int, work: str) -> None:
        """Keep other processes from the index until the end. Raises ChangedError if one has it."""
        self._stack.callback(close, fd)
        with suppress(OSError):
            lock(fd, self.folder, work)
            self._is_locked = True

    def publish(self, after: Contents) -> None:
        """Replace `current.json`, and remove old files that it does not name."""
        if not self.is_new:
            self._ensure_own()
        former = contents.names_of(self.before.segments) - contents.names_of(after.segments)
        for name in former:
            # The hour for readers that have it open begins now.
            with suppress(OSError):
                os.utime(os.path.join(self.folder, name), follow_symlinks=False)
        retired = filter(self._has_file, sorted({*self.before.retired, *former}))
        after = replace(after, retired=tuple(retired))
        with write_whole(self.current, overwrite=not self.is_new) as stream:
            stream.write(contents.build(after))
        self._remove_unnamed(after)

    def _has_file(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self.folder, name))

    def _remove_unnamed(self, stated: Contents) -> None:
        """Remove the files that are in no segment: those of killed processes, and former segments
        when they are old.

        Without locks, files of any kind may be those of another process, and must be old.
        """
        named = contents.names_of(stated.segments)
        for name in filter(contents.is_file_name, os.listdir(self.folder)):
            path = os.path.join(self.folder, name)
            is_kept = name in stated.retired or not self._is_locked
            with suppress(OSError):
                is_young = time.time() - os.lstat(path).st_mtime <= _KEPT_SECONDS
                if name not in named and not (is_kept and is_young):
                    os.unlink(path)

    def _ensure_new(self) -> None:
        if os.path.lexists(self.current):
            raise RefusedError(
                "the index exists",
                file=self.name,
                hint="give it as the path to update it, or name another",
            )

    def _ensure_own(self) -> None:
        if not leads_to(self.current, self._fd):
            raise ChangedError(
                "another process has updated the index",
                file=self.folder,
                hint="run the command again",
            )
