"""The Parquet files of a URL, and the table that a URL belongs to: `storage.listing` for URLs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice
from typing import TYPE_CHECKING

from sbbf_tool.errors import ErrorPlace, MissingError, RefusedError, SbbfError
from sbbf_tool.storage.listing import (
    WILDCARD,
    Entry,
    is_hidden,
    is_hudi_log,
    judge_bytes,
    judge_name,
    translate,
)
from sbbf_tool.storage.objects.conditional import write_parts
from sbbf_tool.storage.objects.store import (
    CredentialsError,
    DeniedError,
    Location,
    ObjectStore,
    Version,
    list_keys,
    parse_location,
)
from sbbf_tool.storage.objects.stores import store_of
from sbbf_tool.storage.table_formats import recognise

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_MAX_ANCESTORS = 32
_MAGIC_BYTES = 4
_LEAST_BYTES = 12
_THREADS = 16
_JUDGED_AT_ONCE = 512
_MOST_NAMES = {"_delta_log": 1, ".hoodie": 1, "metadata": 1000, "schema": 1000}
"""The folders by which a table is recognised, and the number of names in them that are looked
at."""
_OTHER_CONTENT = (
    ".json",
    ".csv",
    ".avro",
    ".orc",
    ".txt",
    ".crc",
    ".md",
    ".log",
    ".xml",
    ".html",
    ".yaml",
    ".yml",
    ".zip",
)
"""Objects that are not asked for their last bytes, since no reader takes them for Parquet."""


def entries(url: str) -> Iterator[Entry]:
    """Yield the object itself, all objects below a prefix, or all matches of a glob, in the order
    of their keys.

    `*` does not match a slash, `**` does. Names below a prefix that start with a dot or `_` are
    skipped. Raises MissingError if there is no file.
    """
    location = parse_location(url)
    if location.service == "http":
        yield Entry(url)
        return
    yield from entries_in(store_of(location), location)


def entries_in(store: ObjectStore, location: Location) -> Iterator[Entry]:
    """Yield the files of a location in its store; see `entries`."""
    with ErrorPlace(location.name):
        if re.search(WILDCARD, location.key):
            yield from _require_any(_match_glob(store, location), location, "no file matches")
            return
        prefix = location.key
        if prefix and not prefix.endswith("/"):
            if not _is_prefix(store, prefix):
                yield Entry(location.url)
                return
            prefix += "/"
        files = _list_below(store, location, prefix)
        yield from _require_any(files, location, "no Parquet file below this prefix")


def parquet_files_in(files: FileSystem, path: str) -> Iterator[str]:
    """Yield the files of a path in a file system that the caller gives, as `entries` does."""
    # It imports pyarrow, which URLs of other services do not need.
    from sbbf_tool.storage.objects.arrow import ArrowStore, PathIn

    location = PathIn("arrow", "", "", path)
    return (entry.path for entry in entries_in(ArrowStore(files, ""), location))


def find_single_object(url: str) -> str | None:
    """Return the URL of the one object that a URL stands for; None for a prefix or a glob."""
    location = parse_location(url)
    if location.service == "http":
        return url
    key = location.key
    store = store_of(location)
    with ErrorPlace(location.name):
        if re.search(WILDCARD, key):
            is_one = _first_key(store, key) == key
        elif not key or key.endswith("/"):
            is_one = False
        else:
            is_one = not _is_prefix(store, key)
    return location.url if is_one else None


def _first_key(store: ObjectStore, prefix: str) -> str | None:
    """Return the first key that starts with a prefix; None if there is none."""
    return next(list_keys(store, prefix, 1), None)


def _require_any(files: Iterable[Entry], location: Location, message: str) -> Iterator[Entry]:
    is_empty = True
    for file in files:
        is_empty = is_empty and (file.is_unfinished or file.is_hudi_log)
        yield file
    if is_empty:
        raise MissingError(message, file=location.name)


def _is_prefix(store: ObjectStore, key: str) -> bool:
    """Return whether there are keys below this key but no object at it, or only the mark of a
    folder. False if listing is denied: the user may still read the object."""
    try:
        first = next(store.objects(key, 1), None)
        if first is None or (first[0] == key and not _may_mark_folder(first[1])):
            return False
        return _first_key(store, f"{key}/") is not None
    except DeniedError:
        return False


def _may_mark_folder(version: Version) -> bool:
    """Return whether an object is one of 0 bytes, such as consoles, Hadoop and Azure write at the
    key of a folder."""
    return version.size == 0


def _is_folder(store: ObjectStore, key: str, version: Version) -> bool:
    """Return whether an object in a listing stands for the folder with the keys below it."""
    return _may_mark_folder(version) and _first_key(store, f"{key}/") is not None


def _list_below(store: ObjectStore, location: Location, prefix: str) -> Iterator[Entry]:
    def is_visible(item: tuple[str, Version]) -> bool:
        names = item[0][len(prefix) :].split("/")
        return not any(map(is_hidden, names))

    yield from _judge(store, location, filter(is_visible, store.objects(prefix)))


def _judge(
    store: ObjectStore, location: Location, objects: Iterable[tuple[str, Version]]
) -> Iterator[Entry]:
    """Yield the objects below a prefix that hold data, in order; the last bytes decide about those
    without .parquet, many concurrently."""

    def judge(item: tuple[str, Version]) -> Entry | None:
        key, version = item
        if is_hudi_log(key.rpartition("/")[2]):
            return _entry(location, key, version)._replace(is_hudi_log=True)
        if judge_name(key):
            return None if _is_folder(store, key, version) else _entry(location, key, version)
        if key.endswith(_OTHER_CONTENT) or version.size < _LEAST_BYTES:
            return None
        file = _entry(location, key, version)
        try:
            entry = judge_bytes(key, None, store.tail(key, _MAGIC_BYTES)[0])
        except MissingError:
            return None
        except DeniedError:
            return file._replace(is_unfinished=True)
        if entry is None:
            return None
        return entry._replace(path=file.path, bytes=file.bytes, etag=file.etag)

    remaining = iter(objects)
    with ThreadPoolExecutor(_THREADS) as threads:
        while part := list(islice(remaining, _JUDGED_AT_ONCE)):
            takes_requests = any(
                not judge_name(key) or _may_mark_folder(version) for key, version in part
            )
            entries = threads.map(judge, part) if takes_requests else map(judge, part)
            yield from (entry for entry in entries if entry is not None)


def _entry(location: Location, key: str, version: Version) -> Entry:
    return Entry(location.with_key(key).url, bytes=version.size, etag=version.strong_tag)


def _match_glob(store: ObjectStore, location: Location) -> Iterator[Entry]:
    literal = location.key[: re.search(WILDCARD, location.key).start()]  # type: ignore[union-attr]
    matches = _build_matcher(location.key)
    if _first_key(store, location.key) == location.key:
        # An existing key takes precedence over a glob.
        yield Entry(location.url)
        return
    for is_below, group in groupby(store.objects(literal), lambda entry: matches(entry[0])):
        if is_below:
            yield from _judge(store, location, group)
        elif is_below is not None:
            for key, version in group:
                if _is_folder(store, key, version):
                    continue
                file = _entry(location, key, version)
                yield file._replace(is_hudi_log=is_hudi_log(file.path.rpartition("/")[2]))


def _build_matcher(pattern: str) -> Callable[[str], bool | None]:
    """Build the matcher of a glob. A matching folder includes its content.

    The matcher returns False for a key that matches, True for one below a folder that matches, and
    None for other keys.
    """
    whole = re.compile(f"{translate(pattern)}(?P<below>/.*)?", re.DOTALL)

    def matches(key: str) -> bool | None:
        match = whole.fullmatch(key)
        if match is None:
            return None
        below = (match["below"] or "").split("/")[1:]
        if any(map(is_hidden, below)):
            return None
        return bool(below)

    return matches


def managing_table(url: str, kinds: dict[Location, str | None]) -> tuple[str, str] | None:
    """Return format and prefix of the table that the object belongs to, or None if it belongs to
    none.

    `kinds` caches the kinds of prefixes, and is extended. Raises RefusedError if listing is denied.
    """
    location = parse_location(url)
    parts = location.key.split("/")[:-1]
    with ErrorPlace(location.name):
        try:
            for count in range(len(parts), max(-1, len(parts) - _MAX_ANCESTORS), -1):
                folder = location.with_key("".join(f"{part}/" for part in parts[:count]))
                if folder not in kinds:
                    kinds[folder] = next(_kinds_of(folder), None)
                kind = kinds[folder]
                if kind is not None:
                    return kind, folder.name
        except CredentialsError:
            raise
        except DeniedError:
            hint = (
                "allow sbbf to list the bucket, or, if the file is in no table, allow "
                "changes to files of tables"
            )
            raise RefusedError(
                "sbbf cannot determine whether the file belongs to a table: listing is denied",
                hint=hint,
            ) from None
    return None


def find_table_formats(url: str) -> tuple[str, ...]:
    """Return the formats of the tables whose root is this prefix; none if listing is denied."""
    location = parse_location(url)
    key = location.key.rstrip("/")
    folder = location.with_key(f"{key}/" if key else "")
    try:
        with ErrorPlace(folder.name):
            return tuple(_kinds_of(folder))
    except DeniedError:
        return ()


def has_any(prefix: str) -> bool:
    """Return whether there is an object below a prefix; False if listing is denied, or not
    possible."""
    location = parse_location(prefix)
    if location.service == "http":
        return False
    try:
        return _first_key(store_of(location), location.key) is not None
    except SbbfError:
        return False


def _kinds_of(folder: Location) -> Iterator[str]:
    store = store_of(folder)

    def keys(inner: str) -> list[str]:
        return list(list_keys(store, f"{folder.key}{inner}/", _MOST_NAMES.get(inner, 1)))

    # Each list is a request, and most folders are none of a table.
    keys_in = dict(zip(_MOST_NAMES, write_parts(keys, _MOST_NAMES), strict=True))

    def has(inner: str) -> bool:
        return bool(keys_in[inner] if inner in keys_in else keys(inner))

    def names(inner: str) -> Iterator[str]:
        return (key.rpartition("/")[2] for key in keys_in[inner])

    return recognise(has, names)
