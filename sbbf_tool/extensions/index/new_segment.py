"""New segments of an index: of units that a run has collected, or of former segments, merged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES
from sbbf_tool.extensions.index.contents import CURRENT, SegmentEntry
from sbbf_tool.extensions.index.identity import fingerprint_of, version_of
from sbbf_tool.extensions.index.segment import BLOCKS, UNITS, OpenSegment, UnitClass
from sbbf_tool.extensions.index.segment_pages import NO_CLASS, UNKNOWN_ROWS, WHOLE_FILE, Unit
from sbbf_tool.extensions.index.segment_writer import ClassBlocks, write_blocks, write_units
from sbbf_tool.reports.plain import escape_bytes
from sbbf_tool.storage import places
from sbbf_tool.storage.spool import Spool
from sbbf_tool.storage.whole import write_whole

if TYPE_CHECKING:
    from sbbf_tool.extensions.index.units import FileUnits
    from sbbf_tool.reports.rows import ListedFile

_TILE_BYTES = 64 << 20
"""Bytes of blocks in memory at once."""


class _TypeAndBlocks(NamedTuple):
    """What the units of a class have in common."""

    type: str
    """Type of the column as JSON."""
    blocks: int


class NewClass(NamedTuple):
    """A class of a new segment."""

    key: _TypeAndBlocks | None
    """None for units without filter, which are in no class."""
    size: int
    """Number of its units."""
    units: Iterable[Unit]
    runs: Iterable[bytes]
    """The run of each block."""


class Collected:
    """The units of a new segment by class, in files without names."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._blocks: dict[_TypeAndBlocks, Spool] = {}
        self._rows: dict[_TypeAndBlocks, list[Unit]] = {}
        self._open_rows: list[Unit] = []
        """The units without filter."""
        self.units = 0
        self.files = 0
        self.false_files = 0.0

    def close(self) -> None:
        for spool in self._blocks.values():
            spool.clear()

    def add(self, file: ListedFile, report: FileUnits, fingerprint: bytes | None = None) -> None:
        """Add the units of a file."""
        if fingerprint is None:
            fingerprint = fingerprint_of(file)
        assert fingerprint is not None, "only files with a fingerprint are indexed"
        row = _unit_of(file, fingerprint, report.rows)
        self.files += 1
        if report.reason is not None:
            self._add_open(row)
        for unit in report.units:
            key = _TypeAndBlocks(report.type, len(unit.bitset) // BLOCK_BYTES)
            if key not in self._blocks:
                self._blocks[key] = Spool(os.path.join(self._folder, CURRENT))
                self._rows[key] = []
            self._blocks[key].append(unit.bitset)
            has_bounds = unit.low is not None and unit.high is not None
            self._rows[key].append(
                row._replace(
                    row_group=unit.row_group,
                    rows=unit.rows,
                    has_bounds=int(has_bounds),
                    low=unit.low or b"",
                    high=unit.high or b"",
                    blocks=key.blocks,
                )
            )
            self.units += 1
            self.false_files += unit.fpp

    def add_unread(self, file: ListedFile, identity: bytes) -> None:
        """Add a unit of a file that was not read and may hold any value, or that is skipped."""
        row = _unit_of(file, identity, UNKNOWN_ROWS)
        self._add_open(row._replace(skipped=file.skipped or ""))
        self.files += file.skipped is None

    def _add_open(self, row: Unit) -> None:
        self._open_rows.append(row)
        self.units += 1
        self.false_files += not row.skipped

    def classes(self) -> Iterator[NewClass]:
        """Yield each class; last the units without filter, without key."""
        for key in sorted(self._blocks):
            rows = self._rows[key]
            runs = _transpose(self._blocks[key], len(rows), key.blocks)
            yield NewClass(key, len(rows), rows, runs)
        if self._open_rows:
            yield NewClass(None, len(self._open_rows), self._open_rows, ())


def _unit_of(file: ListedFile, fingerprint: bytes, rows: int) -> Unit:
    """Return the unit of a file without filter and bounds."""
    path = file.path if places.is_url(file.path) else os.path.abspath(file.path)
    return Unit(
        path=escape_bytes(path),
        row_group=WHOLE_FILE,
        file_bytes=file.bytes or 0,
        version=version_of(file),
        rows=rows,
        has_bounds=0,
        low=b"",
        high=b"",
        blocks=0,
        number=NO_CLASS,
        position=0,
        fingerprint=fingerprint,
        skipped="",
    )


def _transpose(spool: Spool, units: int, blocks: int) -> Iterator[bytes]:
    """Yield the run of each block of filters that lie one after the other."""
    import numpy as np

    at_once = max(1, _TILE_BYTES // (units * BLOCK_BYTES))
    for first in range(0, blocks, at_once):
        count = min(at_once, blocks - first)
        if count == blocks:
            data = spool.read(0, units * blocks * BLOCK_BYTES)
        else:
            parts = []
            for unit in range(units):
                start = (unit * blocks + first) * BLOCK_BYTES
                parts.append(spool.read(start, count * BLOCK_BYTES))
            data = b"".join(parts)
        tile = np.frombuffer(data, np.uint8).reshape(units, count, BLOCK_BYTES)
        for block in range(count):
            yield tile[:, block].tobytes()


class _WrittenClass(NamedTuple):
    key: _TypeAndBlocks
    units: int
    first: int
    """Position of its first unit in the file of units."""


def write_segment(
    folder: str, classes: Iterable[NewClass], files: int, false_files: float
) -> SegmentEntry:
    """Write the two files of a segment."""
    name = f"_segment-{os.urandom(8).hex()}"
    written: list[_WrittenClass] = []
    units: list[Iterator[Unit]] = []
    num_units = 0

    def list_blocks() -> Iterator[ClassBlocks]:
        # The runs of a class are written as its units are.
        nonlocal num_units
        for new in classes:
            number = NO_CLASS if new.key is None else len(written)
            units.append(_number_units(new.units, number))
            if new.key is not None:
                written.append(_WrittenClass(new.key, new.size, num_units))
                yield ClassBlocks(new.key.blocks, new.size, new.runs)
            num_units += new.size

    with (
        write_whole(os.path.join(folder, name + BLOCKS), overwrite=False) as of_blocks,
        write_whole(os.path.join(folder, name + UNITS), overwrite=False) as of_units,
    ):
        blocks_bytes, offsets = write_blocks(of_blocks, name, list_blocks())
        units_bytes = write_units(of_units, name, chain.from_iterable(units))
    groups = []
    for group, offset in zip(written, offsets, strict=True):
        kind = json.loads(group.key.type)
        groups.append(UnitClass(kind, group.key.blocks, group.units, offset, group.first))
    return SegmentEntry(
        name, num_units, tuple(groups), units_bytes, blocks_bytes, files, false_files
    )


def _number_units(units: Iterable[Unit], number: int) -> Iterator[Unit]:
    for position, unit in enumerate(units):
        yield unit._replace(number=number, position=position)


def merge_segments(folder: str, entries: Sequence[SegmentEntry]) -> SegmentEntry:
    """Merge segments into one, without their dead units. Memory holds one run of blocks."""
    files = sum(entry.files for entry in entries)
    false_files: list[float] = []
    segments: list[_LiveSegment] = []
    with ExitStack() as stack:
        for entry in entries:
            segment = stack.enter_context(entry.open(folder))
            segments.append(_LiveSegment(segment, entry.dead_units))
            dead_share = sum(entry.dead_units) / max(1, entry.units)
            false_files.append(entry.false_files * (1 - dead_share))
        return write_segment(folder, _merge_classes(segments), files, sum(false_files))


class _LiveSegment(NamedTuple):
    segment: OpenSegment
    dead_units: bytes

    def list_live(self, first: int, stop: int) -> list[int]:
        """Return the positions of the live units among these."""
        if not self.dead_units:
            return list(range(first, stop))
        return [unit for unit in range(first, stop) if not self.dead_units[unit]]


class _LivePart(NamedTuple):
    """The live units of a class of a segment."""

    segment: OpenSegment
    group: UnitClass
    live: list[int]

    def run(self, block: int) -> bytes | memoryview:
        """Return one block of these units."""
        run = self.segment.run(self.group, block)
        if len(self.live) == self.group.units:
            return run
        parts = []
        for unit in self.live:
            start = (unit - self.group.first) * BLOCK_BYTES
            parts.append(run[start : start + BLOCK_BYTES])
        return b"".join(parts)


def _merge_classes(segments: Sequence[_LiveSegment]) -> Iterator[NewClass]:
    """Yield each class with its units of all segments; last the units without filter."""
    parts_by_key: dict[_TypeAndBlocks, list[_LivePart]] = {}
    units_without_filter: list[Iterator[Unit]] = []
    num_without_filter = 0
    for live_segment in segments:
        segment = live_segment.segment
        stop = 0
        for group in segment.classes:
            stop = group.first + group.units
            live = live_segment.list_live(group.first, stop)
            if live:
                key = _TypeAndBlocks(json.dumps(group.type, sort_keys=True), group.blocks)
                parts_by_key.setdefault(key, []).append(_LivePart(segment, group, live))
        rest = live_segment.list_live(stop, segment.units)
        if rest:
            units_without_filter.append(_read_rows(segment, rest))
            num_without_filter += len(rest)
    for key in sorted(parts_by_key):
        units: list[Iterator[Unit]] = []
        num_units = 0
        for part in parts_by_key[key]:
            units.append(_read_rows(part.segment, part.live))
            num_units += len(part.live)
        runs = _merge_runs(parts_by_key[key], key.blocks)
        yield NewClass(key, num_units, chain.from_iterable(units), runs)
    if units_without_filter:
        units_at_end = chain.from_iterable(units_without_filter)
        yield NewClass(None, num_without_filter, units_at_end, ())


def _merge_runs(parts: Sequence[_LivePart], blocks: int) -> Iterator[bytes]:
    for block in range(blocks):
        yield b"".join([part.run(block) for part in parts])


def _read_rows(segment: OpenSegment, wanted: Sequence[int]) -> Iterator[Unit]:
    of_wanted = set(wanted)
    first = wanted[0]
    last = wanted[-1]
    rows = segment.read_units(
        *Unit._fields, only=lambda rows: first < rows.stop and last >= rows.start
    )
    for number, *values in rows:
        if number in of_wanted:
            yield Unit(*values)
