"""Journals as an append leaves them, and as another user plants them."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sbbf_tool.storage.append import journal_of

STRANGER = 54321
"""A user who is neither root, nor the user who runs the tests, nor the owner of any file."""


def entry_of(old: bytes, new: bytes) -> dict[str, Any]:
    """Return the journal entry of an append that made `new` of `old`."""
    return {
        "length": len(old),
        "ends_with": old[-64:].hex(),
        "new_length": len(new),
        "new_ends_with": new[-64:].hex(),
    }


def place(file: Path, entry: Mapping[str, Any] | bytes) -> Path:
    """Write the journal of a file with mode 0600; return its path."""
    journal = Path(journal_of(str(file)))
    journal.write_bytes(entry if isinstance(entry, bytes) else json.dumps(entry).encode())
    journal.chmod(0o600)
    return journal


class Plant(NamedTuple):
    make: Callable[[Path, dict[str, Any]], None]
    """Plants the journal at this path; the entry itself is valid."""
    rule: str
    """A regular expression for the message about it."""
    needs_root: bool = False


def _text(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path, dict[str, Any]], None]:
    def make(journal: Path, entry: dict[str, Any]) -> None:
        new_text = change(entry)
        journal.write_bytes(
            new_text if isinstance(new_text, bytes) else json.dumps(new_text).encode()
        )
        journal.chmod(0o600)

    return make


def _sound(then: Callable[[Path], object]) -> Callable[[Path, dict[str, Any]], None]:
    def make(journal: Path, entry: dict[str, Any]) -> None:
        _text(dict)(journal, entry)
        then(journal)

    return make


def _link(journal: Path, entry: dict[str, Any]) -> None:
    _text(dict)(journal.with_name("sound"), entry)
    journal.symlink_to("sound")


def _socket(journal: Path, entry: dict[str, Any]) -> None:
    here = os.getcwd()
    os.chdir(journal.parent)  # the name of a socket may have 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as plug:
            plug.bind(journal.name)
    finally:
        os.chdir(here)


def _with(**fields: Any) -> Callable[[Path, dict[str, Any]], None]:
    return _text(lambda entry: {**entry, **fields})


def _without(name: str) -> Callable[[Path, dict[str, Any]], None]:
    return _text(lambda entry: {key: value for key, value in entry.items() if key != name})


def _raw_length(text: bytes) -> Callable[[Path, dict[str, Any]], None]:
    return _text(
        lambda entry: (
            json.dumps({**entry, "length": 0})
            .encode()
            .replace(b'"length": 0', b'"length": ' + text)
        )
    )


_NOT_OURS = "is not a journal as sbbf writes it"
PLANTS = {
    "a FIFO": Plant(lambda journal, entry: os.mkfifo(journal, 0o600), "not a regular file"),
    "a folder": Plant(lambda journal, entry: journal.mkdir(0o700), "not a regular file"),
    "a socket": Plant(_socket, "not a regular file"),
    "a device": Plant(
        lambda journal, entry: os.mknod(journal, 0o600 | stat.S_IFCHR, os.makedev(1, 5)),
        "not a regular file",
        True,
    ),
    "a link to /dev/zero": Plant(
        lambda journal, entry: journal.symlink_to("/dev/zero"), "not a regular file"
    ),
    "a link to a sound one": Plant(_link, "not a regular file"),
    "two links": Plant(
        _sound(lambda journal: os.link(journal, journal.with_name("other"))), "has 2 names"
    ),
    "group-writable": Plant(
        _sound(lambda journal: journal.chmod(0o620)), "its group or other users can write it"
    ),
    "of another user": Plant(
        _sound(lambda journal: os.chown(journal, STRANGER, STRANGER)),
        "belongs neither to the file's owner",
        True,
    ),
    "too large": Plant(_text(lambda entry: json.dumps(entry).encode().ljust(4097)), "4,097 bytes"),
    "empty": Plant(_text(lambda entry: b""), _NOT_OURS),
    "half": Plant(_text(lambda entry: json.dumps(entry).encode()[:50]), _NOT_OURS),
    "a list": Plant(_text(lambda entry: [entry]), _NOT_OURS),
    "UTF-16": Plant(_text(lambda entry: json.dumps(entry).encode("utf-16")), _NOT_OURS),
    "deep lists": Plant(_text(lambda entry: b"[" * 4096), _NOT_OURS),
    "deep inside": Plant(_raw_length(b"[" * 1700 + b"]" * 1700), _NOT_OURS),
    "no length": Plant(_without("length"), _NOT_OURS),
    "no last bytes": Plant(_without("ends_with"), _NOT_OURS),
    "1e400": Plant(_raw_length(b"1e400"), _NOT_OURS),
    "NaN": Plant(_raw_length(b"NaN"), _NOT_OURS),
    "3,000 digits": Plant(_raw_length(b"9" * 3000), _NOT_OURS),
    "length 0": Plant(_with(length=0, ends_with=""), _NOT_OURS),
    "negative": Plant(_with(length=-1), _NOT_OURS),
    "no bytes": Plant(_with(ends_with=""), _NOT_OURS),
    "wrong tail": Plant(
        _text(lambda entry: {**entry, "ends_with": entry["ends_with"][:-8] + b"PAR2".hex()}),
        _NOT_OURS,
    ),
    "shorter than before": Plant(
        _text(lambda entry: {**entry, "new_length": entry["length"] - 1}), _NOT_OURS
    ),
}


@contextmanager
def planted(name: str, file: Path, entry: dict[str, Any]) -> Iterator[Path]:
    """Plant one of `PLANTS` as the journal of a file, and remove it at the end."""
    journal = Path(journal_of(str(file)))
    PLANTS[name].make(journal, entry)
    try:
        yield journal
    finally:
        if journal.is_dir() and not journal.is_symlink():
            journal.rmdir()
        else:
            journal.unlink()
        for journal_name in ("sound", "other"):
            journal.with_name(journal_name).unlink(missing_ok=True)
