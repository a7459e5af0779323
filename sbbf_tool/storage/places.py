"""Dispatch by name: paths to the local file system, URLs to their services. All reads and writes by
name pass through this module.

The modules for services are imported with the first URL, and those that write with the first
change, so reads of paths do not pay for these imports.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING

from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.storage import leftovers, listing, table_formats
from sbbf_tool.storage.inputs import FileIn, FileSystemLike, OpenFileSource, Readable, find_input

# Other packages know these two names from here.
from sbbf_tool.storage.names import is_url as is_url
from sbbf_tool.storage.names import local_path as local_path
from sbbf_tool.storage.names import locate
from sbbf_tool.storage.source import LocalSource, Piece, Source, blocks_of
from sbbf_tool.storage.system_calls import ensure_can_change
from sbbf_tool.storage.threads import holding

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sbbf_tool.storage.copying import BegunCopy
    from sbbf_tool.storage.folders import Folders
    from sbbf_tool.storage.journal import EnsureFooter
    from sbbf_tool.storage.objects.store import Location, Version
    from sbbf_tool.storage.spool import Spool

LISTING_FORMATS = ("Delta", "Iceberg")
"""The formats whose root means a table: engines take its files from its metadata, and from no
listing."""
_LOCKS = 64
_MOST_FOLDERS = 1000
"""Folders whose tables are kept; the files of a run come folder by folder."""


def open_source(name: Readable | FileIn) -> Source:
    """Open a file. Raises UnreadableError if it is missing or cannot be opened, and UsageError if
    `name` cannot name a file."""
    if isinstance(name, FileIn):
        return open_through(*name)
    if not isinstance(name, str | bytes | os.PathLike):
        return OpenFileSource(name)
    if is_url(name):
        from sbbf_tool.storage.objects.stores import open_object

        return open_object(os.fsdecode(name))
    return LocalSource(local_path(name))


def open_folders(name: str) -> Folders:
    """Return the access to the metadata files of a table at this path or URL."""
    if is_url(name):
        from sbbf_tool.storage.objects.stores import ObjectFolders

        return ObjectFolders()
    # Only tables need it.
    from sbbf_tool.storage.folders import LocalFolders

    return LocalFolders()


def open_through(files: FileSystem, path: str) -> Source:
    """Open a file in a pyarrow file system."""
    if _is_local(files):
        return LocalSource(path)
    from sbbf_tool.storage.objects.arrow import open_in

    return open_in(files, path)


def _is_local(files: FileSystem) -> bool:
    from pyarrow.fs import LocalFileSystem

    return isinstance(files, LocalFileSystem)


def arrow_files(names: list[str]) -> tuple[FileSystem, list[str]]:
    """Return the pyarrow file system that reads all of these files, and their paths in it. Raises
    UsageError if there is none."""
    if any(map(is_url, names)):
        from sbbf_tool.storage.objects import arrow

        return arrow.file_system(names)
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem(), [os.path.abspath(locate(name)) for name in names]


def parquet_inputs(
    name: Readable, filesystem: FileSystemLike | None
) -> Iterator[Readable | FileIn]:
    """Yield the Parquet files of a name as `parquet_files` does, in `filesystem` if one is given;
    an open file is its only file."""
    chosen = find_input(name, filesystem)
    if isinstance(chosen, FileIn):
        yield from _inputs_in(chosen)
    elif isinstance(chosen, str | bytes | os.PathLike):
        yield from parquet_files(os.fsdecode(chosen))
    else:
        yield chosen


def _inputs_in(chosen: FileIn) -> Iterator[Readable | FileIn]:
    if _is_local(chosen.filesystem):
        yield from parquet_files(chosen.path)
        return
    from sbbf_tool.storage.objects.listing import parquet_files_in

    for path in parquet_files_in(*chosen):
        yield FileIn(chosen.filesystem, path)


def parquet_files(name: str) -> Iterator[str]:
    """Yield the Parquet files of a name: the file itself, all files below a folder or prefix, or
    all matches of a glob.

    Raises UnreadableError if there is no file.
    """
    return (entry.path for entry in entries(name) if not (entry.is_folder or entry.is_unfinished))


def find_single_file(name: str) -> str | None:
    """Return the path or URL of the one file that a name means; None for a folder, prefix or glob,
    or if only Hadoop can list the name."""
    if not is_url(name):
        path = local_path(name)
        return path if listing.is_one_file(path) else None
    if not is_listed_here(name):
        return None
    from sbbf_tool.storage.objects import listing as object_listing

    return object_listing.find_single_object(name)


def find_table_format(name: str) -> str | None:
    """Return the format of the table whose root a name is, such as `Delta`; None for files, other
    folders and globs."""
    return next(iter(find_table_formats(name)), None)


def find_table_formats(name: str) -> tuple[str, ...]:
    """Return the formats of the tables whose root a name is: a converted table may have two."""
    if not is_url(name):
        path = local_path(name)
        return tuple(table_formats.formats_of(path)) if os.path.isdir(path) else ()
    if name.endswith(".parquet") or re.search(listing.WILDCARD, name) or not is_listed_here(name):
        return ()
    from sbbf_tool.storage.objects import listing as object_listing

    return object_listing.find_table_formats(name)


def entries(name: str) -> Iterator[listing.Entry]:
    """Yield files as `parquet_files` does, and whether each is a link; also yield the links to
    folders."""
    if is_url(name):
        from sbbf_tool.storage.objects import listing as object_listing

        return object_listing.entries(name)
    return listing.entries(local_path(name))


def size_and_time(name: str) -> tuple[int, float | None] | None:
    """Return the present size of a file or object, and when it was written, in seconds since 1970;
    None if it does not exist."""
    if is_url(name):
        version = _find_version(name)
        return None if version is None else (version.size, version.time)
    try:
        status = os.stat(local_path(name))
    except OSError:
        return None
    return status.st_size, status.st_mtime


def is_listed_here(name: str) -> bool:
    """Return whether `entries` can list this name; Hadoop lists HDFS and the schemes that this
    package does not support."""
    if not is_url(name):
        return True
    from sbbf_tool.storage.objects.store import parse_location

    try:
        return parse_location(name).service != "hdfs"
    except UsageError:
        return False


def size_and_etag(name: str) -> tuple[int, str] | None:
    """Return the size and the strong ETag of an object, in one request; None if it does not exist
    or has no such ETag."""
    version = _find_version(name)
    if version is None or version.strong_tag is None:
        return None
    return version.size, version.strong_tag


def _find_version(name: str) -> Version | None:
    """Return the present version of an object; None if it does not exist."""
    from sbbf_tool.storage.objects.store import parse_location
    from sbbf_tool.storage.objects.stores import store_of

    location = parse_location(name)
    return store_of(location).version(location.key)


class TableFinder:
    """Finder of the table that a file belongs to. It lives for one call or one run, and looks at
    each folder and each prefix once.

    Threads may share one.
    """

    def __init__(self) -> None:
        self._locks = [Lock() for _ in range(_LOCKS)]
        self._kinds: dict[Location, str | None] = {}
        self._folders: dict[str, tuple[str, str] | None] = {}
        self._sinks: dict[str, str | None] = {}

    def __reduce__(self) -> tuple[type[TableFinder], tuple[()]]:
        # Pickled without its listings: another process lists again.
        return TableFinder, ()

    def managing_table(self, name: str) -> tuple[str, str] | None:
        """Return table format and folder, such as `("Delta", "/lake/orders")`; None for a file
        outside tables."""
        if is_url(name):
            from sbbf_tool.storage.objects import listing as object_listing

            # Files of one prefix wait for the first of them.
            with self._holding(name.rpartition("/")[0]):
                table = object_listing.managing_table(name, self._kinds)
        else:
            path = locate(name)
            # A link belongs to the table of the file that it leads to.
            real = os.path.realpath(path) if os.path.islink(path) else path
            table = self._table_of_folder(os.path.dirname(real))
        if table is not None:
            return table
        ducklake = table_formats.ducklake_folder(name)
        return None if ducklake is None else ("DuckLake", ducklake)

    def _table_of_folder(self, folder: str) -> tuple[str, str] | None:
        try:
            return self._folders[folder]
        except KeyError:
            if len(self._folders) >= _MOST_FOLDERS:
                # Other threads may read the dictionary.
                self._folders = {}
            table = self._folders[folder] = table_formats.managing_table(folder)
            return table

    def spark_sink(self, name: str) -> str | None:
        """Return the folder above a file into which a streaming query of Spark writes, and logs the
        sizes; None if there is none."""
        folder = os.path.dirname(name if is_url(name) else os.path.abspath(name))
        # Files of one folder wait for the first of them.
        with self._holding(folder):
            return self._sink_from(folder)

    def _holding(self, folder: str) -> AbstractContextManager[None]:
        """Hold the lock of a folder or prefix, which several of them share."""
        return holding(self._locks[hash(folder) % _LOCKS])

    def _sink_from(self, folder: str) -> str | None:
        if folder not in self._sinks:
            sink = None
            if _is_spark_sink(folder):
                sink = folder
            elif not _is_root(folder):
                sink = self._sink_from(os.path.dirname(folder))
            self._sinks[folder] = sink
        return self._sinks[folder]


def _is_spark_sink(folder: str) -> bool:
    if is_url(folder):
        from sbbf_tool.storage.objects import listing as object_listing

        return object_listing.has_any(f"{folder}/_spark_metadata/")
    return os.path.isdir(os.path.join(folder, "_spark_metadata"))


def _is_root(folder: str) -> bool:
    if is_url(folder):
        return folder.endswith(":/") or "/" not in folder.partition("://")[2].rstrip("/")
    return folder in ("/", "")


def open_spool(target: str, *, keeps: bool = True) -> Spool:
    """Open a spool for new bytes of `target`: on the same disk, or among the system's temporary
    files if the target is remote."""
    from sbbf_tool.storage.spool import Spool

    if is_url(target):
        # It takes 20 ms to load.
        from tempfile import gettempdir

        return Spool(os.path.join(gettempdir(), "sbbf"), keeps=keeps)
    return Spool(locate(target), copies=2, keeps=keeps)


def shares_blocks(name: str) -> bool:
    """Return whether a copy of a local file, in the same folder, shares its blocks; False for
    objects, whose store copies them."""
    if is_url(name):
        return False
    from sbbf_tool.storage.copying import has_reflinks

    return has_reflinks(os.path.dirname(locate(name)))


def begin_copy(source: Source, target: str, count: int) -> AbstractContextManager[BegunCopy | None]:
    """Return the context of the copy that a thread makes of the first `count` bytes for a
    replacement; None if this would not be faster."""
    if is_url(target):
        return nullcontext()
    from sbbf_tool.storage import local

    return local.begin_copy(source, local_path(target), count)


def replace_file(
    source: Source,
    target: str,
    keep: int,
    pieces: Iterable[Piece],
    verify: Callable[[Source], None],
    begun: BegunCopy | None = None,
) -> list[str]:
    """Make `target` the first `keep` bytes of `source` followed by `pieces`: see
    `local.replace_local`."""
    ensure_can_change(target)
    if is_url(target):
        from sbbf_tool.storage.objects import stores

        return stores.replace_object(source, target, keep, tuple(pieces), verify)
    from sbbf_tool.storage import local

    return local.replace_local(source, local_path(target), keep, blocks_of(pieces), verify, begun)


def append(source: Source, pieces: Sequence[Piece], verify: Callable[[Source], None]) -> list[str]:
    """Append to a local file: see `storage.append`."""
    if not isinstance(source, LocalSource):
        raise RefusedError(
            "an object cannot be appended to", file=source.name, hint="do not append"
        )
    from sbbf_tool.storage import append as local_append

    return local_append.append(source, pieces, verify)


def sweep(name: str) -> None:
    """Remove the files that killed commands left beside a local file. Stores do not list incomplete
    uploads."""
    if not is_url(name):
        leftovers.sweep(*os.path.split(os.path.realpath(locate(name))))


def recover(name: str, ensure_footer: EnsureFooter, *, changes: bool) -> int | None:
    """Undo an interrupted append to a local file: see `storage.append`."""
    if is_url(name):
        return None
    from sbbf_tool.storage import append as local_append

    return local_append.recover(locate(name), ensure_footer, changes=changes)


def absolute(name: str) -> str:
    """Return the absolute path; URLs are returned unchanged. Raises UnreadableError if the working
    folder no longer exists."""
    return name if is_url(name) else os.path.abspath(locate(name))
