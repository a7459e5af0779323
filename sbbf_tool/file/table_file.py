"""A data file of a table: its path, the names that its columns have in the table, and the name of
its copy.

A commit replaces files of a table by copies, so a run that changes a table never writes to its
files. A copy has the name `sbbf-<run>-<attempt>-<name of the first file>`: the run's id tells
abandoned copies from those of a run that is still at work, and two attempts at the same file, as
Spark makes them, have different names.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeAlias

from sbbf_tool.errors import RefusedError
from sbbf_tool.frozen import Frozen, field, replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sbbf_tool.parquet.column_names import ColumnNames
    from sbbf_tool.storage.access import Access


FileName: TypeAlias = "str | os.PathLike[str]"
"""Path or URL of a file, or a `TableFile`."""

_COPY = r"(?s)sbbf-(?P<run>[0-9a-f]{16})-[0-9a-f]{8}-(?P<name>.+)"
_MOST_BYTES = 255
"""Length of a file's name that all usual file systems allow."""


class Deletes(ABC):
    """Deletes of a table that apply to a data file. It can be sent to other processes, and is read
    where it is needed."""

    @abstractmethod
    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these rows of the file are deleted. They are counted from 0, ascend, and
        are not empty.

        Raises UnreadableError, and RefusedError for deletes that are not read; the message says
        why.
        """

    def ensure_carried(self) -> None:  # noqa: B027  most are carried whatever they are
        """Raise UnreadableError if a commit could not carry them over to a copy of the file, as far
        as reading little shows."""


class UnknownDeletes(Frozen, Deletes):
    """Deletes that are not read."""

    reason: str

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        raise RefusedError(self.reason)


class TableFile(Frozen, os.PathLike[str]):
    """A file of a table. Functions take it in place of a path, and then use and report the names of
    columns in the table."""

    path: str
    """Path or URL."""
    columns: ColumnNames
    run: str | None = None
    """Id of the run that copies the file to change it; None if the run only reads."""
    folder: str | None = None
    """Folder of the copy; that of the file if None."""
    partition: Mapping[str, str | None] = field(factory=dict)
    """Partition values as text, by the names that users know; None for NULL."""
    table: str | None = None
    """The table as the user named it, for the commands that fix the file."""
    unknown: AbstractSet[str] = frozenset()
    """Partition columns of which the file may have any value."""
    partition_types: Mapping[str, str] = field(factory=dict)
    """Types of the partition values, in the words of the table format."""
    deletes: tuple[Deletes, ...] = ()
    """Deletes that apply to the file."""
    is_live: bool = True
    """Whether the newest version of the table has the file; others may have been deleted."""

    def __fspath__(self) -> str:
        return self.path

    def new_copy_path(self) -> str:
        """Return the path of a new copy; each call returns another one."""
        assert self.run is not None, "the file is only read"
        folder, _, base = self.path.rpartition("/")
        if self.folder is not None:
            folder = self.folder
        return f"{folder}/{copy_name(self.run, base)}"


def copy_name(run: str, base: str) -> str:
    """Return a new name for a copy, by this run, of the file with the name `base`, which may be a
    copy itself."""
    match = re.fullmatch(_COPY, base)
    prefix = f"sbbf-{run}-{os.urandom(4).hex()}-"
    first_base = base if match is None else match["name"]
    while len(os.fsencode(first_base)) + len(prefix) > _MOST_BYTES:
        first_base = first_base[1:]
    return prefix + first_base


def run_of_copy(name: str) -> str | None:
    """Return the id of the run that made the copy with this file name; None for other files."""
    match = re.fullmatch(_COPY, name)
    return None if match is None else match["run"]


def new_run() -> str:
    """Return the id of a new run."""
    return os.urandom(8).hex()


class TableFiles(Frozen):
    """What work on the files of a table needs to know of each of them."""

    usual: TableFile
    """A file of which nothing is known but its path, whatever path that is."""
    special: Mapping[str, TableFile] = field(factory=dict)
    """The files of which more is known, or something else, by path."""
    access: Access | None = None
    """Access to them; None for that of the environment."""

    def file(self, path: str) -> TableFile:
        """Return the file with this path."""
        return self.special.get(path) or replace(self.usual, path=path)

    def usual_names(self, paths: Sequence[str]) -> list[str]:
        """Return these paths, empty for files whose columns have other names than usual."""
        names = []
        for path in paths:
            file = self.special.get(path, self.usual)
            names.append(path if file.columns == self.usual.columns else "")
        return names

    def only(self, paths: Collection[str]) -> TableFiles:
        """Return what is known of these files, to send it to another process."""
        special = {}
        for path in paths:
            file = self.special.get(path)
            if file is not None:
                special[path] = file
        return TableFiles(self.usual, special, self.access)
