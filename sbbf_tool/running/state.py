"""The state of runs: an SQLite file with one row per file and command, from which a later run takes
the outcomes of unchanged files.

It is a cache: a lost or damaged state costs time, and nothing else. A row is committed when it is
recorded, without a wait for the disk, so that a killed process loses none and runs that use one
state concurrently see each other's rows.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import count
from typing import NamedTuple, get_type_hints
from urllib.parse import quote

from sbbf_tool import log
from sbbf_tool.errors import RefusedError, SbbfError, UsageError
from sbbf_tool.storage import permissions, places
from sbbf_tool.storage.system_calls import READ, reason_of, user_id
from sbbf_tool.storage.whole import ensure_own_link, write_whole

_APPLICATION = b"sbbf"
"""The `application_id` of a state, so that a state never replaces another file."""
_LISTED = "CREATE TEMP TABLE listed (path PRIMARY KEY) WITHOUT ROWID"
_MOST_REPORT_BYTES = 1 << 20
"""Length of a report above which the file is worked on again."""
_MOST_ROWS = 16
"""Rows of a path that are looked at: there is one per command."""
_WAIT_SECONDS = 5.0
"""Time to wait for another run that is writing."""
_PAUSE_SECONDS = 60.0
"""Time without a use of the state after one that failed."""
_DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_ERROR,
)
"""Codes of errors whose cause is in the file. Others pass, such as a full disk."""


class StateRow(NamedTuple):
    """The outcome of one command on one version of a file."""

    path: str
    """Absolute path, or URL without passwords and signatures."""
    command: str
    version: str
    """What changes with the content of the file, as its listing states it."""
    request: str
    """Hash of everything that determines the outcome besides the file: columns, sizes, rules and
    the version of this package."""
    status: str
    """`ok`, `skipped`, `refused` or `failed`."""
    reason: str | None
    exit_code: int
    report: str | None
    """The report as JSON, without the name of the file."""


_TYPES = tuple(get_type_hints(StateRow).values())
_TABLE = (
    f"CREATE TABLE outcomes ({', '.join(StateRow._fields)}, PRIMARY KEY (path, "
    "command)) WITHOUT ROWID"
)


class State:
    """The rows of a state file. After `close`, the next use opens the file again."""

    def __init__(self, path: str | os.PathLike[str], *, writes: bool = True) -> None:
        """Open the state file `path`, or create it. Without `writes`, rows are read but not
        recorded, and no file is created.

        Raises UsageError if the file is no state. Raises RefusedError if it could not be written,
        or may lead to a file that another user has chosen.
        """
        self.path = os.fsdecode(path)
        self.writes = writes
        self.warnings: list[str] = []
        """What could not be read or saved. The files of such rows are worked on again."""
        self._database: sqlite3.Connection | None = None
        """The connection; None after `close`, and while there is no file to read."""
        self._paused_until = 0.0
        """The time, by the monotonic clock, until which the state is not used after an error."""
        if places.is_url(self.path):
            raise UsageError("a state must be a local file", file=self.path)
        self._real_path = os.path.realpath(self.path)
        """Where the links of `path` lead: messages name `path`, and files are opened by this."""
        # An unusable file is an error now, before the run, and not at the first row.
        self._open()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def find(self, path: str) -> Iterator[StateRow]:
        """Yield the saved rows of a file that is listed, at most one per command."""
        self._execute("INSERT OR IGNORE INTO temp.listed VALUES (?)", path)
        for *values, report in self._execute(
            "SELECT * FROM outcomes WHERE path = ? LIMIT ?", path, _MOST_ROWS
        ):
            row = (*values, None if report is None else _decompress(report))
            if all(isinstance(value, kind) for value, kind in zip(row, _TYPES, strict=True)):
                yield StateRow._make(row)

    def record(self, row: StateRow) -> None:
        """Save a row, which replaces the one of the same file and command."""
        if not self.writes:
            return
        text = row.report or ""
        report = None
        if 0 < len(text) <= _MOST_REPORT_BYTES:
            report = zlib.compress(text.encode(), 1)
        places = ", ".join("?" * len(_TYPES))
        self._execute(f"INSERT OR REPLACE INTO outcomes VALUES ({places})", *row[:-1], report)
        self._execute("INSERT OR IGNORE INTO temp.listed VALUES (?)", row.path)

    def forget(self, command: str, folders: Iterable[str]) -> None:
        """Drop the rows of this command whose files are below these folders, but were not listed:
        the files no longer exist."""
        if not self.writes:
            return
        condition = (
            "command = ? AND path >= ? AND path < ? AND path NOT IN (SELECT path FROM temp.listed)"
        )
        for folder in folders:
            name = folder.rstrip("/")
            # "0" follows "/".
            self._execute(
                f"DELETE FROM outcomes WHERE {condition}", command, f"{name}/", f"{name}0"
            )

    def _execute(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """Return the rows of a statement; without any after an error, which is a warning: a run
        does not fail for its cache."""
        if time.monotonic() < self._paused_until:
            return []
        try:
            database = self._database or self._open()
            if database is None:
                return []
            return database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._handle(error)
            return []

    def _handle(self, error: sqlite3.Error) -> None:
        # An error of Python, such as text that is not UTF-8, has no code.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGED:
            self._set_aside(error)
        else:
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            use = "saved" if self.writes else "read"
            self._warn(f"{self.path}: the state cannot be {use}: {error}")

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)
            log.info("%s", warning)

    def _open(self) -> sqlite3.Connection | None:
        """Open the file, and make it if it is to be written; None if there is none."""
        _ensure_usable(self._real_path, self.path, writes=self.writes)
        if not self._is_there():
            if not self.writes:
                return None
            _create(self._real_path)
        try:
            if (
                sql := self._connect().execute("SELECT sql FROM sqlite_master LIMIT 2").fetchall()
            ) != [(_TABLE,)]:
                raise sqlite3.DatabaseError("it has other tables" if sql else "it has no table")
        except sqlite3.Error as error:
            self._handle(error)
        return self._database

    def _connect(self) -> sqlite3.Connection:
        uri = f"file:{quote(os.fsencode(self._real_path))}?mode={'rw' if self.writes else 'ro'}"
        database = sqlite3.connect(
            uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._database = database
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * _MOST_REPORT_BYTES)
        for statement in ("PRAGMA trusted_schema = OFF", "PRAGMA synchronous = OFF", _LISTED):
            database.execute(statement)
        return database

    def _is_there(self) -> bool:
        """Return whether there is a state. Raises UsageError if the file is something else."""
        try:
            # Raises RefusedError: such a link may lead to a file of any kind.
            ensure_own_link(self.path)
            if not stat.S_ISREG(os.stat(self._real_path).st_mode):
                raise self._no_state("it is no regular file")
            with open(os.open(self._real_path, READ), "rb") as stream:
                start = stream.read(100)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._no_state(reason_of(error)) from None
        # At 18: versions of the format, which are 1 while no log of writes is beside the file; at
        # 68: application_id.
        if (start[:16], start[18:20], start[68:72]) != (
            b"SQLite format 3\0",
            b"\1\1",
            _APPLICATION,
        ):
            raise self._no_state("it was not written by sbbf")
        return True

    def _no_state(self, reason: str) -> UsageError:
        return UsageError(
            f"the file is not a state of sbbf: {reason}", file=self.path, hint="name another"
        )

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Rename a damaged state, and begin another one."""
        self.close()
        damage = f"{self.path}: the state is damaged ({error})"
        if not self.writes:
            self._warn(f"{damage}; its files are worked on again")
            return
        name = next(
            name
            for name in (f"{self._real_path}.damaged-{number}" for number in count(1))
            if not os.path.lexists(name)
        )
        try:
            for suffix in ("-journal", ""):
                if os.path.lexists(self._real_path + suffix):
                    os.rename(self._real_path + suffix, name + suffix)
            _create(self._real_path)
            self._connect()
        except (OSError, SbbfError, sqlite3.Error) as failure:
            self.writes = False
            self._warn(f"{damage} and cannot be renamed: {failure}")
        else:
            self._warn(
                f"{damage} and is now {os.path.basename(name)}; its files are worked on again"
            )


