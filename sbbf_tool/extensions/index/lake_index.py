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
from hashlib import blake2b
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.spec import block_index
from sbbf_tool.errors import RefusedError, SbbfError, UsageError
from sbbf_tool.extension import absolute_table_name, is_table_name
from sbbf_tool.extensions.index import contents
from sbbf_tool.extensions.index.segment import (
    FINGERPRINT_BYTES,
    OpenSegment,
    UnitClass,
    damaged,
    find_units,
    parts_of,
)
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.texts import values_of
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.parquet.statistics import Bounds, key_of
from sbbf_tool.reports.plain import restore_bytes
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.storage import places
from sbbf_tool.storage.listing import WILDCARD
from sbbf_tool.verbs.verb import Needs

if TYPE_CHECKING:
    from sbbf_tool.extensions.index.contents import Contents
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.table import Table

_ONE = b"\1"
_FEW = 64
"""Number of hashes up to which numpy is not needed, and all runs of a class are fetched
concurrently."""


def version_of(file: ListedFile) -> str:
    """Return what changes with the content of a listed file; empty if its listing states no such
    thing."""
    return file.etag or (
        "" if file.modified is None else f"{file.modified!r} {file.change_time!r} {file.inode}"
    )


def fingerprint_of(file: ListedFile, *, is_in_table: bool = False) -> bytes | None:
    """Return the hash by which a file of a listing is found in the index; None if its listing does
    not state its length and its version.

    The files of a table never change, so that path and length are enough.
    """
    if file.bytes is None or not (is_in_table or version_of(file)):
        return None
    return hash_of(file)


def hash_of(file: ListedFile, *marks: str) -> bytes:
    """Return a hash of what a listing states of a file; with `marks`, another one."""
    parts = (os.fsencode(_full_path(file.path)), str(file.bytes).encode())
    texts = (version_of(file), *marks)
    return blake2b(
        b"\0".join((*parts, *map(str.encode, texts))), digest_size=FINGERPRINT_BYTES
    ).digest()


def _full_path(path: str) -> str:
    """Return the path of a file of a listing as the index has it, wherever the listing was made."""
    return path if places.is_url(path) else os.path.abspath(path)


def meaning_of(table: Table | None, column: str) -> str | None:
    """Return what a table means by the name of a column: another column of the files has it when
    the table has renamed columns."""
    if table is None:
        return None
    names, path = table.columns, table.columns.path_of(column)
    ids = sorted(number for number, other in names.by_id.items() if other == path)
    paths = sorted(stored for stored, other in names.by_path.items() if other == path)
    return repr(
        (path, ids, paths, path in names.unmapped, path is not None and names.readings.get(path))
    )


def identify(file: ListedFile) -> ListedFile:
    """Return a file of a listing with its times and its inode, which tables do not list."""
    if (
        file.bytes is None
        or file.etag is not None
        or file.modified is not None
        or places.is_url(file.path)
    ):
        return file
    from sbbf_tool.running.discover import list_file

    return list_file(file.path)


class _Judgment(NamedTuple):
    """What an index knows of the values of a query."""

    excluded: AbstractSet[bytes] = frozenset()
    """Fingerprints of the files that hold none of them."""
    types: Mapping[bytes, str] = {}
    """Type of the column in each of these files, if one of the types of the lake cannot hold one of
    the values."""


