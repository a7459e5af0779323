"""The index as a path: it stands for the files of its lake, and leaves out those that certainly
hold none of the values of a query.

It only leaves out: a file that remains is opened and judged as without an index. So do files that
are new, or that have changed since they were indexed, which the listing of the lake shows.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import RefusedError, SbbfError, UsageError
from sbbf_tool.extension import is_table_name
from sbbf_tool.extensions.index import contents
from sbbf_tool.extensions.index.hits import find_hits
from sbbf_tool.extensions.index.identity import fingerprint_of, identify, meaning_of
from sbbf_tool.extensions.index.segment import OpenSegment, UnitClass
from sbbf_tool.file.partitions import Predicate
from sbbf_tool.file.texts import values_of
from sbbf_tool.frozen import replace
from sbbf_tool.reports.plain import restore_bytes
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.running.selection import Selection, find_table, full_name_of
from sbbf_tool.storage import places
from sbbf_tool.storage.listing import WILDCARD
from sbbf_tool.verbs.verb import Needs

if TYPE_CHECKING:
    from sbbf_tool.extensions.index.contents import Contents
    from sbbf_tool.running.table import Table


class _Judgment(NamedTuple):
    """What an index knows of the values of a query."""

    excluded: AbstractSet[bytes] = frozenset()
    """Fingerprints of the files that hold none of them."""
    types: Mapping[bytes, str] = {}
    """Type of the column in each of these files, if one of the types of the lake cannot hold one of
    the values."""


class _Answer(NamedTuple):
    """The indexed files that may hold one of the values of a query."""

    files: list[ListedFile]
    """Each file once."""
    is_unfit: bool
    """Whether a type of the column cannot hold one of the values."""


class LakeIndex:
    """An index that is read; see `running.selection.Index`."""

    def __init__(self, folder: str) -> None:
        """Read the contents. Raises MissingError and UnreadableError."""
        self.name = self.folder = folder.rstrip("/")
        self.contents = contents.read(self.folder)
        names = self.contents.names
        full_names = self.contents.lake
        if len(names) != len(full_names):
            names = full_names
        self.paths = tuple(map(_name_in_use, names, full_names))
        self.excluded = 0
        self.lists = True

    def narrow(
        self, files: Iterator[ListedFile], needs: Needs, table: Table | None
    ) -> Iterator[ListedFile]:
        """Leave out the files that certainly hold none of the values; see
        `running.selection.Index`."""
        if not self.lists:
            self.ensure_meant(needs.columns[:1], table)
            yield from self._find_known(needs.values)
            return
        self.excluded = 0
        is_meant = self._is_meant(needs.columns[:1], table)
        judgment = self._judge(needs.values) if is_meant else _Judgment()
        shown_types = set[str]()
        first_excluded: ListedFile | None = None
        is_empty = True
        for file in files:
            fingerprint = _find_among(file, judgment.excluded, table)
            is_kept = fingerprint is None
            if fingerprint is not None and fingerprint in judgment.types:
                kind = judgment.types[fingerprint]
                is_kept = kind not in shown_types
                shown_types.add(kind)
            if is_kept:
                is_empty = is_empty and file.skipped is not None
                yield file
            else:
                first_excluded = first_excluded or file
                self.excluded += 1
        if first_excluded is not None and is_empty:
            self.excluded -= 1
            yield first_excluded

    def ensure_meant(self, columns: Sequence[str], table: Table | None) -> None:
        """Raise UsageError unless the index is of this column, as the table means it now."""
        if not self._is_meant(columns, table):
            hint = "list the files, or update the index if the table has renamed the column"
            raise UsageError(
                f"the index is of column {self.contents.column}", file=self.name, hint=hint
            )

    def _is_meant(self, columns: Sequence[str], table: Table | None) -> bool:
        column = self.contents.column
        is_same = list(columns) == [column]
        return is_same and meaning_of(table, column) == self.contents.meaning

    def _find_known(self, values: Sequence[object]) -> Iterator[ListedFile]:
        """Yield the indexed files that may hold one of the values, without a listing; one file of
        each type if a type cannot hold a value, and one file if there is none."""
        answer = self._find(values)
        paths = []
        skipped_files = []
        for file in answer.files:
            if file.skipped is None:
                paths.append(file.path)
            else:
                skipped_files.append(file)
        if answer.is_unfit or not paths:
            for path in self._live_paths():
                if path not in paths:
                    paths.append(path)
                if not answer.is_unfit:
                    break
        self.excluded = sum(entry.files for entry in self.contents.segments) - len(paths)
        for path in sorted(paths, key=_order_of):
            yield ListedFile(self._name_of(path))
        for file in skipped_files:
            yield replace(file, path=self._name_of(file.path))

    def _name_of(self, path: str) -> str:
        """Return the path of an indexed file as a listing of the lake would print it."""
        for name, full_name in zip(self.paths, self.contents.lake, strict=True):
            base = _base_of(full_name).rstrip("/")
            if name != full_name and f"{path}/".startswith(f"{base}/"):
                return os.path.join(_base_of(name), path[len(base) + 1 :]).rstrip("/")
        return path

    def _live_paths(self) -> Iterator[str]:
        """Yield the path of the first live unit of each type of the column."""
        seen_types = set[str]()
        for entry in self.contents.segments:
            with entry.open(self.folder) as segment:
                segment.ensure_whole()
                dead = entry.dead_units or bytes(entry.units)
                wanted = []
                for group in segment.classes:
                    unit = dead.find(b"\0", group.first, group.first + group.units)
                    name = _name_type(group)
                    if unit >= 0 and name not in seen_types:
                        seen_types.add(name)
                        wanted.append(unit)
                for unit, path, _ in _read_paths(segment, wanted):
                    if unit in wanted:
                        yield path

    def find_excluded(self, values: Sequence[object]) -> AbstractSet[bytes]:
        """Return the fingerprints of the files that hold none of the values. Raises UnreadableError
        for a damaged index."""
        return self._judge(values).excluded

    def _judge(self, values: Sequence[object]) -> _Judgment:
        all_files = set[bytes]()
        kept = set[bytes]()
        types: dict[bytes, str] = {}
        with ExitStack() as stack:
            segments = []
            is_unfit = False
            for entry in self.contents.segments:
                segment = stack.enter_context(entry.open(self.folder))
                hits = find_hits(segment, values)
                is_unfit = is_unfit or hits.is_unfit
                segments.append((segment, hits))
            for segment, hits in segments:
                firsts = [group.first for group in segment.classes]
                names = list(map(_name_type, segment.classes))
                for unit, fingerprint in segment.read_units("fingerprint"):
                    if hits.flags[unit]:
                        kept.add(fingerprint)
                        continue
                    all_files.add(fingerprint)
                    if is_unfit:
                        group = bisect_right(firsts, unit) - 1
                        types[fingerprint] = names[group]
        return _Judgment(all_files - kept, types)

    def find_paths(self, values: Sequence[object]) -> list[str]:
        """Return the paths of the files that may hold one of the values, as far as the index knows
        them; also of files that a listing skips."""
        return [file.path for file in self._find(values).files]

    def _find(self, values: Sequence[object]) -> _Answer:
        files: dict[str, ListedFile] = {}
        is_unfit = False
        for entry in self.contents.segments:
            with entry.open(self.folder) as segment:
                hits = find_hits(segment, values)
                is_unfit = is_unfit or hits.is_unfit
                flags = hits.flags
                for unit, is_dead in enumerate(entry.dead_units):
                    if is_dead:
                        flags[unit] = 0
                wanted = [unit for unit, flag in enumerate(flags) if flag]
                of_wanted = set(wanted)
                for unit, path, skipped in _read_paths(segment, wanted):
                    if unit in of_wanted:
                        files.setdefault(path, ListedFile(path, skipped=skipped or None))
        return _Answer(list(files.values()), is_unfit)


def _read_paths(segment: OpenSegment, wanted: Sequence[int]) -> Iterator[tuple[int, str, str]]:
    """Yield position, path and reason for a skip of the units in the row groups that have one of
    these units, which are in order."""

    def has_wanted(rows: range) -> bool:
        at = bisect_right(wanted, rows.start - 1)
        return at < len(wanted) and wanted[at] in rows

    for unit, path, skipped in segment.read_units("path", "skipped", only=has_wanted):
        yield unit, restore_bytes(path), skipped


def _order_of(path: str) -> str:
    """Return the key by which listings order paths: a folder stands where its name does."""
    return path if places.is_url(path) else path.replace("/", "\0")


def _name_type(group: UnitClass) -> str:
    return json.dumps(group.type, sort_keys=True)


def _name_in_use(name: str, full_name: str) -> str:
    """Return the name of a part of the lake as it was given, if it still means the same."""
    try:
        return name if full_name_of(name) == full_name else full_name
    except SbbfError:
        return full_name


def _base_of(name: str) -> str:
    """Return the part of a name that the paths of all of its files begin with."""
    if places.is_url(name) or is_table_name(name):
        return name
    path = places.local_path(name)
    match = re.search(WILDCARD, path)
    if match is None:
        return path
    return path[: match.start()].rpartition("/")[0]


def _find_among(file: ListedFile, known: AbstractSet[bytes], table: Table | None) -> bytes | None:
    """Return the fingerprint of a listed file if it is among these."""
    if not known or file.skipped is not None:
        return None
    fingerprint = fingerprint_of(identify(file), is_in_table=table is not None)
    return fingerprint if fingerprint in known else None


def prune_index(
    index: str | os.PathLike[str], values: Mapping[str, object], *, listing: bool = True
) -> list[str]:
    """Return the paths of the files of an index that may hold one of the values of its column, for
    pyarrow, Polars, pandas or DuckDB.

        pyarrow.dataset.dataset(
            prune_index("lake.sbbfx", {"user_id": [42, 43]})
        ).to_table(filter=...)

    The lake is listed, and files are returned that are new or have changed since they were indexed;
    without `listing`, only the index is read, which knows nothing of them, and the metadata of a
    table. Files that a run would skip are returned too, such as data files of a table that are not
    Parquet: the reader has to refuse them. Rows that a table has deleted are not known. Raises
    UsageError for another column, RefusedError if rows that are in no file may hold a value, and
    UnreadableError for a damaged index.
    """
    lake_index = LakeIndex(os.fspath(index))
    column = lake_index.contents.column
    if set(values) != {column}:
        names = ", ".join(map(str, values)) or "none"
        raise UsageError(f"the index is of column {column}, not of {names}", file=lake_index.name)
    wanted = values_of(values[column])
    selection = selection_of(replace(lake_index.contents, where=None))
    for rows in selection.other_rows(Needs(columns=(column,), values=wanted)):
        raise RefusedError(rows.skipped or "", file=rows.path)
    if not listing:
        lake_index.ensure_meant((column,), selection.table)
        return lake_index.find_paths(wanted)
    excluded: AbstractSet[bytes] = frozenset()
    is_meant = meaning_of(selection.table, column) == lake_index.contents.meaning
    if is_meant:
        excluded = lake_index.find_excluded(wanted)
    paths = []
    for file in selection.files():
        is_excluded = _find_among(file, excluded, selection.table) is not None
        if not is_excluded:
            paths.append(file.path)
    return paths


def selection_of(index: Contents) -> Selection:
    """Return the files of the lake that are indexed, as they are now."""
    where = None if index.where is None else Predicate(index.where)
    table = None
    if len(index.lake) == 1:
        table = find_table(index.lake[0])
    return Selection(index.lake, where, table=table)
