"""The interface of a table: its live files, and the commit that replaces files by copies with the same rows.

A module per format implements it. A table object is one version of the table: it is read once, and `commit` reads the newest version
itself. Nothing here opens a Parquet file: `editing` makes the copies, and `runner.table_run` connects both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import ClassVar

from sbbf_tool.parquet.column_names import ColumnNames, Path


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of the version of the table."""

    path: str
    """Absolute path or URL, as `storage.places` opens it."""
    bytes: int | None
    """Length that the table records."""
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """Partition values as text, by the names that users know; None for NULL."""
    unchangeable: str | None = None
    """Why a commit cannot replace this file, such as `rows are deleted by position: compact them first`; None if it can."""
    skipped: str | None = None
    """Why its rows cannot be read, such as `the file is in ORC, not Parquet`; None for Parquet files."""
    columns: ColumnNames | None = None
    """Names of the columns of this file, for a file whose columns the table finds by a mapping of its own; None: those of the table."""
    unknown: AbstractSet[str] = frozenset()
    """Names of the table's partition values that the partition spec of this file lacks: a predicate on one does not exclude the file."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A live file and its copy, which has the same rows in the same row groups."""

    old_path: str
    new_path: str
    new_bytes: int
    modified_ms: int
    """Milliseconds since 1970 at which the copy was written."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit records about the change."""

    operation: str
    """`ADD BLOOM FILTERS`, `REMOVE BLOOM FILTERS`, `RESIZE BLOOM FILTERS` or `REPAIR BLOOM FILTERS`."""
    columns: tuple[str, ...] = ()
    """Names that users know; empty for all columns."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the table to set in the same commit; only formats whose `takes_properties` is true take any."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that succeeded."""

    version: str
    """`version 42` or `snapshot 8124`."""
    num_files: int
    """Number of files that were replaced; 0 if all had vanished, and then there is no commit and `version` is the newest one."""
    vanished: tuple[str, ...] = ()
    """Old paths of files that other commits removed meanwhile, so that their copies are not part of the table."""
    rebuilds: int = 0
    """How often the commit was built again, because another commit came first."""
    undo: str | None = None
    """Statement or command that undoes the commit, such as ``RESTORE TABLE delta.`/lake/orders` TO VERSION AS OF 41``; None if the format
    has none."""
    is_new_version: bool = True
    """Whether the commit made this version; if not, the commit changed the files of existing versions, of which this is the newest."""


class Table(ABC):
    """One version of a table."""

    format: ClassVar[str]
    """`Delta`, `Iceberg` or `DuckLake`."""
    takes_properties: ClassVar[bool] = False
    """Whether a commit can set properties by which later writers add filters."""
    name: str
    """The table as the user named it."""
    location: str
    """Folder or URL of the table's data, without a slash at the end."""
    version: str
    """The version that was read, such as `version 41` or `snapshot 8123`."""
    columns: ColumnNames
    """The names that users know, for the columns of the files."""
    properties: Mapping[str, str]
    """Properties of the table."""
    partition_columns: AbstractSet[Path] = frozenset()
    """Paths of the columns whose values are in the table's metadata, and not in its files."""
    partition_types: Mapping[str, str] = {}
    """Types of the partition values by their names, in the words of the format; see `file.partitions.parse_value`."""
    marker_text: str = ""
    """Content of the markers of runs in the table's folder. Unless it is empty, copies are this table's only if the marker of their run
    has it, since the folder may also have files of a table in another catalog."""

    def column_of_property(self, name: str) -> str:
        """Return the name of the column that the name of a property contains; a name that means no column is returned as it is."""
        return name

    def name_for_property(self, column: str) -> str:
        """Return the name of a column as the names of properties contain it."""
        return column

    @abstractmethod
    def live_files(self) -> Iterable[LiveFile]:
        """Return the data files of this version, in the order of the table's metadata."""

    def query_other_rows(self, column: str, values: Sequence[object]) -> bool:
        """Return whether rows that are in none of the live files may hold one of the values in a column; None is null."""
        return False

    @abstractmethod
    def ensure_changeable(self, *, conditional_put: bool = False) -> None:
        """Raise RefusedError, with the feature's name, if no commit can be made to this table.

        `conditional_put` confirms that all writers of a table on S3 create log entries by conditional requests.
        """

    @abstractmethod
    def copy_path(self, file: LiveFile, name: str) -> str:
        """Return the path of the copy of `file` that has this file name, in a folder where the table's own clean-up finds it."""

    @abstractmethod
    def commit(self, replacements: Sequence[Replacement], change: Change) -> Commit:
        """Replace files in one commit in which no row changes, based on the newest version of the table.

        If another commit comes first, the commit is built again from the new version; files that it removed are left out. Raises
        RefusedError if the newest version cannot be changed or other commits come first in all attempts, WriteError if writing fails
        (nothing is changed in both cases), and UncertainWriteError if it is unknown whether the commit succeeded: then the copies
        must stay.
        """

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties in a commit of their own, which replaces no file. Raises the errors of `commit`.

        Only formats whose `takes_properties` is true can.
        """
        # A run refuses properties of the other formats before it starts.
        raise NotImplementedError

    @abstractmethod
    def referenced(self, paths: AbstractSet[str]) -> AbstractSet[str]:
        """Return those of these files that any retained version of the table refers to."""
