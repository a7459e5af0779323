"""Paths of data files in a log: URIs, relative to the table's folder or absolute (PROTOCOL.md, "Add File and Remove File")."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from sbbf_tool.errors import UnreadableError

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


def is_absolute(path: str) -> bool:
    """Return whether a path of the log is absolute, as those of shallow clones are."""
    return _ABSOLUTE.match(path) is not None


def leads_out(path: str) -> bool:
    """Return whether a relative path could lead out of the table's folder."""
    return not {".", "..", ""}.isdisjoint(decode(path).split("/"))


def decode(path: str) -> str:
    """Decode a path of the log. Raises UnreadableError if no file can have it."""
    try:
        text = unquote(path, errors="strict")
        text.encode()
    except UnicodeError:
        raise UnreadableError(f"the path {path!r:.100} is not text") from None
    if not text or "\0" in text:
        raise UnreadableError(f"no file can have the path {path!r:.100}")
    return text


def locate(location: str, path: str) -> str:
    """Return the path or URL of a data file of the table at `location`."""
    text = decode(path)
    if not is_absolute(path):
        return f"{location}/{text}"
    if text.startswith("file:"):
        return "/" + text.removeprefix("file:").lstrip("/")
    return text


def replace_name(path: str, name: str) -> str:
    """Return a path of the log with another file name; its folder stays encoded as it is."""
    return path[: path.rfind("/") + 1] + quote(name, safe="")
