"""Where the metadata of a table is kept: in a folder, or in a catalog. A source loads the newest metadata and commits a snapshot to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sbbf_tool.errors import ErrorPlace, RefusedError
from sbbf_tool.extensions.tables.iceberg.metadata import TableMetadata
from sbbf_tool.extensions.tables.iceberg.paths import join, open_name
from sbbf_tool.frozen import Frozen
from sbbf_tool.running.table import CreatingFiles, read_metadata

T = TypeVar("T")


class CommitConflictError(Exception):
    """Another commit came first; nothing was changed."""


class CommitStateUnknownError(Exception):
    """The catalog did not answer, or its answer does not say whether the commit succeeded."""


class TableState(Frozen):
    """The metadata of one version of a table, where it is, and the storage of its metadata files."""

    metadata: TableMetadata
    location: str
    """Location of the metadata file."""
    files: CreatingFiles
    """Their storage, by location as `paths.open_name` returns it."""

    @property
    def metadata_folder(self) -> str:
        """Location of the folder of new manifests and metadata files."""
        return self.metadata.properties.get("write.metadata.path", "").rstrip("/") or join(self.metadata.location, "metadata")

    @property
    def data_folder(self) -> str:
        """Location of the folder of new data files."""
        properties = self.metadata.properties
        for name in ("write.data.path", "write.folder-storage.path"):
            if folder := properties.get(name, "").rstrip("/"):
                return folder
        return join(self.metadata.location, "data")


class MetadataSource(ABC):
    """Where a table's metadata is kept."""

    name: str
    """The table as the user named it."""

    @property
    def why_unchangeable(self) -> RefusedError | None:
        """Why no commit can be made under this name, as far as that is known without a trial."""
        return None

    @abstractmethod
    def load(self) -> TableState:
        """Read the newest metadata. Raises UnreadableError."""

    @abstractmethod
    def ensure_changeable(self, state: TableState) -> None:
        """Raise RefusedError if no commit can be made here, whatever the table is."""

    @abstractmethod
    def commit(self, state: TableState, snapshot: Mapping[str, Any] | None, properties: Mapping[str, str | None]) -> None:
        """Make this snapshot the newest of `main`, and set these properties, if the table is still in this state.

        Without a snapshot, only the properties change.
        Raises CommitConflictError, CommitStateUnknownError, and RefusedError if the commit is not allowed.
        """

    @abstractmethod
    def undo(self, snapshot_id: int) -> str:
        """Return the statement that makes an earlier snapshot the current one."""


def read_file(files: CreatingFiles, location: str, most: int, parse: Callable[[bytes], T]) -> T:
    """Read and parse a metadata file of at most `most` bytes. Raises UnreadableError; errors of both steps name the file."""
    with ErrorPlace(location):
        return parse(read_metadata(files, open_name(location), most))
