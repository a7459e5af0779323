"""How this room reaches files: through what it is handed. Nothing here opens anything.

A path is a text with slashes, in the form its owner understands: a directory of the local file system, or the address of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from sbbf_tool.errors import ErrorPlace, UnreadableError

T = TypeVar("T")

LARGEST_METADATA = (1 << 31) - 1
"""Bytes: offsets in a container are Java ints, and so are the lengths of arrays that Paimon reads its other files into."""


class Files(Protocol):
    """Reading."""

    def read(self, path: str, most: int | None = None) -> bytes:
        """The whole file. Raises FileNotFoundError when there is none, another OSError when it cannot be had.

        A file of more than `most` bytes is not read: an OSError, too.
        """

    def list(self, directory: str) -> Sequence[str]:
        """The names in a directory, in any order; none when there is no such directory."""

    def resolve(self, path: str) -> str:
        """Return the one path of what a path leads to: absolute, with links followed, whether or not anything is there."""


@runtime_checkable
class WritableFiles(Files, Protocol):
    """Publishing, on storage that can create a file atomically and only if it is not there yet."""

    def create(self, path: str, data: bytes) -> None:
        """A new file that is either whole or not there, durable on return. Raises FileExistsError, changing nothing, where one is."""

    def replace(self, path: str, data: bytes) -> None:
        """A file with these bytes in place of what was there, at once."""

    def remove(self, path: str) -> None:
        """Take a file away; nothing happens when there is none."""


def parse_file(files: Files, path: str, parse: Callable[[bytes], T]) -> T:
    """What `parse` makes of a file of metadata; its errors name the file, as those of `read_file` do."""
    with ErrorPlace(path):
        return parse(read_file(files, path, LARGEST_METADATA))


def read_file(files: Files, path: str, most: int | None = None) -> bytes:
    """A file that must be there. Raises UnreadableError, with its path, when it is not, cannot be read, or has more than `most` bytes."""
    try:
        return files.read(path, most)
    except FileNotFoundError:
        raise UnreadableError("no such file", file=path) from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file system takes
        raise UnreadableError(f"cannot be read: {_reason(error)}", file=path) from error


def names_in(files: Files, directory: str) -> Sequence[str]:
    """The names in a directory, none when there is no such. Raises UnreadableError, with its path, when it cannot be listed."""
    try:
        return files.list(directory)
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be listed: {_reason(error)}", file=directory) from error


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def join(*parts: str) -> str:
    """Parts of a path with one slash between them; empty ones are left out."""
    return "/".join(part.rstrip("/") if at < len(parts) - 1 else part for at, part in enumerate(parts) if part)


def parent(path: str) -> str:
    """The directory a path is in."""
    return path.rstrip("/").rpartition("/")[0]
