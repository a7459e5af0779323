"""Names of files as users and other programs write them: paths, `file:` URLs, and URLs of other
services."""

from __future__ import annotations

import os
import re

from sbbf_tool.display import redact
from sbbf_tool.errors import UnreadableError, UsageError

_ONE_SLASH = r"(?i)(file|dbfs|hdfs|viewfs|s3[an]?|gs|abfss?|wasbs?):/(?!/)"


def is_url(name: str | os.PathLike[str]) -> bool:
    """Return whether a name is a URL of something other than the local file system."""
    text = os.fsdecode(name)
    return "://" in text and not text.startswith(("/", ".", "file:/"))


def locate(name: str | os.PathLike[str]) -> str:
    """Return the path of a path or `file://` URL. Raises UnreadableError if it is relative and
    there is no working folder."""
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
        return _path_after_one_slash(text, match[1].lower(), text[match.end() - 1 :])
    if not text.startswith("file://"):
        return text
    host, slash, path = text.removeprefix("file://").partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            f"the URL names a file on another machine, or a relative path: {text}",
            hint="file:///PATH",
        )
    return _unquote(f"/{path}")


def _path_after_one_slash(text: str, scheme: str, path: str) -> str:
    """Return the path of `file:/PATH`. Raises UsageError for other schemes, which need a host or a
    bucket."""
    if scheme == "file":
        return path if "%" not in path or os.path.lexists(path) else _unquote(path)
    hint = f"{scheme}://HOST/PATH or {scheme}://BUCKET/KEY"
    if scheme == "dbfs":
        hint = "on Databricks, /dbfs/PATH"
    raise UsageError(f"{redact(text)} names no host or bucket", hint=hint)


def _unquote(path: str) -> str:
    # It takes milliseconds to load, which names without a scheme need not spend.
    from urllib.parse import unquote

    return unquote(path)
