"""Where the metadata of a table is kept: in a folder, or in a catalog. A source loads the newest
metadata and commits a snapshot to it.

Iceberg stores whole locations: `file:/lake/t/data/x.parquet`, `file:///lake/...`, `/lake/...`,
`s3a://bucket/...`. Nothing in them is percent-encoded, so `file:` locations become paths; other
URLs are opened as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from sbbf_tool.errors import ErrorPlace, RefusedError, UnreadableError
from sbbf_tool.extensions.tables.iceberg.metadata import TableMetadata
from sbbf_tool.frozen import Frozen
from sbbf_tool.running.table import CreatingFiles, read_metadata
from sbbf_tool.storage.access import Access

_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Other spellings of schemes."""


def open_name(location: str) -> str:
    """Return the path or URL by which a location is opened. Raises UnreadableError if it is
    relative, or is not a file of this machine."""
    if location.startswith("file:"):
        path = location.removeprefix("file:")
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost") or not slash:
                raise UnreadableError(
                    f"the location names a file on another machine: {location!r:.200}"
                )
            path = f"/{rest}"
        if not path.startswith("/"):
            raise UnreadableError(f"the location is relative: {location!r:.200}")
        return path
    if location.startswith("/") or "://" in location:
        return location
    raise UnreadableError(f"the location is relative: {location!r:.200}")


def identity(location: str) -> str:
    """Return a form that is the same for all spellings of a location, to compare files with it."""
    name = open_name(location)
    scheme, separator, rest = name.partition("://")
    if not separator:
        return "/" + "/".join(filter(None, name.split("/")))
    scheme = scheme.lower()
    return f"{_SCHEMES.get(scheme, scheme)}://{rest}"


def parent(location: str) -> str:
    """Return the folder of a location."""
    return location.rpartition("/")[0]


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def is_below(location: str, folder: str) -> bool:
    """Return whether a location is in a folder or its subfolders, as text."""
    inner = identity(location)
    outer = identity(folder).rstrip("/")
    return inner.startswith(f"{outer}/") and ".." not in inner.split("/")


def location_of(path: str, folders: Iterable[str]) -> str:
    """Return the location of a path, spelled like that of these folders (locations) in which it
    is."""
    folder, _, name = path.rpartition("/")
    for candidate in folders:
        if identity(candidate) == identity(folder or "/"):
            return join(candidate, name)
    return path


def is_local(name: str) -> bool:
    """Return whether a name, as `open_name` returns it, is a path of this machine."""
    return name.startswith("/")


T = TypeVar("T")


class CommitConflictError(Exception):
    """Another commit came first; nothing was changed."""


class CommitStateUnknownError(Exception):
    """The catalog did not answer, or its answer does not say whether the commit succeeded."""


class TableState(Frozen):
    """The metadata of one version of a table, where it is, and the storage of its metadata
    files."""

    metadata: TableMetadata
    location: str
    """Location of the metadata file."""
    files: CreatingFiles
    """Their storage, by location as `open_name` returns it."""

    @property
    def metadata_folder(self) -> str:
        """Location of the folder of new manifests and metadata files."""
        folder = self.metadata.properties.get("write.metadata.path", "").rstrip("/")
        return folder or join(self.metadata.location, "metadata")

    @property
    def data_folder(self) -> str:
        """Location of the folder of new data files."""
        properties = self.metadata.properties
        for name in ("write.data.path", "write.folder-storage.path"):
            folder = properties.get(name, "").rstrip("/")
            if folder:
                return folder
        return join(self.metadata.location, "data")


class MetadataSource(ABC):
    """Where a table's metadata is kept."""

    name: str
    """The table as the user named it."""
    access: Access = Access()
    """Access to the table's files."""
    undo_lacks_names: ClassVar[bool] = False
    """See `Table.undo_lacks_names`."""

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
    def commit(
        self,
        state: TableState,
        snapshot: Mapping[str, Any] | None,
        properties: Mapping[str, str | None],
    ) -> None:
        """Make this snapshot the newest of `main`, and set these properties, if the table is still
        in this state.

        Without a snapshot, only the properties change. Raises CommitConflictError,
        CommitStateUnknownError, and RefusedError if the commit is not allowed.
        """

    @abstractmethod
    def undo(self, snapshot_id: int) -> str:
        """Return the statement that makes an earlier snapshot the current one."""


def read_file(files: CreatingFiles, location: str, most: int, parse: Callable[[bytes], T]) -> T:
    """Read and parse a metadata file of at most `most` bytes. Raises UnreadableError; errors of
    both steps name the file."""
    with ErrorPlace(location):
        return parse(read_metadata(files, open_name(location), most))
