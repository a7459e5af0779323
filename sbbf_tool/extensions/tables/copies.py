"""The copies of files that runs make in a table: the marker of a run that is at work, and the
copies that no run will commit any more.

A run renews its marker every minute. A marker is a file in a folder of the table,
`_sbbf-run-<run>-<seconds since 1970>`, with the table's `marker_text`: renewing creates the new one
and then removes the old one, so that there is always one. Clean-ups of Delta and Iceberg skip names
with an underscore.

A copy is abandoned if its name says that a run made it, no retained version of the table refers to
it, and its run has not renewed its marker for a while; if there is no marker, the copy itself must
be that old. A table may lie below another one: copies in its folders are its own. Tables with a
`marker_text` may share their folder with others: there, only copies of runs whose marker has this
text are abandoned.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from operator import attrgetter
from threading import Event, Thread
from typing import TYPE_CHECKING

from sbbf_tool import log
from sbbf_tool.errors import SbbfError, WriteError
from sbbf_tool.extensions.tables.locate import other_tables
from sbbf_tool.file.table_file import run_of_copy
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.storage import places
from sbbf_tool.storage.leftovers import TEMPORARY_SUFFIX, sweep
from sbbf_tool.storage.system_calls import reason_of

if TYPE_CHECKING:
    from sbbf_tool.extensions.tables.lake_table import LakeTable


class AbandonedCopy(Frozen):
    """A copy that no version of the table refers to, made by a run that is no longer at work."""

    path: str
    run: str
    """Id of the run, which is part of the copy's name."""
    age_seconds: float
    """Seconds since the run renewed its marker; since the copy was written, if there is no
    marker."""


class AbandonedReport(Tabular):
    """The abandoned copies in a table."""

    table: str
    copies: tuple[AbandonedCopy, ...]
    deleted: bool
    """Whether the copies were deleted."""
    younger: int = 0
    """Number of copies that no version refers to, but that a run may still commit."""

    def _summary(self) -> str:
        done = "deleted" if self.deleted else "abandoned"
        return f"{self.table}: {format_count(len(self.copies), 'copy', 'copies')} {done}"


_PREFIX = "_sbbf-run-"
_MARKER = re.compile(rf"{_PREFIX}(?P<run>[0-9a-f]{{16}})-(?P<seconds>[0-9]{{1,12}})")
_RENEWAL_SECONDS = 60.0
_AT_WORK_SECONDS = 300.0
"""A run that renewed its marker within this time may be at work; its copies are not abandoned at
any requested age."""
OLD_SECONDS = 24 * 3600.0
"""Age from which copies count as abandoned, by default."""


class RunMarker:
    """The marker of a run in a table's folder. Use as a context manager; a thread renews the marker
    meanwhile."""

    def __init__(
        self, location: str, run: str, text: str = "", *, stays_after_error: bool = False
    ) -> None:
        self._stays_after_error = stays_after_error
        self._location = location
        self._run = run
        self._text = text
        self._path: str | None = None
        self._end = Event()
        # It has the access to the table that this thread has.
        renew = partial(copy_context().run, self._renew)
        self._thread = Thread(target=renew, name="sbbf-run-marker", daemon=True)

    def __enter__(self) -> RunMarker:
        try:
            if not places.is_url(self._location):
                # DuckLake creates the folder of a table with the first file that it writes; all
                # files may have been added from elsewhere.
                os.makedirs(self._location, exist_ok=True)
            self._create()
            if places.is_url(self._location):
                # A run that may not delete is refused before it makes copies.
                places.open_folders(self._location).remove(self._path or "")
                self._path = None
                self._create()
        except (OSError, ValueError) as error:
            raise WriteError(
                f"cannot create the marker of a run in the table's folder: {_reason_of(error)}",
                file=self._location,
            ) from error
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._end.set()
        self._thread.join()
        if self._path is not None and not (self._stays_after_error and exc_info[0] is not None):
            _remove_quietly(self._path)

    def _create(self) -> None:
        before = self._path
        path = f"{self._location}/{_PREFIX}{self._run}-{int(time.time())}"
        if path != before:
            places.open_folders(path).create(path, self._text.encode())
            self._path = path
            if before is not None:
                _remove_quietly(before)

    def _renew(self) -> None:
        while not self._end.wait(_RENEWAL_SECONDS):
            try:
                self._create()
            except (OSError, ValueError, SbbfError) as error:
                # The next renewal may succeed; markers count as old only after hours.
                log.info("cannot renew the marker of the run in %s: %s", self._location, error)


