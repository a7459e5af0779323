"""The index as a path: it stands for the files of its lake, and leaves out those that certainly hold none of the values of a query.

It only leaves out: a file that remains is opened and judged as without an index. So do files that are new, or that have changed since they
were indexed, which the listing of the lake shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sbbf_tool.bloom.filter import block_index
from sbbf_tool.extensions.index import contents
from sbbf_tool.extensions.index.segment import FINGERPRINT_BYTES, OpenSegment, UnitClass, find_units
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.parquet.statistics import key_of
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.file.question import Question
    from sbbf_tool.verbs.verb import Needs

_ONE = b"\1"
_FETCHED = 64
"""Number of runs of a class up to which all are fetched concurrently."""


def version_of(file: ListedFile) -> str:
    """Return what changes with the content of a listed file."""
    return file.etag or ("" if file.modified is None else f"{file.modified!r} {file.change_time!r} {file.inode}")


def fingerprint_of(file: ListedFile) -> bytes | None:
    """Return the hash by which a file of a listing is found in the index; None if its listing does not state its length."""
    if file.bytes is None:
        return None
    parts = (os.fsencode(file.path), str(file.bytes).encode(), version_of(file).encode())
    return blake2b(b"\0".join(parts), digest_size=FINGERPRINT_BYTES).digest()


def identify(file: ListedFile) -> ListedFile:
    """Return a file of a listing with its times and its inode, which tables do not list."""
    if file.bytes is None or file.etag is not None or file.modified is not None or places.is_url(file.path):
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
        self.excluded = 0

    def narrow(self, files: Iterator[ListedFile], needs: Needs) -> Iterator[ListedFile]:
        """Leave out the files that certainly hold none of the values. The first one stays if no other does: its report is the answer."""
        self.excluded, first, is_empty = 0, None, True
        known = self.find_excluded(needs.values) if needs.columns[:1] == (self.contents.column,) else frozenset()
        for file in files:
            if known and file.skipped is None and fingerprint_of(identify(file)) in known:
                first = first or file
                self.excluded += 1
            else:
                is_empty = False
                yield file
        if first is not None and is_empty:
            self.excluded -= 1
            yield first

    def find_excluded(self, values: Sequence[object]) -> set[bytes]:
        """Return the fingerprints of the files that hold none of the values. Raises UnreadableError for a damaged index."""
        all_files, kept = set[bytes](), set[bytes]()
        with ExitStack() as stack:
            for entry in self.contents.segments:
                segment = stack.enter_context(entry.open(self.folder))
                hits = find_hits(segment, values)
                for unit, fingerprint in segment.read_units("fingerprint"):
                    (kept if hits[unit] else all_files).add(fingerprint)
        return all_files - kept

    def find_paths(self, values: Sequence[object]) -> Iterator[str]:
        """Yield the paths of the indexed files that may hold one of the values, as far as the index knows them; each once."""
        seen = set[str]()
        for entry in self.contents.segments:
            with entry.open(self.folder) as segment:
                hits, dead = find_hits(segment, values), entry.dead_units
                for unit, path in segment.read_units("path", only=partial(_has_hits, hits)):
                    if hits[unit] and not (dead and dead[unit]) and path not in seen:
                        seen.add(path)
                        yield path


def open_index(name: str) -> LakeIndex:
    """Open the index with this name."""
    return LakeIndex(name)


def _has_hits(hits: bytearray, rows: range) -> bool:
    return _ONE in hits[rows.start : rows.stop]


def find_hits(segment: OpenSegment, values: Sequence[object]) -> bytearray:
    """Return a byte for each unit of a segment: 0 if it certainly holds none of the values."""
    hits = bytearray(_ONE * segment.units)
    reuse, queries = Reuse(), []
    for group in segment.classes:
        question = reuse.question_of(group.column, values, is_strict=False)
        # What the column cannot be compared with, null and BOOLEAN are no matter of filters.
        if all(literal.verdict in (None, ABSENT) for literal in question.row.special.values()):
            hits[group.first : group.first + group.units] = bytes(group.units)
            queries.append((group, question, _by_block(question, group)))
    segment.expect((group, block) for group, _, by_block in queries if len(by_block) <= _FETCHED for block, _ in by_block)
    for group, question, by_block in queries:
        _UnitTest(segment, group, question, hits).query(by_block)
    return hits


def _by_block(question: Question, group: UnitClass) -> list[tuple[int, list[int]]]:
    """Return the places of the hashes of a question by the block that they select, in the order of the blocks."""
    hashes = question.row.hashes

    def block_of(place: int) -> int:
        return block_index(hashes[place], group.blocks)

    return [(block, list(places_of)) for block, places_of in groupby(sorted(range(len(hashes)), key=block_of), block_of)]


class _UnitTest:
    """The test of the units of one class for the hashes of a question."""

    def __init__(self, segment: OpenSegment, group: UnitClass, question: Question, hits: bytearray) -> None:
        self._segment, self._group, self._question, self._hits = segment, group, question, hits
        self._bounds: dict[int, tuple[Any, Any]] = {}

    def query(self, by_block: Iterable[tuple[int, list[int]]]) -> None:
        """Mark the units that may hold one of the values."""
        group, hits = self._group, self._hits
        open_units = group.units
        for block, places_of in by_block:
            run = self._segment.run(group, block)
            for place in places_of:
                start = group.first
                for flags in find_units(run, self._question.row.hashes[place]):
                    at = flags.find(_ONE)
                    while at >= 0:
                        if not hits[start + at] and self._is_within(start + at, place):
                            hits[start + at] = 1
                            open_units -= 1
                        at = flags.find(_ONE, at + 1)
                    start += len(flags)
                if not open_units:
                    return

    def _is_within(self, unit: int, place: int) -> bool:
        """Return whether the value of a hash is within the bounds of a unit."""
        keys = self._question.row.keys
        if place >= len(keys):
            return True
        if unit not in self._bounds:
            # Those of a row group of the file of units are read together.
            found = self._segment.read_units("has_bounds", "low", "high", only=lambda rows: unit in rows)
            for number, has_bounds, *plain in found:
                low, high = (key_of(self._group.column, each) for each in plain) if has_bounds else (None, None)
                self._bounds[number] = low, high
        low, high = self._bounds[unit]
        return low is None or high is None or bool(low <= keys[place] <= high)
