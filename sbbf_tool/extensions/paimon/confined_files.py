"""Access to the files of one table: paths in the table's logs and manifests must be below the table's directory after links are followed.

A manifest can name any file that this process may read, and any place to write to. Therefore reads outside the table are refused unless the
user allows them, and writes outside the table are always refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.extensions.paimon.files import FileIO, WritableFiles, parent


class OutsideError(UnreadableError):
    """A path in the metadata of a table leads out of the table."""

    def __init__(self, path: str, place: str) -> None:
        hint = "to read it, allow files outside the table"
        super().__init__(f"the path leads outside the table, to {place}", file=path, hint=hint)


class ConfinedFiles:
    """Files below `root`. Other files can be read only with `allow_outside`, and never written. See `FileIO` and `WritableFiles`."""

    def __init__(self, files: FileIO, root: str, allow_outside: bool = False) -> None:
        self._files = files
        try:
            self._root = files.resolve(root)
        except (OSError, ValueError):
            self._root = root  # no file system accepts this path, and every read reports that
        self.allow_outside = allow_outside

    @property
    def is_writable(self) -> bool:
        return isinstance(self._files, WritableFiles)

    def find_outside_place(self, path: str) -> str | None:
        """Return the target of a path if it is outside the table; None if it is inside."""
        place = self._files.resolve(path)
        return None if place == self._root or place.startswith(f"{self._root.rstrip('/')}/") else place

    def resolve(self, path: str) -> str:
        return self._files.resolve(path)

    def read(self, path: str, most: int | None = None) -> bytes:
        self._ensure_readable(path)
        return self._files.read(path, most)

    def list(self, directory: str) -> Sequence[str]:
        self._ensure_readable(directory)
        return self._files.list(directory)

    def create(self, path: str, data: bytes) -> None:
        self._writable(path).create(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._writable(path).replace(path, data)

    def remove(self, path: str) -> None:
        self._writable(path).remove(path)

    def _ensure_readable(self, path: str) -> None:
        place = None if self.allow_outside else self.find_outside_place(path)
        if place is not None:
            raise OutsideError(path, place)

    def _writable(self, path: str) -> WritableFiles:
        # The last component is not resolved: `create` fails on a link of that name, and `replace` replaces the link.
        place = self.find_outside_place(parent(path))
        if place is not None:
            raise RefusedError(f"the path leads outside the table, to {place}; nothing is written there", file=path)
        assert isinstance(self._files, WritableFiles)
        return self._files
