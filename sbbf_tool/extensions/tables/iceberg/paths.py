"""Locations in the metadata of a table, and the names by which this package opens files.

Iceberg stores whole locations: `file:/lake/t/data/x.parquet`, `file:///lake/...`, `/lake/...`, `s3a://bucket/...`. Nothing in them is
percent-encoded, so `file:` locations become paths; other URLs are opened as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from sbbf_tool.errors import UnreadableError


def open_name(location: str) -> str:
    """Return the path or URL by which a location is opened. Raises UnreadableError if it is relative, or is not a file of this machine."""
    if location.startswith("file:"):
        path = location.removeprefix("file:")
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost") or not slash:
                raise UnreadableError(f"the location names a file on another machine: {location!r:.200}")
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
    scheme = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}.get(scheme.lower(), scheme.lower()) if separator else ""
    return f"{scheme}://{rest}" if separator else "/" + "/".join(part for part in name.split("/") if part)


def parent(location: str) -> str:
    """Return the folder of a location."""
    return location.rpartition("/")[0]


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def is_below(location: str, folder: str) -> bool:
    """Return whether a location is in a folder or its subfolders, as text."""
    inner, outer = identity(location), identity(folder).rstrip("/")
    return inner.startswith(f"{outer}/") and ".." not in inner.split("/")


def location_of(path: str, folders: Iterable[str]) -> str:
    """Return the location of a path, spelled like that of these folders (locations) in which it is."""
    folder, _, name = path.rpartition("/")
    for candidate in folders:
        if identity(candidate) == identity(folder or "/"):
            return join(candidate, name)
    return path


def is_local(name: str) -> bool:
    """Return whether a name, as `open_name` returns it, is a path of this machine."""
    return name.startswith("/")
