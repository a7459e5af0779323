"""Dispatch by name: paths to the local file system, URLs to their services. All reads and writes by
name pass through this module.

The modules for services are imported with the first URL, so paths do not pay for these imports.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import Lock
from typing import TYPE_CHECKING

from sbbf_tool.display import redact
from sbbf_tool.errors import MissingError, RefusedError, UnreadableError, UsageError
from sbbf_tool.storage import listing, local
from sbbf_tool.storage.source import LocalSource, Piece, Source, blocks_of
from sbbf_tool.storage.system_calls import ensure_can_change, reason_of
from sbbf_tool.storage.threads import holding

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sbbf_tool.storage.append import EnsureFooter
    from sbbf_tool.storage.copying import BegunCopy
    from sbbf_tool.storage.folders import Folders
    from sbbf_tool.storage.inputs import FileIn, FileSystemLike, Readable
    from sbbf_tool.storage.objects.store import Location, Version
    from sbbf_tool.storage.spool import Spool

_ONE_SLASH = r"(?i)(file|dbfs|hdfs|viewfs|s3[an]?|gs|abfss?|wasbs?):/(?!/)"
_NO_RENAME = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_CAP_FOWNER = 1 << 3
_LOCKS = 64
_MOST_FOLDERS = 1000
"""Folders whose tables are kept; the files of a run come folder by folder."""


def is_url(name: str | os.PathLike[str]) -> bool:
    """Return whether a name is a URL of something other than the local file system."""
    text = os.fsdecode(name)
    return "://" in text and not text.startswith(("/", ".", "file:/"))


def open_source(name: Readable | FileIn) -> Source:
    """Open a file. Raises UnreadableError if it is missing or cannot be opened, and UsageError if
    `name` cannot name a file."""
    if not isinstance(name, str | bytes | os.PathLike):
        from sbbf_tool.storage.inputs import FileIn, OpenFileSource

        return open_through(*name) if isinstance(name, FileIn) else OpenFileSource(name)
    if is_url(name):
        from sbbf_tool.storage.objects.stores import open_object

        return open_object(os.fsdecode(name))
    return LocalSource(local_path(name))


def open_folders(name: str) -> Folders:
    """Return the access to the metadata files of a table at this path or URL."""
    if is_url(name):
        from sbbf_tool.storage.objects.stores import ObjectFolders

        return ObjectFolders()
    from sbbf_tool.storage.folders import LocalFolders

    return LocalFolders()


def open_through(files: FileSystem, path: str) -> Source:
    """Open a file in a pyarrow file system."""
    from pyarrow.fs import LocalFileSystem

    if isinstance(files, LocalFileSystem):
        return LocalSource(path)
    from sbbf_tool.storage.objects.arrow import open_in

    return open_in(files, path)


def arrow_files(names: list[str]) -> tuple[FileSystem, list[str]]:
    """Return the pyarrow file system that reads all of these files, and their paths in it. Raises
    UsageError if there is none."""
    if any(map(is_url, names)):
        from sbbf_tool.storage.objects import arrow

        return arrow.file_system(names)
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem(), [os.path.abspath(_locate(name)) for name in names]


def parquet_inputs(
    name: Readable, filesystem: FileSystemLike | None
) -> Iterator[Readable | FileIn]:
    """Yield the Parquet files of a name as `parquet_files` does, in `filesystem` if one is given;
    an open file is its only file."""
    from sbbf_tool.storage.inputs import FileIn, find_input

    chosen = find_input(name, filesystem)
    if not isinstance(chosen, FileIn):
        yield from (
            parquet_files(os.fsdecode(chosen))
            if isinstance(chosen, str | bytes | os.PathLike)
            else [chosen]
        )
        return
    from pyarrow.fs import LocalFileSystem

    if isinstance(chosen.filesystem, LocalFileSystem):
        yield from parquet_files(chosen.path)
        return
    from sbbf_tool.storage.objects.listing import parquet_files_in

    yield from (FileIn(chosen.filesystem, path) for path in parquet_files_in(*chosen))


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


LISTING_FORMATS = ("Delta", "Iceberg")
"""The formats whose root means a table: engines take its files from its metadata, and from no
listing."""


def find_table_format(name: str) -> str | None:
    """Return the format of the table whose root a name is, such as `Delta`; None for files, other
    folders and globs."""
    if not is_url(name):
        path = local_path(name)
        return listing.format_of(path) if os.path.isdir(path) else None
    if name.endswith(".parquet") or re.search(listing.WILDCARD, name) or not is_listed_here(name):
        return None
    from sbbf_tool.storage.objects import listing as object_listing

    return object_listing.find_table_format(name)


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
    return (
        None
        if version is None or version.strong_tag is None
        else (version.size, version.strong_tag)
    )


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
            with holding(self._locks[hash(name.rpartition("/")[0]) % _LOCKS]):
                table = object_listing.managing_table(name, self._kinds)
        else:
            path = _locate(name)
            # A link belongs to the table of the file that it leads to.
            folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)
            try:
                table = self._folders[folder]
            except KeyError:
                if len(self._folders) >= _MOST_FOLDERS:
                    # Other threads may read the dictionary.
                    self._folders = {}
                table = self._folders[folder] = listing.managing_table(folder)
        if table is None and (ducklake := listing.ducklake_folder(name)) is not None:
            return "DuckLake", ducklake
        return table

    def spark_sink(self, name: str) -> str | None:
        """Return the folder above a file into which a streaming query of Spark writes, and logs the
        sizes; None if there is none."""
        folder = os.path.dirname(name if is_url(name) else os.path.abspath(name))
        # Files of one folder wait for the first of them.
        with holding(self._locks[hash(folder) % _LOCKS]):
            return self._sink_from(folder)

    def _sink_from(self, folder: str) -> str | None:
        if folder not in self._sinks:
            if is_url(folder):
                from sbbf_tool.storage.objects import listing as object_listing

                is_sink = object_listing.has_any(f"{folder}/_spark_metadata/")
            else:
                is_sink = os.path.isdir(os.path.join(folder, "_spark_metadata"))
            is_root = (
                folder.endswith(":/") or "/" not in folder.partition("://")[2].rstrip("/")
                if is_url(folder)
                else folder in ("/", "")
            )
            self._sinks[folder] = (
                folder if is_sink else None if is_root else self._sink_from(os.path.dirname(folder))
            )
        return self._sinks[folder]


def ensure_writable(target: str, *, in_place: bool, append: bool = False) -> None:
    """Raise RefusedError if `target` cannot or must not be written, as far as this can be checked
    in advance.

    Unless a file is changed in place, the target must not exist, and must not be the source itself.
    """
    ensure_can_change(target)
    if is_url(target):
        from sbbf_tool.storage.objects import stores

        if append:
            raise RefusedError(
                "an object cannot be appended to",
                file=target,
                hint="do not append: the store copies the old bytes itself",
            )
        stores.ensure_writable(target, in_place=in_place)
        return
    try:
        path = _locate(target)
    except UnreadableError as error:
        raise RefusedError(error.message, file=target, hint=error.hint) from None
    if not os.path.isdir(os.path.dirname(path) or "."):
        if in_place:
            raise MissingError("no such file or directory", file=target)
        raise RefusedError(
            "the folder of the target does not exist", file=target, hint="create it first"
        )
    if append:
        from sbbf_tool.storage.append import ensure_appendable

        ensure_appendable(path)
    if not in_place:
        local.ensure_free(path)
        ensure_open_to_new_files(os.path.dirname(path), target)


def ensure_replaceable(target: str, source: Source, *, append: bool = False) -> None:
    """Raise RefusedError if `target`, open as `source`, could not be changed in place, as far as
    this can be checked in advance."""
    if is_url(target):
        from sbbf_tool.storage.objects import stores

        stores.ensure_replaceable(source)
        return
    real = os.path.realpath(_locate(target))
    ensure_open_to_new_files(os.path.dirname(real), target)
    try:
        place, old = os.stat(os.path.dirname(real)), os.stat(real)
    except OSError:
        return
    local.ensure_open_to_changes(target)
    if (
        place.st_mode & stat.S_ISVTX
        and not append
        and os.geteuid() not in (old.st_uid, place.st_uid)
        and not _acts_as_any_owner()
    ):
        message = (
            f"the file belongs to user {old.st_uid}, and its folder is sticky: only "
            "its owner can replace it"
        )
        raise RefusedError(
            message, file=target, hint=f"{local.OTHER_FOLDER}, or append to the file"
        )


def _acts_as_any_owner() -> bool:
    """Return whether this process has the capability CAP_FOWNER."""
    try:
        with open("/proc/thread-self/status", "rb") as lines:
            effective = next(line.split()[1] for line in lines if line.startswith(b"CapEff:"))
        return bool(int(effective, 16) & _CAP_FOWNER)
    except (OSError, StopIteration, ValueError, IndexError):
        return os.geteuid() == 0


def ensure_open_to_new_files(folder: str, target: str) -> None:
    """Raise RefusedError for `target` if this process may not create files in `folder`."""
    if not os.access(folder or ".", os.W_OK | os.X_OK, effective_ids=True):
        message = "cannot create a file beside the target: no permission to write to the folder"
        raise RefusedError(message, file=target, hint=local.OTHER_FOLDER)


def ensure_renames(target: str, known: str | None = None) -> str | None:
    """Raise RefusedError or WriteError if a new file could not get the name of a local target,
    which is the last step of `replace`.

    Return the folder of the target, which is not tried again if it is `known` from the call before.
    """
    if is_url(target):
        return None
    path = _locate(target)
    real = os.path.realpath(path) if os.path.islink(path) else path
    if (folder := os.path.dirname(real)) == known:
        return known
    with local.temporary_file(real, target) as (temporary, _):
        other = local.temporary_path(real)
        try:
            os.rename(temporary, other)
        except OSError as error:
            if error.errno in _NO_RENAME:
                message = (
                    f"this file system cannot rename a file ({reason_of(error)}), by "
                    "which sbbf replaces a file in one step"
                )
                raise RefusedError(
                    message,
                    file=target,
                    hint="write the result to another file system, and copy it there",
                ) from error
            raise local.creation_error(error, target) from error
        finally:
            with suppress(OSError):
                os.unlink(other)
    return folder


def open_spool(target: str, *, keeps: bool = True) -> Spool:
    """Open a spool for new bytes of `target`: on the same disk, or among the system's temporary
    files if the target is remote."""
    from sbbf_tool.storage.spool import Spool

    if is_url(target):
        from tempfile import gettempdir

        return Spool(os.path.join(gettempdir(), "sbbf"), keeps=keeps)
    return Spool(_locate(target), copies=2, keeps=keeps)


def shares_blocks(name: str) -> bool:
    """Return whether a copy of a local file, in the same folder, shares its blocks; False for
    objects, whose store copies them."""
    if is_url(name):
        return False
    from sbbf_tool.storage.copying import has_reflinks

    return has_reflinks(os.path.dirname(_locate(name)))


def begin_copy(source: Source, target: str, count: int) -> AbstractContextManager[BegunCopy | None]:
    """Return the context of the copy that a thread makes of the first `count` bytes for `replace`;
    None if this would not be faster."""
    return nullcontext() if is_url(target) else local.begin_copy(source, local_path(target), count)


def replace(
    source: Source,
    target: str,
    keep: int,
    pieces: Iterable[Piece],
    verify: Callable[[Source], None],
    begun: BegunCopy | None = None,
) -> list[str]:
    """Make `target` the first `keep` bytes of `source` followed by `pieces`: see
    `local.replace`."""
    ensure_can_change(target)
    if is_url(target):
        from sbbf_tool.storage.objects import stores

        return stores.replace(source, target, keep, tuple(pieces), verify)
    return local.replace(source, local_path(target), keep, blocks_of(pieces), verify, begun)


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
        local.sweep(*os.path.split(os.path.realpath(_locate(name))))


def recover(name: str, ensure_footer: EnsureFooter, *, changes: bool) -> int | None:
    """Undo an interrupted append to a local file: see `storage.append`."""
    from sbbf_tool.storage import append as local_append

    return (
        None
        if is_url(name)
        else local_append.recover(_locate(name), ensure_footer, changes=changes)
    )


def absolute(name: str) -> str:
    """Return the absolute path; URLs are returned unchanged. Raises UnreadableError if the working
    folder no longer exists."""
    return name if is_url(name) else os.path.abspath(_locate(name))


def _locate(name: str | os.PathLike[str]) -> str:
    """Return the absolute path of a path or `file://` URL. Raises UnreadableError if it is relative
    and there is no working folder."""
    path = local_path(name)
    if not os.path.isabs(path):
        ensure_working_folder(path)
    return path


def ensure_working_folder(path: str | None = None) -> None:
    """Raise UnreadableError, about the relative `path`, if the working folder was removed."""
    try:
        os.getcwd()
    except OSError:
        raise UnreadableError(
            "the working directory no longer exists",
            file=path,
            hint="change to an existing directory",
        ) from None


def local_path(name: str | os.PathLike[str]) -> str:
    """Convert a path or `file:` URL to a path. Hadoop prints `file:/a b`, Spark `file:/a%20b`: what
    exists is meant."""
    text = os.fsdecode(name)
    if not text:
        raise UsageError(
            "the name of a file or folder is empty", hint="name one, such as ./data.parquet"
        )
    if text == "-":
        raise UsageError(
            "files are neither read from standard input nor written to standard output",
            hint="./- is the file of this name",
        )
    match = re.match(_ONE_SLASH, text) if ":/" in text else None
    if match is not None and not os.path.lexists(text):
        scheme, path = match[1].lower(), text[match.end() - 1 :]
        if scheme != "file":
            hint = f"{scheme}://HOST/PATH or {scheme}://BUCKET/KEY"
            raise UsageError(
                f"{redact(text)} names no host or bucket",
                hint="on Databricks, /dbfs/PATH" if scheme == "dbfs" else hint,
            )
        if "%" not in path or os.path.lexists(path):
            return path
        from urllib.parse import unquote

        return unquote(path)
    if not text.startswith("file://"):
        return text
    host, slash, path = text.removeprefix("file://").partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            f"the URL names a file on another machine, or a relative path: {text}",
            hint="file:///PATH",
        )
    from urllib.parse import unquote

    return unquote(f"/{path}")