def find_unreferenced(
    table: LakeTable, older_than: float
) -> tuple[list[AbandonedCopy], list[AbandonedCopy]]:
    """Return the abandoned copies, and the younger ones, which a run may still commit. Both are
    ordered by path."""
    # A run that begins between the two listings has a marker, and no copy in the list.
    copies = dict(_copies_below(table.location))
    renewals = _renewals(table)
    candidates = _copies_with_age(table, copies, renewals)
    in_versions = set(table.referenced({copy.path for copy in candidates}))
    for other in other_tables(table):
        in_versions |= other.referenced({copy.path for copy in candidates})
    formats: dict[str, str | None] = {}
    abandoned = []
    younger = []
    for copy in sorted(candidates, key=attrgetter("path")):
        if copy.path in in_versions or _is_in_inner_table(table.location, copy.path, formats):
            continue
        least_age = older_than
        if copy.run in renewals:
            least_age = max(older_than, _AT_WORK_SECONDS)
        if copy.age_seconds > least_age:
            abandoned.append(copy)
        else:
            younger.append(copy)
    return abandoned, younger


def _copies_with_age(
    table: LakeTable, copies: Mapping[str, str], renewals: Mapping[str, float]
) -> list[AbandonedCopy]:
    """Return the copies, given as runs by path, whose age is known: from the marker of their run,
    or from the copy itself."""
    unmarked = set[str]()
    if not table.marker_text:
        unmarked = {path for path, run in copies.items() if run not in renewals}
    if places.is_url(table.location):
        # The time of each object is a request of its own, and most copies are in the table.
        unmarked -= table.referenced(unmarked)
    times = {}
    for path in unmarked:
        status = places.size_and_time(path)
        if status is not None:
            times[path] = status[1]
    now = time.time()
    candidates = []
    for path, run in copies.items():
        begin = renewals.get(run, times.get(path))
        if begin is not None:
            candidates.append(AbandonedCopy(path, run, now - begin))
    return candidates


def delete_abandoned(
    table: LakeTable, copies: Iterable[AbandonedCopy], older_than: float = OLD_SECONDS
) -> None:
    """Delete abandoned copies, the old markers of runs, and temporary files of killed processes.
    Raises WriteError."""
    for copy in copies:
        delete_copy(copy.path)
    for run, seconds in _renewals(table).items():
        if time.time() - seconds > max(older_than, _AT_WORK_SECONDS):
            for name in _list(table.marker_folder, f"{_PREFIX}{run}-"):
                _remove_quietly(f"{table.marker_folder}/{name}")
    if not places.is_url(table.location):
        for folder, _, names in os.walk(table.location):
            if any(name.endswith(TEMPORARY_SUFFIX) for name in names):
                sweep(folder)


def delete_copy(path: str) -> None:
    """Delete a copy that no version refers to. Raises WriteError."""
    try:
        places.open_folders(path).remove(path)
    except (OSError, ValueError) as error:
        raise WriteError(_reason_of(error), file=path) from error


def _reason_of(error: OSError | ValueError) -> str:
    return reason_of(error) if isinstance(error, OSError) else str(error)


def copies_of_run(folder: str, run: str) -> list[str]:
    """Return the paths of the copies that a run made in a folder, which for a URL takes requests;
    none if it cannot be listed."""
    try:
        names = _list(folder, f"sbbf-{run}-")
    except SbbfError:
        return []
    return [f"{folder}/{name}" for name in names if run_of_copy(name) == run]


def _list(folder: str, prefix: str) -> list[str]:
    try:
        return list(places.open_folders(folder).list(folder, prefix))
    except OSError:
        return []


def _renewals(table: LakeTable) -> dict[str, float]:
    """Return when each run of the table last renewed its marker."""
    times: dict[str, float] = {}
    for name in _list(table.marker_folder, _PREFIX):
        match = _MARKER.fullmatch(name)
        if match is None:
            continue
        if table.marker_text and not _has_text(f"{table.marker_folder}/{name}", table.marker_text):
            continue
        run = match["run"]
        times[run] = max(times.get(run, 0.0), float(match["seconds"]))
    return times


def _has_text(path: str, text: str) -> bool:
    try:
        return places.open_folders(path).read(path, len(text)) == text.encode()
    except (OSError, ValueError):
        # The marker was removed, or is another, larger file.
        return False


def _copies_below(location: str) -> Iterator[tuple[str, str]]:
    """Yield path and run of each copy below a folder or prefix."""
    paths = places.parquet_files(f"{location}/") if places.is_url(location) else _walk(location)
    for path in paths:
        run = run_of_copy(path.rpartition("/")[2])
        if run is not None and not os.path.islink(path):
            yield path, run


def _walk(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield f"{parent}/{name}"


def _is_in_inner_table(location: str, path: str, formats: dict[str, str | None]) -> bool:
    """Return whether the file of a table belongs to another one, whose root lies between. `formats`
    keeps what is known of folders."""
    folder = path.rpartition("/")[0]
    while len(folder) > len(location):
        if folder not in formats:
            formats[folder] = places.find_table_format(folder)
        if formats[folder] is not None:
            return True
        folder = folder.rpartition("/")[0]
    return False


def _remove_quietly(path: str) -> None:
    with suppress(OSError, ValueError, SbbfError):
        places.open_folders(path).remove(path)
