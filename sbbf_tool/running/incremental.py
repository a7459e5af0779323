"""A run that works only on files that are new or changed since an earlier one, or whose earlier
outcome does not answer the request.

    listing -> files without a usable row in the state -> rows of the runner
            |                                              `-> new rows of the state
            `-> rows of the state

A file is unchanged if its listing states the same size and times and the same inode, or the same
ETag, as when it was worked on: no file is opened to find out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import fields
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.own_tail import hash_end
from sbbf_tool.file.table_file import FileName
from sbbf_tool.frozen import replace
from sbbf_tool.reports.change import ChangeReport
from sbbf_tool.reports.plain import escape_bytes, from_text, to_text
from sbbf_tool.reports.rows import OK, SKIPPED, ListedFile, Row
from sbbf_tool.running.discover import discover, list_file, stat_file
from sbbf_tool.running.file_times import COARSE_SECONDS, granularity_of, shows_changes
from sbbf_tool.running.state import State, StateRow
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.parquet.column_names import ColumnNames
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.work import Runner, Work

Report = TypeVar("Report")


class IncrementalRunner:
    """A runner that takes the rows of unchanged files from a state, and records the others
    there."""

    def __init__(self, runner: Runner, state: State) -> None:
        self._runner = runner
        self._state = state

    def run(self, selection: Selection, work: Work[Report]) -> Generator[Row[Report], None, None]:
        """Yield the row of each file; see `Runner.run`. Unchanged files come first among each group
        of files that is worked on."""
        requests = _Requests(work.on(selection))
        objects = _objects_of(selection)
        waiting = []
        most = self._runner.most_files
        try:
            for entry in self._runner.list_files(selection, links=work.changes):
                file = entry
                if not entry.skipped and _version_of(entry) is None:
                    file = objects.get(entry.path) or stat_file(entry.path)
                row = None if file.skipped else self._find(file, requests)
                if row is not None:
                    yield row
                elif shows_changes(file):
                    waiting.append(file)
                else:
                    waiting.append(ListedFile(file.path, skipped=file.skipped))
                if most is not None and len(waiting) >= most:
                    yield from self._work_on(waiting, selection, work, requests)
                    waiting.clear()
            if waiting:
                yield from self._work_on(waiting, selection, work, requests)
            if selection.where is None or not selection.where.is_choice:
                self._state.forget(requests.command, map(_key_of, _folders(selection)))
        finally:
            self._state.close()

    def _work_on(
        self, files: list[ListedFile], selection: Selection, work: Work[Report], requests: _Requests
    ) -> Generator[Row[Report], None, None]:
        by_path = {file.path: file for file in files if file.skipped is None}
        with closing(self._runner.run(selection.only(files), work)) as rows:
            for row in rows:
                file = by_path.get(row.path)
                if file is not None and self._state.writes:
                    self._record(row, file, requests)
                yield row

    def _find(self, file: ListedFile, requests: _Requests) -> Row[Any] | None:
        """Return the row of an unchanged file; None if the file must be worked on."""
        version = _version_of(file)
        if version is None:
            return None
        for saved in self._state.find(_key_of(file.path)):
            if saved.version != version or saved.command != requests.command:
                continue
            is_usable = saved.status == SKIPPED or not requests.only_skipped
            if is_usable and saved.request == requests.hash_of(file.path):
                return _row_of(saved, file.path, requests.work.verb.report)
        return None

    def _record(self, row: Row[Any], file: ListedFile, requests: _Requests) -> None:
        final_row = _repeat(row)
        if final_row is not row:
            file = _version_after(final_row)
        version = _version_of(file)
        if version is None:
            return
        report = row.report
        has_gaps = getattr(report, "unreadable", ()) or getattr(report, "locked_columns", ())
        text = None
        if report is not None and not has_gaps:
            text = to_text(final_row.report, redact(final_row.path))
        saved = StateRow(
            path=_key_of(final_row.path),
            command=requests.command,
            version=version,
            request=requests.hash_of(row.path),
            status=final_row.status,
            reason=final_row.reason and escape_bytes(final_row.reason),
            exit_code=final_row.exit_code,
            report=text,
        )
        self._state.record(saved)


class _Requests:
    """What a run requests of each file, as a hash."""

    def __init__(self, work: Work[object]) -> None:
        self.work = work
        self.command = work.verb.name
        # Runs that only compare share the outcomes of files without work with runs that change
        # files.
        self.only_skipped = work.changes and not work.is_dry_run
        self._columns: dict[int, str] = {}

    def hash_of(self, path: str) -> str:
        file = self.work.file(path)
        columns = "" if isinstance(file, str) else self._describe(getattr(file, "columns", None))
        return _hash(f"{_version()} {self._describe_request(file)!r} {columns}")

    def _describe_request(self, file: FileName) -> tuple[object, ...]:
        context = self.work.context
        has_keys = context.keys is not None
        request = self.work.verb.request(file)
        return (self.command, *request, has_keys, context.limit.max_page_bytes, context.strict)

    def _describe(self, columns: ColumnNames | None) -> str:
        """Return the hash of the names that columns have in a table; the files of a table share few
        such objects."""
        if id(columns) not in self._columns:
            self._columns[id(columns)] = _hash(_spell(columns))
        return self._columns[id(columns)]


def _spell(columns: ColumnNames | None) -> str:
    """Return a text of the names of columns, whose sets another process has in another order."""
    if columns is None:
        return ""
    values = (getattr(columns, each.name) for each in fields(columns))
    return repr([sorted(value) if isinstance(value, frozenset) else value for value in values])


@lru_cache(4096)
def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


@cache
def _version() -> str:
    return version("sbbf-tool")


def _key_of(path: str) -> str:
    """Return the name of a file in a state."""
    return escape_bytes(redact(path) if places.is_url(path) else os.path.abspath(path))


def _folders(selection: Selection) -> Iterator[str]:
    """Yield the names of a selection that mean all files below them."""
    if selection.table is not None:
        yield selection.table.location
    elif isinstance(selection.names, tuple):
        yield from filter(_is_folder, selection.names)


def _is_folder(name: str) -> bool:
    return name.endswith("/") if places.is_url(name) else os.path.isdir(name)


def _version_of(file: ListedFile) -> str | None:
    """Return what changes with the content of a file; None if its listing does not state enough."""
    if file.bytes is None or (file.etag is None and file.modified is None):
        return None
    return json.dumps((file.bytes, file.modified, file.change_time, file.inode, file.etag))


def _objects_of(selection: Selection) -> dict[str, ListedFile]:
    """List the objects of a table, whose metadata do not state their versions; return none if each
    object needs a request."""
    if selection.table is None or not places.is_url(selection.table.location):
        return {}
    try:
        return {file.path: file for file in discover((f"{selection.table.location.rstrip('/')}/",))}
    except SbbfError:
        return {}


def _version_after(row: Row[Any]) -> ListedFile:
    """Return the file of such a row with its version; without one if it no longer is the file that
    the run has written, or if it may get other content without another time.

    That of a file system that counts in ticks is trusted at once: to wait would take a tick per
    file.
    """
    report: Any = row.report
    try:
        with places.open_source(row.path) as source:
            if source.etag is None:
                file = list_file(row.path)
            else:
                file = ListedFile(row.path, source.size, etag=source.etag)
            has_our_size = source.size == file.bytes == report.new_bytes
            is_ours = has_our_size and hash_end(source, source.size) == report.new_end_hash
    except SbbfError:
        is_ours = False
    if is_ours and (granularity_of(file) < COARSE_SECONDS or shows_changes(file)):
        return file
    return ListedFile(row.path)


def _row_of(saved: StateRow, path: str, kind: type[Report]) -> Row[Report] | None:
    """Build the row of a file from its saved outcome; None if that is not the form of a successful
    outcome."""
    if saved.status not in (OK, SKIPPED) or saved.exit_code != 0:
        return None
    if saved.report is None and saved.status == OK:
        return None
    report = None
    try:
        if saved.report is not None:
            report = from_text(kind, saved.report, redact(path))
    except ValueError:
        return None
    return Row(path, saved.status, saved.reason, report=report, is_unchanged=True)


def _repeat(row: Row[Any]) -> Row[Any]:
    """Return the row of a second run over the file, if nothing else changes it meanwhile."""
    if row.status != OK or not isinstance(row.report, ChangeReport):
        return row
    again: Any = row.report.repeat()
    if again is row.report:
        return row
    status, reason = again.outcome()
    return replace(row, path=again.file, status=status, reason=reason, report=again)
