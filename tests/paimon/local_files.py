"""Files of the local file system, for tests: what the room is handed elsewhere by the storage room."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path


class LocalFiles:
    """Reading and publishing in local directories. `read_paths` records what was read, in order."""

    def __init__(self) -> None:
        self.read_paths: list[str] = []

    def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        return _local(path).read_bytes()

    def list(self, directory: str) -> Sequence[str]:
        try:
            return os.listdir(_local(directory))
        except FileNotFoundError:
            return []

    def create(self, path: str, data: bytes) -> None:
        """A hard link to a finished temporary file: the name appears at once, and only if it was free."""
        temporary = _write_beside(path, data)
        try:
            os.link(temporary, _local(path))
        finally:
            temporary.unlink()
        _sync_directory(_local(path).parent)

    def replace(self, path: str, data: bytes) -> None:
        os.replace(_write_beside(path, data), _local(path))
        _sync_directory(_local(path).parent)

    def remove(self, path: str) -> None:
        _local(path).unlink(missing_ok=True)


def _local(path: str) -> Path:
    """A path, or a `file:` address as manifests hold it."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return Path(path.removeprefix(scheme))
    return Path(path)


def _write_beside(path: str, data: bytes) -> Path:
    target = _local(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.chmod(name, 0o644)
    return Path(name)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