class LakeIndex:
    """An index that is read; see `running.selection.Index`."""

    def __init__(self, folder: str) -> None:
        """Read the contents. Raises MissingError and UnreadableError."""
        self.name = self.folder = folder.rstrip("/")
        self.contents = contents.read(self.folder)
        names, full_names = self.contents.names, self.contents.lake
        if len(names) != len(full_names):
            names = full_names
        self.paths = tuple(map(_name_in_use, names, full_names))
        self.excluded, self.lists = 0, True

    def narrow(
        self, files: Iterator[ListedFile], needs: Needs, table: Table | None
    ) -> Iterator[ListedFile]:
        """Leave out the files that certainly hold none of the values; see
        `running.selection.Index`."""
        if not self.lists:
            self.ensure_meant(needs.columns[:1], table)
            yield from self._find_known(needs.values)
            return
        self.excluded, first, is_empty = 0, None, True
        is_meant = self._is_meant(needs.columns[:1], table)
        judgment = self._judge(needs.values) if is_meant else _Judgment()
        shown = set[str]()
        for file in files:
            fingerprint = _find_among(file, judgment.excluded, table)
            kind = None if fingerprint is None else judgment.types.get(fingerprint)
            if fingerprint is None or (kind is not None and kind not in shown):
                shown.update(() if kind is None else (kind,))
                is_empty = is_empty and file.skipped is not None
                yield file
            else:
                first = first or file
                self.excluded += 1
        if first is not None and is_empty:
            self.excluded -= 1
            yield first

    def ensure_meant(self, columns: Sequence[str], table: Table | None) -> None:
        """Raise UsageError unless the index is of this column, as the table means it now."""
        if not self._is_meant(columns, table):
            hint = "list the files, or update the index if the table has renamed the column"
            raise UsageError(
                f"the index is of column {self.contents.column}", file=self.name, hint=hint
            )

    def _is_meant(self, columns: Sequence[str], table: Table | None) -> bool:
        column = self.contents.column
        return (*columns,) == (column,) and meaning_of(table, column) == self.contents.meaning

    def _find_known(self, values: Sequence[object]) -> Iterator[ListedFile]:
        """Yield the indexed files that may hold one of the values, without a listing; one file of
        each type if a type cannot hold a value, and one file if there is none."""
        files, is_unfit = self._find(values)
        paths = [file.path for file in files if file.skipped is None]
        if is_unfit or not paths:
            others = (path for path in self._live_paths() if path not in paths)
            paths += islice(others, None if is_unfit else 1)
        self.excluded = sum(entry.files for entry in self.contents.segments) - len(paths)
        yield from map(ListedFile, map(self._name_of, sorted(paths, key=_order_of)))
        for file in files:
            if file.skipped is not None:
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
        seen = set[str]()
        for entry in self.contents.segments:
            with entry.open(self.folder) as segment:
                segment.ensure_whole()
                dead = entry.dead_units or bytes(entry.units)
                wanted = []
                for group in segment.classes:
                    unit = dead.find(b"\0", group.first, group.first + group.units)
                    if unit >= 0 and _name_type(group) not in seen:
                        seen.add(_name_type(group))
                        wanted.append(unit)
                rows = _read_paths(segment, wanted)
                yield from (path for unit, path, _ in rows if unit in wanted)

    def find_excluded(self, values: Sequence[object]) -> AbstractSet[bytes]:
        """Return the fingerprints of the files that hold none of the values. Raises UnreadableError
        for a damaged index."""
        return self._judge(values).excluded

    def _judge(self, values: Sequence[object]) -> _Judgment:
        all_files, kept, types = set[bytes](), set[bytes](), dict[bytes, str]()
        with ExitStack() as stack:
            segments = [
                stack.enter_context(entry.open(self.folder)) for entry in self.contents.segments
            ]
            found = [find_hits(segment, values) for segment in segments]
            is_unfit = any(each.is_unfit for each in found)
            for segment, hits in zip(segments, found, strict=True):
                firsts = [group.first for group in segment.classes]
                names = list(map(_name_type, segment.classes))
                for unit, fingerprint in segment.read_units("fingerprint"):
                    if hits.flags[unit]:
                        kept.add(fingerprint)
                        continue
                    all_files.add(fingerprint)
                    if is_unfit:
                        types[fingerprint] = names[bisect_right(firsts, unit) - 1]
        return _Judgment(all_files - kept, types)

    def find_paths(self, values: Sequence[object]) -> list[str]:
        """Return the paths of the files that may hold one of the values, as far as the index knows
        them; also of files that a listing skips."""
        return [file.path for file in self._find(values)[0]]

    def _find(self, values: Sequence[object]) -> tuple[list[ListedFile], bool]:
        """Return the files that may hold one of the values, each once, and whether a type of the
        column cannot hold one of them."""
        found = dict[str, ListedFile]()
        is_unfit = False
        for entry in self.contents.segments:
            with entry.open(self.folder) as segment:
                hits, dead = find_hits(segment, values), entry.dead_units
                is_unfit = is_unfit or hits.is_unfit
                wanted = [
                    unit
                    for unit, flag in enumerate(hits.flags)
                    if flag and not (dead and dead[unit])
                ]
                of_wanted = set(wanted)
                for unit, path, skipped in _read_paths(segment, wanted):
                    if unit in of_wanted:
                        found.setdefault(path, ListedFile(path, skipped=skipped or None))
        return list(found.values()), is_unfit


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


