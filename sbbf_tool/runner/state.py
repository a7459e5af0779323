"""The state of runs: a Parquet file with one row per file and command, from which a later run takes the outcomes of unchanged files.

It is a cache: a lost or damaged state costs time, and nothing else. Rows are read row group by row group when their files are listed, so
that memory grows by some bytes per row. The file is replaced as a whole; runs that use the same state concurrently overwrite each other's
rows.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sbbf_tool import log
from sbbf_tool.errors import MissingError, RefusedError, UnreadableError, UsageError, WriteError
from sbbf_tool.file.row_file import RowFile
from sbbf_tool.reports.arrow import schema_of, to_batch
from sbbf_tool.reports.state import StateRow
from sbbf_tool.storage import local, places
from sbbf_tool.storage.whole import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARK = b"sbbf.state"
"""Key in the metadata of the file, so that a state never replaces another file."""
_FORM = b"1"
_NAMES = tuple(StateRow.__dataclass_fields__)
_GROUP_ROWS = 4096
_GROUP_BYTES = 16 << 20
"""Bytes of the rows of a row group, so that a reader never has many in memory."""
_SAVE_SECONDS = 60.0
_MOST_PENDING_BYTES = 64 << 20
_GROUPS_IN_MEMORY = 4
_MOST_EQUAL_HASHES = 16
"""Rows of a path that are looked at: there is one per command."""


class State:
    """The rows of a state file. With `writes`, new rows are recorded, and saved each minute and by `save`."""

    def __init__(self, path: str | os.PathLike[str], *, writes: bool = True, must_exist: bool = False) -> None:
        """Open a state. Raises UsageError if the file is no state and, with `must_exist`, if there is none."""
        self.path = os.fsdecode(path)
        self.writes = writes
        self.warnings: list[str] = []
        """What could not be read or saved. The files of such rows are worked on again."""
        self._file: RowFile | None = None
        self._new_rows: dict[tuple[str, str], StateRow] = {}
        self._pending_bytes = 0
        self._saved_at = time.monotonic()
        self._starts: NDArray[np.int64]
        self._hashes: NDArray[np.int64]
        self._order: NDArray[np.int64]
        self._is_listed: NDArray[np.bool_]
        self._dropped: NDArray[np.bool_]
        self._groups: OrderedDict[int, dict[str, list[Any]]] = OrderedDict()
        self._open(must_exist)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(self, path: str) -> Iterator[StateRow]:
        """Yield the saved rows of a file that is listed, at most one per command."""
        for position in self._positions(path):
            row = self._row(position)
            if row is not None and row.path == path and not self._dropped[position]:
                self._is_listed[position] = True
                yield row

    def record(self, row: StateRow) -> None:
        """Add a row, which replaces the saved one of the same file and command."""
        if not self.writes:
            return
        self._pending_bytes += len(row.report or "") + len(row.path)
        self._new_rows[row.path, row.command] = row
        now = time.monotonic()
        if now - self._saved_at >= _SAVE_SECONDS or self._pending_bytes > _MOST_PENDING_BYTES:
            self.save()

    def forget(self, command: str, folders: Iterable[str]) -> None:
        """Drop the rows of this command whose files are below these folders, but were not listed: the files no longer exist."""
        prefixes = tuple(f"{folder.rstrip('/')}/" for folder in folders)
        if not (self.writes and prefixes):
            return
        for number in range(len(self._starts) - 1):
            columns = self._group(number, ("path", "command"))
            start = int(self._starts[number])
            for at, (path, owner) in enumerate(zip(columns["path"], columns["command"], strict=True)):
                if owner == command and not self._is_listed[start + at] and path.startswith(prefixes):
                    self._dropped[start + at] = True
                    self._is_changed = True

    def save(self) -> None:
        """Replace the file by one with the present rows. If that fails, the old file stays, and `warnings` has the reason."""
        started = time.monotonic()
        if self.writes and (self._new_rows or self._is_changed):
            for path, command in self._new_rows:
                self._drop(path, command)
            try:
                self._replace()
            except (RefusedError, WriteError, UsageError) as error:
                # A run does not fail for its cache.
                self._warn(f"the state is not saved: {error}")
                if self._pending_bytes > _MOST_PENDING_BYTES:
                    self._new_rows, self._pending_bytes = {}, 0
        # A large state takes long to write: then it is saved less often.
        self._saved_at = time.monotonic() + 9 * (time.monotonic() - started)

    def _replace(self) -> None:
        with write_whole(self.path, overwrite=True) as stream:
            self._write(stream)
        is_listed = np.concatenate([self._is_listed[~self._dropped], np.ones(len(self._new_rows), np.bool_)])
        self.close()
        self._new_rows, self._pending_bytes = {}, 0
        self._open()
        self._is_listed = is_listed if len(is_listed) == len(self._is_listed) else self._is_listed

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)
            log.info("%s", warning)

    # --- reading ---

    def _open(self, must_exist: bool = False) -> None:
        self._groups.clear()
        self._is_changed = False
        if self.writes:
            _ensure_writable(self.path)
        try:
            self._file = self._open_file()
        except MissingError:
            if must_exist:
                raise UsageError("there is no such state", file=self.path, hint="a run that keeps a state writes one") from None
        except UnreadableError as error:
            hint = "name another; an old state can be removed: only the time that it saves is lost"
            raise UsageError(f"the file is not a state of this version of sbbf: {error.message}", file=self.path, hint=hint) from None
        counts = [] if self._file is None else [self._file.num_rows(number) for number in range(self._file.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        self._is_listed = np.zeros(int(self._starts[-1]), np.bool_)
        self._dropped = np.zeros(int(self._starts[-1]), np.bool_)
        hashes: NDArray[np.int64] = np.zeros(int(self._starts[-1]), np.int64)
        for number in range(len(counts)):
            paths = self._group(number, ("path",))["path"]
            hashes[self._starts[number] : self._starts[number] + len(paths)] = [hash(path) for path in paths]
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def _open_file(self) -> RowFile | None:
        file = RowFile(self.path, 2 * _GROUP_ROWS)
        # Each row has a path of its own, so that more rows than bytes are a forgery.
        num_rows = sum(map(file.num_rows, range(file.num_row_groups)))
        if file.metadata.get(MARK) != _FORM or not file.schema.equals(_dictionary_schema()) or num_rows > os.path.getsize(self.path):
            file.close()
            raise UnreadableError("it has other rows")
        return file

    def _positions(self, path: str) -> list[int]:
        key = hash(path)
        first, last = np.searchsorted(self._hashes, key, "left"), np.searchsorted(self._hashes, key, "right")
        return [int(position) for position in self._order[first : min(last, first + _MOST_EQUAL_HASHES)]]

    def _row(self, position: int) -> StateRow | None:
        """Return a saved row; None if it cannot be read."""
        number = int(np.searchsorted(self._starts, position, "right")) - 1
        if number not in self._groups:
            self._groups[number] = self._group(number, _NAMES)
            if len(self._groups) > _GROUPS_IN_MEMORY:
                self._groups.popitem(last=False)
        self._groups.move_to_end(number)
        at = position - int(self._starts[number])
        columns = self._groups[number]
        return StateRow(*(columns[name][at] for name in _NAMES)) if columns["path"] else None

    def _group(self, number: int, names: tuple[str, ...]) -> dict[str, list[Any]]:
        """Read columns of a row group; they are empty if it cannot be read."""
        assert self._file is not None
        try:
            columns = self._file.read(number, names)
            if any(len(values) != self._file.num_rows(number) for values in columns.values()):
                raise UnreadableError("it has fewer rows than the footer states")
            return columns
        except UnreadableError as error:
            self._drop_group(number, error)
            return {name: [] for name in names}

    def _drop_group(self, number: int, error: UnreadableError) -> None:
        self._dropped[self._starts[number] : self._starts[number + 1]] = True
        self._warn(f"{self.path}: row group {number} of the state cannot be read ({error.message}); its files are worked on again")

    # --- writing ---

    def _drop(self, path: str, command: str) -> None:
        for position in self._positions(path):
            row = self._row(position)
            if row is not None and (row.path, row.command) == (path, command):
                self._dropped[position] = True

    def _write(self, stream: Any) -> None:
        schema = _dictionary_schema()
        with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
            # Small row groups of earlier runs are joined.
            waiting: list[pa.Table] = []
            for table in self._tables(schema):
                waiting.append(table)
                if sum(map(len, waiting)) >= _GROUP_ROWS or sum(each.nbytes for each in waiting) >= _GROUP_BYTES:
                    _write_group(writer, waiting)
            _write_group(writer, waiting)

    def _tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows to save as tables of up to `_GROUP_ROWS` rows: the saved ones in their order, then the new ones."""
        for number in range(len(self._starts) - 1):
            is_kept = ~self._dropped[self._starts[number] : self._starts[number + 1]]
            if self._file is not None and is_kept.any():
                try:
                    table = self._file.read_table(number, _NAMES)
                except UnreadableError as error:
                    self._drop_group(number, error)
                    continue
                encoded_table = _encode(table, schema)
                yield encoded_table if is_kept.all() else encoded_table.filter(pa.array(is_kept))
        rows = list(self._new_rows.values())
        for start in range(0, len(rows), _GROUP_ROWS):
            yield _encode(pa.Table.from_batches([to_batch(StateRow, rows[start : start + _GROUP_ROWS])]), schema)


def _ensure_writable(path: str) -> None:
    """Raise UsageError or RefusedError before the run if its state could not be saved, as far as this can be checked."""
    if places.is_url(path):
        raise UsageError("a state must be a local file", file=path)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise RefusedError("the folder of the state does not exist", file=path, hint="create it first")
    local.ensure_open_to_new_files(os.path.dirname(os.path.realpath(path)), path)


def _write_group(writer: parquet.ParquetWriter, waiting: list[pa.Table]) -> None:
    if waiting:
        table = pa.concat_tables(waiting).unify_dictionaries()
        writer.write_table(table, row_group_size=2 * _GROUP_ROWS)
        waiting.clear()


def _encode(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert text to dictionaries where the schema has them. Before pyarrow 15, `cast` cannot."""
    columns = [table.column(field.name) for field in schema]
    return pa.table([column.dictionary_encode() if column.type == pa.string() else column for column in columns], schema=schema)


def _dictionary_schema() -> pa.Schema:
    """Return the schema of rows with text as dictionaries: equal texts are in memory once."""
    text = pa.dictionary(pa.int32(), pa.string())
    fields = (field.with_type(text) if field.type == pa.string() else field for field in schema_of(StateRow))
    return pa.schema(fields, {MARK: _FORM})
