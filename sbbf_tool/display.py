"""Display of names and text: without secrets, and without characters that a terminal, a log or a CI
runner interprets.

redact          remove password, token and signature from a path, URL or DuckLake catalog, before it
                enters a report or an error
redact_text     redact the URLs within text, such as another library's message
redact_answer   remove credentials from the text of a server, which may repeat the request
quote_word      write a word of a command so that it can be copied into a shell
escape          print text from files and paths on one line, with unprintable characters as codes
to_json         write unprintable characters as JSON's `\\uXXXX`, so that a parser gets the exact
                text back
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

HIDDEN = "..."

_URL = r"(?s)(\s*([A-Za-z][A-Za-z0-9+.-]+):/+)(.*)"
_URL_IN_TEXT = r"(?:ducklake:(?:[a-z]+:)?)?[A-Za-z][A-Za-z0-9+.-]{1,31}:/+[^\s'\"<>`]+"
_PASSWORD = r"(?s)(?!\[|arn:)[^/@?#]*:(?!\d*(?:[/?#]|$))"
"""A colon in the authority with no port after it. The text from there to the last `@` is a
password, which may contain a slash."""

_PASSWORD_WORD = r"(?i)(\b(?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)"
"""A password among the words of a connection string, such as `dbname=lake password=...`."""

_LAST_TABLE = r"""(?s)(.*)(#(?:"[^"]*"|[^".#@/=])+(?:\.(?:"[^"]*"|[^".#@/=])+)?)"""
"""The name of a DuckLake catalog and of a table in it, which is not the end of a password with a
`#`."""

_KEYS_ARE_LITERAL = frozenset(
    (
        "s3",
        "s3a",
        "s3n",
        "gs",
        "gcs",
        "az",
        "azure",
        "abfs",
        "abfss",
        "wasb",
        "wasbs",
        "adl",
        "hdfs",
        "viewfs",
    )
)
"""Schemes of stores whose keys and globs treat `?` as an ordinary character."""
_CONTAINERS = frozenset(("abfs", "abfss", "wasb", "wasbs"))
"""Schemes in which the text before the `@` is the name of a container and no user."""
_QUERY_OF_KEY = r"(?si)(?:^|/)[^/?]*+(?=\?[^/]*(?:=|%3d))|\.(?:parquet|index)(?=\?)"
_QUERY = r"(?=[?#])"

_END = r"\s\"'<>\\"
"""Characters that end a query in the text of a server, which may be a page, JSON or a `repr`."""
_BEFORE_NAME = r"[?&;]|%3f|%26|\\u0026|\\x26"
_EQUALS = r"=|%3d|&#61;|&#x3d;|\\u003d"
_PARAMETERS = rf"(?i)({_BEFORE_NAME})[^={_END}]{{1,200}}?(?:{_EQUALS})[^{_END}]*"
"""The pairs of a query, whose text may lack the host and may be escaped."""
_SECRETS = (
    "authorization|signature|token|secret|password|credential|cookie|access-?_?key|account-?_?key"
    "|api-?_?key|copy-?source|encryption-?key"
)
_SECRET_NAME = rf"[\w.-]{{0,60}}(?:{_SECRETS})[\w.-]{{0,60}}|\bsig"
_BEFORE_VALUE = r"[\"']?\s{0,3}(?:[:=,>]|%3d)\s{0,3}[\"']?|(?:</?\w{1,20}>\s{0,3}){1,3}"
_CREDENTIAL = rf"(?i)((?:{_SECRET_NAME})(?:{_BEFORE_VALUE}))[^\"'<>\\\r\n]+"
"""A header or field with a credential, whose value takes the rest of a line or string."""
_SCHEME = r"(?i)\b(bearer|basic|aws|sharedkey(?:lite)?|(?:aws|goog)4-[\w-]{1,40}) [^\"'<>\\\r\n]+"
"""The value of a header with a credential, whose name is elsewhere."""
_MOST_OF_ANSWER = 2000
"""Number of characters of a server's text that are repeated."""

# GitHub's runner executes `::command::` at the start of a line and `##[command]` anywhere in one
# (actions/runner, ActionCommand.cs), and ignores zero-width characters between these; Azure
# executes `##vso[...]`, TeamCity `##teamcity[...]`.
_COMMAND_AT_START = r"([^!-~]*):(?=[^!-~]*:)"
_COMMAND = r"#(?=[^ -~]*#\S{0,32}\[)"


def redact(name: str | os.PathLike[str]) -> str:
    """Redact the secrets in a name: user, password and query of a URL, each shown as `...`. A path
    is returned unchanged."""
    text = os.fsdecode(name)
    if text.startswith("ducklake:"):
        return _redact_catalog(text)
    match = re.fullmatch(_URL, text) if ":/" in text else None
    if match is None:
        return text
    start, scheme, rest = match.groups()
    scheme = scheme.lower()
    if scheme == "file":
        # Paths may have any character; only the part between two and three slashes is no path.
        user, at, _ = rest.partition("/")[0].rpartition("@")
        if at and start.endswith("://") and not start.endswith(":///"):
            return f"{start}{HIDDEN}@{rest[len(user) + 1 :]}"
        return text
    is_store = scheme in _KEYS_ARE_LITERAL
    if re.match(_PASSWORD, rest):
        rest = f"{HIDDEN}@{rest.rpartition('@')[2]}" if "@" in rest else HIDDEN
    elif scheme not in _CONTAINERS:
        host = re.match(r"[^/?#]*", rest)
        assert host is not None
        user, at, _ = host[0].rpartition("@")
        if at:
            rest = f"{HIDDEN}@{rest[len(user) + 1 :]}"
    if scheme == "sc":
        # The parameters of a Spark Connect server may hold a token.
        rest, sign, _ = rest.partition(";")
        return f"{start}{rest};{HIDDEN}" if sign else f"{start}{rest}"
    query = re.search(_QUERY_OF_KEY if is_store else _QUERY, rest)
    if query is None:
        return f"{start}{rest}"
    return f"{start}{rest[: query.end()]}?{HIDDEN}"


def _redact_catalog(text: str) -> str:
    """Redact the password of a database server, in a URL or among the words of a connection
    string."""
    prefix = "ducklake:postgres:"
    if not text.startswith(prefix):
        return text
    place = text.removeprefix(prefix)
    table = ""
    match = re.fullmatch(_LAST_TABLE, place)
    if match is not None:
        place, table = match.groups()
    return prefix + re.sub(_PASSWORD_WORD, rf"\1{HIDDEN}", redact(place)) + table


def redact_text(text: str) -> str:
    """Redact the secrets in the URLs within `text`."""
    if "ducklake:postgres:" in text:
        text = re.sub(_PASSWORD_WORD, rf"\1{HIDDEN}", text)
    if ":/" in text:
        text = re.sub(_URL_IN_TEXT, _redact_match, text)
    return text


def redact_answer(text: str) -> str:
    """Redact the secrets in the text of a server, which may repeat the request: URLs, every
    `name=value` after `?` or `&`, and headers and fields with credentials."""
    text = re.sub(_CREDENTIAL, rf"\1{HIDDEN}", redact_text(shorten(text, _MOST_OF_ANSWER)))
    text = re.sub(_SCHEME, rf"\1 {HIDDEN}", text)
    return re.sub(_PARAMETERS, rf"\1{HIDDEN}", text)


def _redact_match(match: re.Match[str]) -> str:
    # Punctuation after a URL belongs to the surrounding text.
    url = match[0].rstrip(":;,)]}")
    return redact(url) + match[0][len(url) :]


def escape(text: str) -> str:
    """Escape text to one printable line: control characters, characters that reverse or hide text,
    and line ends become codes.

    Starts of commands to a CI runner are escaped too: `\\x3a:` for `::` at the beginning, `\\x23#[`
    for `##[`.
    """
    if not text.isprintable():
        text = _replace_unprintable(text, _code)
    if "#" in text:
        text = re.sub(_COMMAND, r"\\x23", text)
    match = re.match(_COMMAND_AT_START, text)
    if match is not None:
        text = f"{match[1]}\\x3a{text[match.end() :]}"
    return text


def has_command(text: str) -> bool:
    """Return whether a CI runner would take a line of the text for a command."""
    for line in text.splitlines():
        if re.search(_COMMAND, line) or re.match(_COMMAND_AT_START, line):
            return True
    return False


def quote_word(text: str) -> str:
    """Quote a word of a command for a shell. Characters that `escape` replaces become codes, which
    bash, zsh and ksh read back."""
    import shlex

    if escape(text) == text:
        return shlex.quote(text)
    codes = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "#": "\\043"})
    quoted = _replace_unprintable(text.translate(codes), _octal)
    return f"$'{quoted}'"


def _octal(character: str) -> str:
    is_byte = "\udc80" <= character <= "\udcff"
    data = character.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in data)


def to_json(document: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Convert a document to JSON that a parser reads back exactly and that contains no command to a
    terminal or a CI runner."""
    import json

    def code(character: str) -> str:
        return character if character == "\n" else json.dumps(character)[1:-1]

    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    if not text.isprintable():
        text = _replace_unprintable(text, code)
    if "#" in text:
        text = re.sub(_COMMAND, r"\\u0023", text)
    return text


def _replace_unprintable(text: str, code: Callable[[str], str]) -> str:
    return "".join(character if character.isprintable() else code(character) for character in text)


def _code(character: str) -> str:
    return character.encode("unicode_escape").decode()


def shorten(text: str, most: int = 200) -> str:
    """Return the first characters of a text from a file, which may be of any length."""
    return text if len(text) <= most else f"{text[:most]}..."