def full_name_of(name: str) -> str:
    """Return a part of a lake by a name that means the same in every working folder."""
    return absolute_table_name(name) if is_table_name(name) else places.absolute(name)


def _base_of(name: str) -> str:
    """Return the part of a name that the paths of all of its files begin with."""
    if places.is_url(name) or is_table_name(name):
        return name
    path = places.local_path(name)
    match = re.search(WILDCARD, path)
    return path if match is None else path[: match.start()].rpartition("/")[0]


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

        pyarrow.dataset.dataset(prune_index("lake.sbbfx", {"user_id": [42, 43]})).to_table(filter=...)

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
        raise UsageError(
            f"the index is of column {column}, not of {', '.join(map(str, values)) or 'none'}",
            file=lake_index.name,
        )
    wanted = values_of(values[column])
    selection = selection_of(replace(lake_index.contents, where=None))
    for other in selection.other_rows(Needs(columns=(column,), values=wanted)):
        raise RefusedError(other.skipped or "", file=other.path)
    if not listing:
        lake_index.ensure_meant((column,), selection.table)
        return lake_index.find_paths(wanted)
    is_meant = meaning_of(selection.table, column) == lake_index.contents.meaning
    known = lake_index.find_excluded(wanted) if is_meant else frozenset()
    return [
        file.path for file in selection.files() if _find_among(file, known, selection.table) is None
    ]


def selection_of(index: Contents) -> Selection:
    """Return the files of the lake that are indexed, as they are now."""
    from sbbf_tool.file.partitions import Predicate
    from sbbf_tool.running.selection import Selection, find_table

    where = None if index.where is None else Predicate(index.where)
    return Selection(
        index.lake, where, table=find_table(index.lake[0]) if len(index.lake) == 1 else None
    )


class Hits(NamedTuple):
    """The units of a segment that may hold one of the values of a query."""

    flags: bytearray
    """A byte for each unit: 0 if it certainly holds none of them."""
    is_unfit: bool
    """Whether the column of a class has a type that cannot hold one of them."""


def find_hits(segment: OpenSegment, values: Sequence[object]) -> Hits:
    """Query the units of a segment. Raises UnreadableError for a damaged one."""
    segment.ensure_whole()
    hits = bytearray(_ONE * segment.units)
    is_unfit = False
    reuse, queries = Reuse(), []
    for group in segment.classes:
        if not group.type:  # `MissingColumn.answer`
            may_hit = any(value is None or str(value).lower() == "null" for value in values)
            hits[group.first : group.first + group.units] = bytes([may_hit]) * group.units
            continue
        try:
            question = reuse.question_of(group.column, values, is_strict=False)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(f"no column has the type of a class: {error}", segment.path) from None
        is_unfit = is_unfit or bool(question.unfit)
        # What the column cannot be compared with, null and BOOLEAN are no matter of filters.
        if all(literal.verdict in (None, ABSENT) for literal in question.row.special.values()):
            hits[group.first : group.first + group.units] = bytes(group.units)
            queries.append((group, question, _by_block(question, group)))
    segment.expect(
        (group, block)
        for group, _, by_block in queries
        if len(by_block) <= _FEW
        for block, _ in by_block
    )
    for group, question, by_block in queries:
        _UnitTest(segment, group, question, hits).query(by_block)
    return Hits(hits, is_unfit)


