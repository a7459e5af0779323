"""A table as one more kind of path: its live files, and the change that replaces files by copies
with the same rows.

An extension brings a kind of tables as a module with `is_name(name)` (the form of a name decides),
`is_table(name)` and `find_table(name, table_format)`, which returns a `Table`; with
`absolute_name(name)` if such a name may depend on the working folder. A table object is one version
of the table, which is read once. Nothing here opens a Parquet file.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError
from sbbf_tool.storage.access import Access
from sbbf_tool.storage.system_calls import reason_of

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.table_file import Deletes
    from sbbf_tool.parquet.column_names import ColumnNames, Path


class CreatingFiles(Protocol):
    """Storage of a table's metadata."""

    def read(self, path: str, most: int | None = None) -> bytes:
        """Read a whole file. Raises FileNotFoundError if it does not exist, and OSError if it has
        more than `most` bytes."""

    def create(self, path: str, data: bytes) -> None:
        """Create a file under a name that is not in use; FileExistsError if it is."""

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""


class LiveFile(NamedTuple):
    """A data file of the version of the table."""

    path: str
    """Absolute path or URL, as `storage.places` opens it."""
    bytes: int | None
    """Length that the table records."""
    partition: Mapping[str, str | None] = {}
    """Partition values as text, by the names that users know; None for NULL."""
    unchangeable: str | None = None
    """Why a commit cannot replace this file, such as `rows are deleted by position: compact them
    first`; None if it can."""
    skipped: str | None = None
    """Why its rows cannot be read, such as `the file is in ORC, not Parquet`; None for Parquet
    files."""
    columns: ColumnNames | None = None
    """Names of the columns of this file, for a file whose columns the table finds by a mapping of
    its own; None: those of the table."""
    unknown: AbstractSet[str] = frozenset()
    """Names of the table's partition values that the partition spec of this file lacks: a predicate
    on one does not exclude the file."""
    deletes: tuple[Deletes, ...] = ()
    """Deletes that apply to the file."""
    is_live: bool = True
    """Whether this version of the table has the file, and not only an earlier one, whose files may
    have been deleted."""


class Change(NamedTuple):
    """What a commit records about the change."""

    operation: str
    """`ADD BLOOM FILTERS`, or with APPLY, REMOVE, REPAIR or RESIZE."""
    columns: tuple[str, ...] = ()
    """Names that users know; empty for all columns."""
    properties: Mapping[str, str | None] = {}
    """Properties of the table to set in the same commit, or to remove where None; only formats with
    `takes_properties` take any."""