def _ensure_usable(real: str, path: str, *, writes: bool) -> None:
    """Raise RefusedError before the run if its state could not be saved, as far as this can be
    checked, or if a dry run names a folder that does not exist."""
    if not os.path.isdir(os.path.dirname(real)):
        raise RefusedError(
            "the folder of the state does not exist", file=path, hint="create it first"
        )
    _ensure_usable_journal(f"{real}-journal")
    if not writes:
        return
    permissions.ensure_open_to_new_files(os.path.dirname(real), path)
    if os.path.exists(real) and not os.access(real, os.W_OK):
        raise RefusedError("no permission to write the state", file=path, hint="name another")


def _ensure_usable_journal(journal: str) -> None:
    """Raise RefusedError for a journal whose rows another user could choose, or in which SQLite
    would wait for a writer that never comes."""
    if not os.path.lexists(journal):
        return
    status = os.lstat(journal)
    if not stat.S_ISREG(status.st_mode):
        raise RefusedError(
            "the journal of the state is no regular file", file=journal, hint="remove it"
        )
    if status.st_uid not in (user_id(), 0):
        raise RefusedError(
            "the journal of the state belongs to another user, who could choose its rows",
            file=journal,
            hint="remove it",
        )


def _create(path: str) -> None:
    """Write a state without rows in one step, unless another run is first."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"PRAGMA application_id = {int.from_bytes(_APPLICATION)}")
        database.execute(_TABLE)
        data = database.serialize()
    try:
        with write_whole(path, overwrite=False) as stream:
            stream.write(data)
    except RefusedError:
        if not os.path.exists(path):
            raise


def _decompress(data: object) -> str | None:
    """Return the text of a report; an empty one, which is none, if the bytes are damaged or have
    too many characters."""
    try:
        decompressor = zlib.decompressobj()
        text = decompressor.decompress(data, _MOST_REPORT_BYTES)  # type: ignore[arg-type]
        return text.decode("ascii") if decompressor.eof else ""
    except (zlib.error, TypeError, UnicodeDecodeError):
        return ""
