"""Names and text as they are shown: without secrets, and without characters that a terminal, a log or a CI runner obeys.

redact        a path or URL without its password, token or signature: for every name before it enters a report or an error
redact_text   the same for the URLs within a text, such as another library's message
escape        text from files and paths as one line for people: what does not print is shown by its code
to_json       a document in which such characters are written as JSON's `\\uXXXX`, so that a parser gets the exact text back
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

HIDDEN = "..."

_URL = re.compile(r"(\s*([A-Za-z][A-Za-z0-9+.-]+):/+)(.*)", re.DOTALL)
_URL_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+[^\s'\"<>`]+")
_PASSWORD = re.compile(r"(?!\[|arn:)[^/@?#]*:(?!\d*(?:[/?#]|$))", re.DOTALL)
"""A colon in the authority that no port follows: what stands behind it, up to the last `@`, is a password, which may hold a slash."""

_KEYS_ARE_LITERAL = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "az", "azure", "abfs", "abfss", "wasb", "wasbs", "adl", "hdfs", "viewfs"))
"""Schemes of stores in whose keys, and globs, `?` is a character like others."""
_QUERY_OF_KEY = re.compile(r"\?[^/]*(?:=|%3d)|(?<=\.parquet)\?|(?<=\.index)\?", re.DOTALL | re.IGNORECASE)
_QUERY = re.compile(r"[?#]")

# GitHub's runner obeys `::command::` at the beginning of a line and `##[command]` anywhere in one (actions/runner, ActionCommand.cs), and
# ignores characters between them that have no width; Azure obeys `##vso[...]`, TeamCity `##teamcity[...]`.
_COMMAND_AT_START = re.compile(r"([^!-~]*):(?=[^!-~]*:)")
_COMMAND = re.compile(r"#(?=[^ -~]*#\S{0,32}\[)")


def redact(name: str | os.PathLike[str]) -> str:
    """A name without what is secret in it: the password (of a web address the user too) and the query of a URL.

    What is left out is shown as `...`. A path of the local file system is returned as it is.
    """
    text = os.fsdecode(name)
    found = _URL.fullmatch(text)
    if found is None or found[2].lower() == "file":
        return text
    start, scheme, rest = found[1], found[2].lower(), found[3]
    is_store = scheme in _KEYS_ARE_LITERAL
    if _PASSWORD.match(rest):
        rest = f"{HIDDEN}@{rest.rpartition('@')[2]}" if "@" in rest else HIDDEN
    elif not is_store:
        host = re.match(r"[^/?#]*", rest)
        assert host is not None
        user, at, _ = host[0].rpartition("@")
        rest = f"{HIDDEN}@{rest[len(user) + 1 :]}" if at else rest
    if scheme == "sc":
        # The parameters of a Spark Connect server, a token among them.
        rest, sign, _ = rest.partition(";")
        return f"{start}{rest}{sign and f';{HIDDEN}'}"
    query = (_QUERY_OF_KEY if is_store else _QUERY).search(rest)
    return f"{start}{rest}" if query is None else f"{start}{rest[: query.start()]}?{HIDDEN}"


def redact_text(text: str) -> str:
    """A text in whose URLs nothing is secret any more."""
    return _URL_IN_TEXT.sub(_redact_found, text) if ":/" in text else text


def _redact_found(found: re.Match[str]) -> str:
    # Punctuation behind a URL is the text's.
    url = found[0].rstrip(":;,)]}")
    return redact(url) + found[0][len(url) :]


def escape(text: str) -> str:
    """Text on one line that only prints: control characters, those that turn or hide text, and other line ends become their codes.

    What would begin a command to a CI runner is broken up the same way: `\\x3a:` for `::` at the beginning, `\\x23#[` for `##[`.
    """
    if not text.isprintable():
        text = _replaced(text, _code)
    if "#" in text:
        text = _COMMAND.sub(r"\\x23", text)
    found = _COMMAND_AT_START.match(text)
    return text if found is None else f"{found[1]}\\x3a{text[found.end() :]}"


def to_json(document: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """The document as JSON that a parser reads back to the character, and in which no line is a command to a terminal or a CI runner."""
    import json

    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    if not text.isprintable():
        text = _replaced(text, lambda character: character if character == "\n" else json.dumps(character)[1:-1])
    return _COMMAND.sub(r"\\u0023", text) if "#" in text else text


def _replaced(text: str, code: Callable[[str], str]) -> str:
    return "".join(character if character.isprintable() else code(character) for character in text)


def _code(character: str) -> str:
    return character.encode("unicode_escape").decode()
