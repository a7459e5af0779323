"""The index as a path: it stands for the files of its lake, and leaves out those that certainly
hold none of the values of a query.

It only leaves out: a file that remains is opened and judged as without an index. So do files that
are new, or that have changed since they were indexed, which the listing of the lake shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from hashlib import blake2b
from itertools import groupby, islice
from typing import TYPE_CHECKING

from sbbf_tool.bloom.spec import block_index
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.index import contents
from sbbf_tool.extensions.index.segment import (
    FINGERPRINT_BYTES,
    OpenSegment,
    UnitClass,
    damaged,
    find_units,
    parts_of,
)
from sbbf_tool.file.question import Question, values_of
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.parquet.statistics import Bounds, key_of
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.extensions.index.contents import Contents
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.table import Table
    from sbbf_tool.verbs.verb import Needs

_ONE = b"\1"
_FEW = 64
"""Number of hashes up to which numpy is not needed, and all runs of a class are fetched
concurrently."""


def version_of(file: ListedFile) -> str:
    """Return what changes with the content of a listed file."""
    return file.etag or (
        "" if file.modified is None else f"{file.modified!r} {file.change_time!r} {file.inode}"
    )


def fingerprint_of(file: ListedFile) -> bytes | None:
    """Return the hash by which a file of a listing is found in the index; None if its listing does
    not state its length."""
    if file.bytes is None:
        return None
    parts = (os.fsencode(file.path), str(file.bytes).encode(), version_of(file).encode())
    return blake2b(b"\0".join(parts), digest_size=FINGERPRINT_BYTES).digest()


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


class LakeIndex:
    """An index that is read; see `running.selection.Index`."""

    def __init__(self, folder: str) -> None:
        """Read the contents. Raises MissingError and UnreadableError."""
        self.name = self.folder = folder.rstrip("/")
        self.contents = contents.read(self.folder)
        self.paths = self.contents.lake
        self.excluded, self.lists = 0, True

    def narrow(
        self, files: Iterator[ListedFile], needs: Needs, table: Table | None
    ) -> Iterator[ListedFile]:
        """Leave out the files that certainly hold none of the values. The first one stays if no
        other does: its report is the answer."""
        is_meant = (
            needs.columns[:1] == (self.contents.column,)
            and meaning_of(table, self.contents.column) == self.contents.meaning
        )
        if not self.lists:
            if not is_meant:
                hint = "list the files, or update the index if the table has renamed the column"
                raise UsageError(
                    f"the index is of column {self.contents.column}", file=self.name, hint=hint
                )
            yield from self._find_known(needs)
            return
        self.excluded, first, is_empty = 0, None, True
        known = self.find_excluded(needs.values) if is_meant else frozenset()
        for file in files:
            if _is_among(file, known):
                first = first or file
                self.excluded += 1
            else:
                is_empty = False
                yield file
        if first is not None and is_empty:
            self.excluded -= 1
            yield first

    def _find_known(self, needs: Needs) -> Iterator[ListedFile]:
        """Yield the indexed files that may hold one of the values, without a listing; one file if
        there is none."""
        paths = list(self.find_paths(needs.values)) or list(islice(self._live_paths(), 1))
        self.excluded = sum(entry.files for entry in self.contents.segments) - len(paths)
        yield from map(ListedFile, paths)

    def _live_paths(self) -> Iterator[str]:
        """Yield the path of the first unit of each segment that is not dead."""
        for entry in self.contents.segments:
            with entry.open(self.folder) as segment:
                segment.ensure_whole()
                first = (entry.dead_units or b"\0").find(b"\0")
                units = segment.read_units("path", only=lambda rows, first=first: first in rows)  # type: ignore[misc]
                yield from (path for unit, path in units if unit == first)

    def find_excluded(self, values: Sequence[object]) -> set[bytes]:
        """Return the fingerprints of the files that hold none of the values. Raises UnreadableError
        for a damaged index."""
        all_files, kept = set[bytes](), set[bytes]()
        with ExitStack() as stack:
            for entry in self.contents.segments:
                segment = stack.enter_context(entry.open(self.folder))
                hits = find_hits(segment, values)
                for unit, fingerprint in segment.read_units("fingerprint"):
                    (kept if hits[unit] else all_files).add(fingerprint)
        return all_files - kept

    def find_paths(self, values: Sequence[object]) -> Iterator[str]:
        """Yield the paths of the indexed files that may hold one of the values, as far as the index
        knows them; each once."""
        seen = set[str]()
        for entry in self.contents.segments:
            with entry.open(self.folder) as segment:
                hits, dead = find_hits(segment, values), entry.dead_units
                for unit, path in segment.read_units(
                    "path", only=lambda rows, hits=hits: _ONE in hits[rows.start : rows.stop]
                ):  # type: ignore[misc]
                    if hits[unit] and not (dead and dead[unit]) and path not in seen:
                        seen.add(path)
                        yield path


def _is_among(file: ListedFile, known: AbstractSet[bytes]) -> bool:
    return bool(known) and file.skipped is None and fingerprint_of(identify(file)) in known


def prune_index(
    index: str | os.PathLike[str], values: Mapping[str, object], *, listing: bool = True
) -> list[str]:
    """Return the paths of the files of an index that may hold one of the values of its column, for
    pyarrow, Polars, pandas or DuckDB.

        pyarrow.dataset.dataset(prune_index("lake.sbbfx", {"user_id": [42, 43]})).to_table(filter=...)

    The lake is listed, and files are returned that are new or have changed since they were indexed;
    without `listing`, only the index is read, which knows nothing of them. Raises UsageError for
    another column, and UnreadableError for a damaged index.
    """
    lake_index = LakeIndex(os.fspath(index))
    column = lake_index.contents.column
    if set(values) != {column}:
        raise UsageError(
            f"the index is of column {column}, not of {', '.join(map(str, values)) or 'none'}",
            file=lake_index.name,
        )
    wanted = values_of(values[column])
    if not listing:
        return list(lake_index.find_paths(wanted))
    selection = selection_of(replace(lake_index.contents, where=None))
    is_meant = meaning_of(selection.table, column) == lake_index.contents.meaning
    known = lake_index.find_excluded(wanted) if is_meant else frozenset()
    return [
        file.path
        for file in selection.files()
        if file.skipped is None and not _is_among(file, known)
    ]


def selection_of(index: Contents) -> Selection:
    """Return the files of the lake that are indexed, as they are now."""
    from sbbf_tool.file.partitions import Predicate
    from sbbf_tool.running.selection import Selection, find_table

    where = None if index.where is None else Predicate(index.where)
    return Selection(
        index.lake, where, table=find_table(index.lake[0]) if len(index.lake) == 1 else None
    )


def find_hits(segment: OpenSegment, values: Sequence[object]) -> bytearray:
    """Return a byte for each unit of a segment: 0 if it certainly holds none of the values."""
    segment.ensure_whole()
    hits = bytearray(_ONE * segment.units)
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
    return hits


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