def change_properties(
    before: Mapping[str, str], change: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the properties after a change."""
    return {name: text for name, text in {**before, **change}.items() if text is not None}


class Table(ABC):
    """One version of a table."""

    format: ClassVar[str]
    """Name of the format."""
    changed_by: ClassVar[str]
    """The class of its changes, a `TableChange`, as `MODULE:NAME`. It is called with the table, the
    change, the predicate and the edit, and reads and writes nothing yet; with `may_lack_columns`,
    the table need not have all columns of the change, and `on_cluster` says that workers may write
    copies after the run was interrupted. It raises UsageError if the table cannot have the
    change."""
    old_files_stay: ClassVar[str] = "until the table's clean-up deletes them"
    """How long the files stay that a commit has replaced."""
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
    """Types of the partition values by their names, in the words of the format; see
    `file.partition_order.parse_value`."""

    access: Access = Access()
    """Access to its objects."""
    why_unchangeable: RefusedError | None = None
    """Why no command changes the table under this name, as far as that is known without a trial."""
    notice: str | None = None
    """What a user should know about the table that the name means."""
    undo_lacks_names: bool = False
    """Whether the user must complete the statement of `Commit.undo` with names that the folder of
    the table does not state."""
    may_be_other: bool = False
    """Whether the name may mean a second table, with other files, in the same folder."""

    def column_of_property(self, name: str) -> str:
        """Return the name of the column that the name of a property contains; a name that means no
        column is returned as it is."""
        return name

    def name_for_property(self, column: str) -> str:
        """Return the name of a column as the names of properties contain it."""
        return column

    @abstractmethod
    def live_files(self) -> Iterable[LiveFile]:
        """Return the data files of this version, in the order of the table's metadata."""

    def all_files(self) -> tuple[Iterable[LiveFile], AbstractSet[str]]:
        """Return the data files of all retained versions, live ones first, and the paths of other
        files that these versions list.

        A path may occur more than once; its first file counts.
        """
        raise RefusedError(
            f"of a table of {self.format}, only the newest version is read", file=self.name
        )

    def query_other_rows(
        self, column: str | None, values: Sequence[object] | None, *, all_versions: bool = False
    ) -> bool:
        """Return whether rows that are in none of the files may hold one of the values in a column,
        or in any; None among the values is null. Without values, return whether there are rows."""
        return False

    @abstractmethod
    def ensure_changeable(self, *, conditional_put: bool = False) -> None:
        """Raise RefusedError, with the feature's name, if no commit can be made to this table.

        `conditional_put` confirms that all writers of a table on S3 create log entries by
        conditional requests.
        """

    @abstractmethod
    def copy_path(self, file: LiveFile, name: str) -> str:
        """Return the path of the copy of `file` that has this file name, in a folder where the
        table's own clean-up finds it."""


class Commit(NamedTuple):
    """A commit that succeeded."""

    version: str
    """`version 42` or `snapshot 8124`."""
    num_files: int
    """Number of files that were replaced; 0 if all had vanished, and then there is no commit and
    `version` is the newest one."""
    vanished: tuple[str, ...] = ()
    """Old paths of files that other commits removed meanwhile, so that their copies are not part of
    the table."""
    rebuilds: int = 0
    """How often the commit was built again, because another commit came first."""
    undo: str | None = None
    """Statement or command that undoes the commit, such as ``RESTORE TABLE delta.`/lake/orders` TO
    VERSION AS OF 41``; None if the format has none."""
    new_names: tuple[str, ...] = ()
    """Names of the other files beside the copies that the commit contains, such as delete files."""
    is_new_version: bool = True
    """Whether the commit made this version; if not, the commit changed the files of existing
    versions, of which this is the newest."""


class TableChange(ABC):
    """A change of a table: it wraps the rows of a run, and commits."""

    def __init__(self, table: Table, change: Change, *, on_cluster: bool) -> None:
        self.table = table
        self.change = change
        self.on_cluster = on_cluster
        """Whether workers may write copies after the run was interrupted."""
        self.commits: list[Commit] = []
        """The commits of files so far."""
        self.vanished: list[str] = []
        """Paths of the files that other commits replaced or removed before this run could, and of
        those whose copies are lost."""
        self.files_without_copy: list[str] = []
        """Paths of the files whose copies were deleted or changed before the commit, as by a
        clean-up of the table's folder."""
        self.old_bytes = 0
        """Bytes of the files that the commits replaced. They stay until the table's own clean-up
        deletes the files."""
        self.sets_properties_alone = False
        """Whether properties of the table were set in a commit of their own, because no file needed
        a copy."""
        self.are_first_changes = True
        """Whether no file that got a copy had a change by `sbbf` before."""

    @property
    @abstractmethod
    def changed_properties(self) -> dict[str, str | None]:
        """The properties that the change set, or removed where None, but for the record of them."""

    @abstractmethod
    def rows(
        self, run: Callable[[Any, Any], Generator[Any, None, None]], work: Any
    ) -> Generator[Any, None, None]:
        """Yield the row of each live file, with the runner's `run`, and commit; the last commit
        follows the last row."""

    @abstractmethod
    def ensure_columns(self, selection: Any, context: Context) -> None:
        """Raise UsageError if the table does not have a column of the change, or has its values
        only as those of partitions."""


def read_metadata(files: CreatingFiles, path: str, most: int | None = None) -> bytes:
    """Read a metadata file of at most `most` bytes. Raises UnreadableError, with its path."""
    try:
        return files.read(path, most)
    except FileNotFoundError:
        raise UnreadableError("no such file", file=path) from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file system accepts
        reason = reason_of(error) if isinstance(error, ValueError) or error.strerror else error
        raise UnreadableError(f"cannot be read: {reason}", file=path) from error


def attempts(most: int, first_wait: float, longest_wait: float) -> Iterator[int]:
    """Yield the numbers of attempts at a commit, and wait before each but the first: rival commits
    must not retry in step."""
    import random  # 2 ms that only a second attempt needs

    for attempt in range(most):
        if attempt:
            time.sleep(random.uniform(0, min(longest_wait, first_wait * 2 ** min(attempt, 10))))
        yield attempt


def overtaken_error(most: int, file: str) -> RefusedError:
    """Return the error for a commit after these attempts, before all of which others came."""
    return RefusedError(
        f"other commits came first in all {most} attempts; nothing was changed",
        file=file,
        hint="try again when fewer writers commit",
    )


class NewFiles:
    """New files of a commit, which are removed at the end unless `keep` is set."""

    def __init__(self, files: CreatingFiles) -> None:
        self._files = files
        self._paths: list[str] = []
        self.keep = False

    def create(self, path: str, data: bytes) -> None:
        """Create a file. Raises the errors of the storage."""
        try:
            self._files.create(path, data)
        except FileExistsError:
            raise
        except OSError:
            # The file may exist without being durable.
            with suppress(OSError, SbbfError):
                if self._files.read(path) == data:
                    self._paths.append(path)
            raise
        self._paths.append(path)

    def names(self) -> tuple[str, ...]:
        """Return the names of the files, without folders."""
        return tuple(path.rpartition("/")[2] for path in self._paths)

    def __enter__(self) -> NewFiles:
        return self

    def __exit__(self, *exception: object) -> None:
        for path in () if self.keep else self._paths:
            with suppress(OSError, SbbfError):
                self._files.remove(path)
