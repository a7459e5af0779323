"""Globs for paths and URLs, as configuration files write them: `*` and `?` stay within a folder,
`**` does not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache

from sbbf_tool.storage.listing import WILDCARD, translate
from sbbf_tool.storage.names import is_url


def matches_any(globs: Iterable[str], folder: str, path: str) -> bool:
    """Return whether a glob matches the path, or one of the folders above it. Relative globs start
    from the absolute path `folder`."""
    patterns = [_pattern(folder, glob) for glob in globs]
    if is_url(path):
        return any(pattern.fullmatch(path) for pattern in patterns)
    absolute = os.path.abspath(path)
    if any(pattern.fullmatch(absolute) for pattern in patterns):
        return True
    real = os.path.realpath(path)
    return any(pattern.fullmatch(real) for pattern in patterns)


def literal_base(glob: str, folder: str) -> str:
    """Return the path or URL up to the first part with a wildcard: everything that the glob matches
    is there, or below it."""
    match = re.search(WILDCARD, glob)
    base = glob
    if match is not None:
        base = glob[: match.start()].rpartition("/")[0]
    if is_url(glob):
        return base
    if not base and glob.startswith("/"):
        return "/"
    return os.path.normpath(os.path.join(folder, base))


@cache
def _pattern(folder: str, glob: str) -> re.Pattern[str]:
    if is_url(glob):
        return re.compile(translate(glob.rstrip("/")) + "(?:/.*)?", re.DOTALL)
    glob = os.path.normpath(glob)
    while glob == ".." or glob.startswith("../"):
        folder = os.path.dirname(folder)
        glob = glob[len("../") :] or "."
    start = "" if glob.startswith("/") else re.escape(folder.rstrip("/"))
    below = glob.strip("/")
    inner = "" if below in ("", ".") else translate(f"/{below}")
    return re.compile(f"{start}{inner}(?:/.*)?", re.DOTALL)