def _by_block(question: Question, group: UnitClass) -> list[tuple[int, list[int]]]:
    """Return the places of the hashes of a question by the block that they select, in the order of
    the blocks."""
    hashes = question.row.hashes

    def block_of(place: int) -> int:
        return block_index(hashes[place], group.blocks)

    return [
        (block, list(places_of))
        for block, places_of in groupby(sorted(range(len(hashes)), key=block_of), block_of)
    ]


class _UnitTest:
    """The test of the units of one class for the hashes of a question."""

    def __init__(
        self, segment: OpenSegment, group: UnitClass, question: Question, hits: bytearray
    ) -> None:
        self._segment, self._group, self._question, self._hits = segment, group, question, hits
        self._bounds: dict[int, tuple[int, bytes, bytes]] = {}

    def query(self, by_block: Sequence[tuple[int, list[int]]]) -> None:
        """Mark the units that may hold one of the values."""
        if len(self._question.row.hashes) > _FEW:
            self._query_many(by_block)
            return
        for block, places_of in by_block:
            run = self._segment.run(self._group, block)
            for place in places_of:
                start = self._group.first
                for flags in find_units(run, self._question.row.hashes[place]):
                    at = flags.find(_ONE)
                    while at >= 0:
                        if not self._hits[start + at] and self._is_within(start + at, place):
                            self._hits[start + at] = 1
                        at = flags.find(_ONE, at + 1)
                    start += len(flags)

    def _is_within(self, unit: int, place: int) -> bool:
        """Return whether the value of a hash is within the bounds of a unit."""
        if unit not in self._bounds:
            # Those of a row group of the file of units are read together.
            found = self._segment.read_units(
                "has_bounds", "low", "high", only=lambda rows: unit in rows
            )
            self._bounds.update(
                (number, (has_bounds, low, high)) for number, has_bounds, low, high in found
            )
        return place in self._places_within(*self._bounds[unit]) or place >= len(
            self._question.row.keys
        )

    def _places_within(self, has_bounds: int, low: bytes, high: bytes) -> range:
        keys, column = self._question.row.keys, self._group.column
        ends = (key_of(column, low), key_of(column, high)) if has_bounds else (None, None)
        return (
            range(len(keys)) if None in ends else self._question.candidates(Bounds(*ends)).ordered
        )

    def _query_many(self, by_block: Sequence[tuple[int, list[int]]]) -> None:
        """Do the same by arrays, for hashes in thousands of blocks. It ends when no unit is left
        that a further hash could mark."""
        import numpy as np

        group, hashes, ordered = (
            self._group,
            self._question.row.hashes,
            len(self._question.row.keys),
        )
        stop = group.first + group.units
        found = self._segment.read_units(
            "has_bounds",
            "low",
            "high",
            only=lambda rows: rows.start < stop and group.first < rows.stop,
        )
        spans = [
            self._places_within(*bounds)
            for number, *bounds in found
            if group.first <= number < stop
        ]
        first, end = (
            np.array([getattr(span, name) for span in spans]) for name in ("start", "stop")
        )
        is_open = (first < end) | (ordered < len(hashes))
        bases = [
            np.arange(count, dtype=np.uint64) * np.uint64(step >> 32) << np.uint64(32)
            for count, step in parts_of(group.units)
        ]
        for block, places_of in by_block:
            run = self._segment.run(group, block)
            for place in places_of:
                flags = np.frombuffer(b"".join(find_units(run, hashes[place], bases)), np.bool_)
                marked = np.flatnonzero(flags & is_open)
                marked = (
                    marked[(first[marked] <= place) & (place < end[marked])]
                    if place < ordered
                    else marked
                )
                is_open[marked] = False
                for unit in marked.tolist():
                    self._hits[group.first + unit] = 1
            if not is_open.any():
                return
