"""Building an index, and keeping it: new and changed files get a segment, and segments are merged
when there are many.

The order of the steps is in `target`: `current.json` is replaced as the last one.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom.filter import BLOCK_BYTES
from sbbf_tool.bloom.sizing import ensure_fpp
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.index.contents import CURRENT, Contents, IndexReport, SegmentEntry
from sbbf_tool.extensions.index.lake_index import (
    fingerprint_of,
    full_name_of,
    hash_of,
    identify,
    meaning_of,
    selection_of,
    version_of,
)
from sbbf_tool.extensions.index.segment import (
    BLOCKS,
    NO_CLASS,
    UNITS,
    UNKNOWN_ROWS,
    WHOLE_FILE,
    OpenSegment,
    Unit,
    UnitClass,
    write_blocks,
    write_units,
)
from sbbf_tool.extensions.index.target import IndexTarget
from sbbf_tool.extensions.index.units import FileUnits, IndexUnits
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.frozen import replace
from sbbf_tool.reports.plain import escape_bytes
from sbbf_tool.reports.rows import OK, ListedFile, Row
from sbbf_tool.running.file_times import wait_for_other_times
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.named_columns import lacks_columns, reason_of
from sbbf_tool.running.work import Work
from sbbf_tool.storage import places
from sbbf_tool.storage.spool import Spool
from sbbf_tool.storage.whole import write_whole
from sbbf_tool.verbs.verb import as_name

if TYPE_CHECKING:
    from sbbf_tool.running.selection import Selection

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
    Carry = Callable[[IndexUnits, Selection], Iterator[Row[FileUnits]]]

MOST_SEGMENTS = 16
"""Number of segments that an update leaves; beyond it they are merged into one."""
_TILE_BYTES = 64 << 20
"""Bytes of blocks in memory at once."""
_MOST_LINES = 20
_MAPPED = "the table finds the columns of the file by a mapping of its own"
_NO_VERSION = "the listing states no version of the file (a strong ETag), so it shows no change"
_TypeAndBlocks = tuple[str, int]


def begin_index(
    paths: Paths,
    column: str,
    index: str,
    where: str | None,
    fpp: float | None,
    false_files: float | None,
) -> IndexTarget:
    """Return a new index, of which nothing is written yet. Raises UsageError, and RefusedError if
    it exists."""
    if fpp is not None:
        ensure_fpp(fpp)
    if false_files is not None and (fpp is not None or not false_files > 0):
        raise UsageError("an index has a false-positive rate, or a number of false files above 0")
    names = tuple(map(os.fsdecode, as_iterable(paths)))
    lake = tuple(map(full_name_of, names))
    return IndexTarget(os.fspath(index), Contents(lake, as_name(column), where, fpp, names=names))


def build_index(
    paths: Paths,
    column: str,
    index: str,
    *,
    where: str | None = None,
    fpp: float | None = None,
    false_files: float | None = None,
    dry_run: bool = False,
    **run: Any,
) -> IndexReport:
    """Index a column of all files of these paths, or of a table, in the new folder `index`, whose
    name ends with `.sbbfx`.

    `where` selects partitions, and `fpp` is the highest FPP of a file; `false_files`, the number of
    files that a value leaves besides those that have it, chooses it. The other options are `jobs`,
    `on`, `keys` and `max_page_bytes` of `sbbf_tool.run`. Raises SbbfError.
    """
    target = begin_index(paths, column, index, where, fpp, false_files)
    return _run(target, run, false_files=false_files, dry_run=dry_run)


def update_index(
    index: str, *, compact: bool = False, dry_run: bool = False, **run: Any
) -> IndexReport:
    """Index the files that are new or have changed since; with `compact`, merge all segments. See
    `build_index` for other options."""
    return _run(IndexTarget(os.fspath(index)), run, compact=compact, dry_run=dry_run)


def _run(target: IndexTarget, options: Mapping[str, Any], **request: Any) -> IndexReport:
    options = dict(options)
    runner = options.pop("on", None) or LocalRunner(options.pop("jobs", None))

    def carry(verb: IndexUnits, selection: Selection) -> Iterator[Row[FileUnits]]:
        with runner:
            yield from runner.run(selection, Work(verb, **options))

    with target:
        return index_files(target, selection_of(target.before), carry, **request)


def index_files(
    target: IndexTarget,
    selection: Selection,
    carry: Carry,
    *,
    false_files: float | None = None,
    compact: bool = False,
    dry_run: bool = False,
) -> IndexReport:
    """Index the new and changed files of a selection; `carry` runs the verb over files. Raises
    SbbfError.

    `false_files` is the number of files per key that the index is to leave besides those that have
    it; it chooses the FPP.
    """
    if not dry_run:
        target.begin()
    before = target.before
    lake = _Lake(selection)
    listed, fingerprints = lake.files, lake.fingerprints
    if not listed and selection.where is not None:
        raise UnreadableError("no file is in the partitions that are selected")
    table = selection.table
    meaning = meaning_of(table, before.column)
    # When the table gives the name to another column, no unit is of use.
    is_known = target.is_new or meaning == before.meaning
    segments, known, gone = _mark_dead(target, lake if is_known else None)
    new = [
        file
        for file in listed
        if fingerprints[file.path] not in known and file.path not in lake.unread
    ]
    fpp = before.fpp if false_files is None else min(0.5, false_files / max(1, len(listed)))
    wait_for_other_times(new)
    counts, reasons = (
        Counter[str](new=0),
        dict[str, None](),
    )  # an empty one would keep truth values as they are
    errors: list[str] = []
    is_complete = True
    counts["doubtful"] += len(lake.unread)
    reasons.update(dict.fromkeys(lake.unread.values()))
    verb = IndexUnits(before.column, fpp, dry_run, CrossChecks())
    with closing(_Collected(target.folder)) as collected:
        for identity, file in lake.unread_by_identity.items():
            if identity not in known:
                collected.add_unread(file, identity)
        rows = carry(verb, selection.only(new)) if new else iter(())
        of_path = {file.path: file for file in new}
        useless: Row[FileUnits] | None = None
        for row in rows:
            report, is_useless = row.report, row.status != OK or lacks_columns(row)
            counts["useful"] += not is_useless
            useless = useless or (row if is_useless else None)
            if row.status == OK and report is not None:
                counts.update(new=1, doubtful=report.reason is not None)
                for name in ("filter_bytes", "data_bytes", "index_bytes"):
                    counts[name] += getattr(report, name)
                if report.reason is not None:
                    reasons[report.reason] = None
                file, fingerprint = of_path[row.path], fingerprints[row.path]
                if not dry_run and fingerprint is not None:
                    collected.add(file, report, fingerprint)
                elif not dry_run and lake.identify(file) not in known:
                    collected.add_unread(file, lake.identify(file))
            else:
                counts["failed"] += 1
                # A folder that cannot be listed, or read, stands in the listing instead of its
                # files.
                is_listed = fingerprints.get(row.path) is not None and not os.path.isdir(row.path)
                is_complete = is_complete and is_listed
                if is_listed and lake.identify(of_path[row.path]) not in known:
                    collected.add_unread(of_path[row.path], lake.identify(of_path[row.path]))
                errors.append(f"{row.path}: {row.reason}")
                del errors[_MOST_LINES:]
        if target.is_new and useless is not None and not counts["useful"]:
            if useless.status != OK:
                raise useless.to_error()
            raise UsageError(f"no file has the column: {reason_of(useless)}")
        if is_known and not is_complete:
            segments, gone = list(before.segments), 0
        if not dry_run:
            if collected.units:
                segments.append(
                    _write_segment(
                        target.folder, collected.classes(), collected.files, collected.false_files
                    )
                )
            if len(segments) > MOST_SEGMENTS or (
                compact and (len(segments) > 1 or any(each.dead for each in segments))
            ):
                segments = [_merge(target.folder, segments)]
            version = None if table is None else table.version
            after = replace(
                before, fpp=fpp, table_version=version, meaning=meaning, segments=tuple(segments)
            )
            if target.is_new or after != before:
                target.publish(after)
    size = sum(each.units_bytes + each.blocks_bytes for each in segments)
    return IndexReport(
        index=target.name,
        column=before.column,
        files=len(listed),
        new_files=counts["new"],
        vanished_files=gone,
        files_without_filter=counts["doubtful"],
        failed_files=counts["failed"],
        errors=tuple(errors),
        reasons=tuple(reasons)[:_MOST_LINES],
        units=sum(each.units for each in segments),
        classes=sum(len(each.classes) for each in segments),
        segments=len(segments),
        filter_bytes=counts["filter_bytes"],
        data_bytes=counts["data_bytes"],
        index_bytes=size + counts["index_bytes"] if dry_run else size,
        false_files=sum(each.false_files for each in segments),
        dry_run=dry_run,
    )


class _Lake:
    """The files of a lake, as they are listed now."""

    def __init__(self, selection: Selection) -> None:
        listing = list(selection.files())
        is_in_table = selection.table is not None
        self.skipped = [file for file in listing if file.skipped is not None]
        self.files = [identify(file) for file in listing if file.skipped is None]
        self.fingerprints = {
            file.path: fingerprint_of(file, is_in_table=is_in_table) for file in self.files
        }
        self.unread = dict[str, str]()
        """Why each file is not read that may hold any value, by path."""
        for file in self.files:
            if file.bytes is not None and self.fingerprints[file.path] is None:
                self.unread[file.path] = _NO_VERSION
        for live in selection.live_files() if is_in_table else ():
            if live.columns is not None and live.path in self.fingerprints:
                self.unread[live.path] = _MAPPED

    def identify(self, file: ListedFile) -> bytes:
        """Return the hash by which a unit is found that says nothing of its file."""
        return hash_of(file, file.skipped or "")

    @cached_property
    def unread_by_identity(self) -> dict[bytes, ListedFile]:
        """The files that are not read, and those that the listing skips."""
        unread = [file for file in self.files if file.path in self.unread]
        return {self.identify(file): file for file in (*unread, *self.skipped)}

    def list_hashes(self, stored: AbstractSet[bytes]) -> set[bytes]:
        """Return the hashes by which the units of these files are found, of which the index has
        those in `stored`."""
        hashes = set(self.unread_by_identity)
        for file in self.files:
            fingerprint = self.fingerprints[file.path]
            is_stored = fingerprint in stored and file.path not in self.unread
            # A file that could not be read before has a unit that says nothing of it.
            hashes.add(fingerprint if is_stored and fingerprint else self.identify(file))
        return hashes


def _mark_dead(
    target: IndexTarget, lake: _Lake | None
) -> tuple[list[SegmentEntry], set[bytes], int]:
    """Return the segments, with the units of files that are not in the lake as dead; the hashes by
    which the others are found, and the number of files that are gone. Without a lake, all are."""
    stored = list[list[tuple[bytes, bool, bool]]]()
    for entry in target.before.segments:
        with entry.open(target.folder) as segment:
            segment.ensure_whole()
            found = segment.read_units("fingerprint", "rows", "skipped")
            stored.append(
                [(each, count != UNKNOWN_ROWS, bool(skipped)) for _, each, count, skipped in found]
            )
    all_hashes = {fingerprint for rows in stored for fingerprint, _, _ in rows}
    listed = set[bytes]() if lake is None else lake.list_hashes(all_hashes)
    segments, gone = list[SegmentEntry](), set[bytes]()
    for entry, rows in zip(target.before.segments, stored, strict=True):
        dead, gone_files = bytearray(entry.units), set[bytes]()
        for unit, (fingerprint, is_read, is_skipped) in enumerate(rows):
            if fingerprint in listed:
                continue
            dead[unit] = 1
            if not (entry.dead_units and entry.dead_units[unit]):
                gone_files.update(() if is_skipped else (fingerprint,))
                gone.update((fingerprint,) if is_read else ())
        files = entry.files - len(gone_files)
        segments.append(replace(entry.with_dead(bytes(dead)), files=files))
    live = [each for each in segments if b"\0" in (each.dead_units or b"\0")]
    return live, all_hashes & listed, len(gone)


class _Collected:
    """The units of a new segment by class, in files without names."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._blocks: dict[_TypeAndBlocks, Spool] = {}
        self._rows: dict[_TypeAndBlocks | None, list[Unit]] = {}
        self.units = self.files = 0
        self.false_files = 0.0

    def close(self) -> None:
        for spool in self._blocks.values():
            spool.clear()

    def add(self, file: ListedFile, report: FileUnits, fingerprint: bytes | None = None) -> None:
        """Add the units of a file."""
        fingerprint = fingerprint_of(file) if fingerprint is None else fingerprint
        assert fingerprint is not None, "only files with a fingerprint are indexed"
        name = _describe(file, fingerprint)
        self.files += 1
        if report.reason is not None:
            self._add_open(_unit_row(*name, WHOLE_FILE, report.rows))
        for unit in report.units:
            key = report.type, len(unit.bitset) // BLOCK_BYTES
            if key not in self._blocks:
                self._blocks[key] = Spool(os.path.join(self._folder, CURRENT))
            self._blocks[key].append(unit.bitset)
            self._rows.setdefault(key, []).append(
                _unit_row(*name, unit.row_group, unit.rows, unit.low, unit.high, key[1])
            )
            self.units += 1
            self.false_files += unit.fpp

    def add_unread(self, file: ListedFile, identity: bytes) -> None:
        """Add a unit of a file that was not read and may hold any value, or that is skipped."""
        row = _unit_row(*_describe(file, identity), WHOLE_FILE, UNKNOWN_ROWS)
        self._add_open(row._replace(skipped=file.skipped or ""))
        self.files += file.skipped is None

    def _add_open(self, row: Unit) -> None:
        self._rows.setdefault(None, []).append(row)
        self.units += 1
        self.false_files += not row.skipped

    def classes(
        self,
    ) -> Iterator[tuple[_TypeAndBlocks | None, int, Iterator[Unit], Iterator[bytes]]]:
        """Yield each class with its number of units, the units, and the run of each block; last the
        units without filter, without key."""
        for key in sorted(self._blocks):
            rows = self._rows[key]
            yield key, len(rows), iter(rows), _transpose(self._blocks[key], len(rows), key[1])
        if rows := self._rows.get(None, []):
            yield None, len(rows), iter(rows), iter(())


def _describe(file: ListedFile, fingerprint: bytes) -> tuple[str, int, str, bytes]:
    path = file.path if places.is_url(file.path) else os.path.abspath(file.path)
    return escape_bytes(path), file.bytes or 0, version_of(file), fingerprint


def _unit_row(
    path: str,
    file_bytes: int,
    version: str,
    fingerprint: bytes,
    row_group: int,
    rows: int,
    low: bytes | None = None,
    high: bytes | None = None,
    blocks: int = 0,
) -> Unit:
    has_bounds = low is not None and high is not None
    return Unit(
        path,
        row_group,
        file_bytes,
        version,
        rows,
        int(has_bounds),
        low or b"",
        high or b"",
        blocks,
        NO_CLASS,
        0,
        fingerprint,
        "",
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
            starts = ((unit * blocks + first) * BLOCK_BYTES for unit in range(units))
            data = b"".join(spool.read(start, count * BLOCK_BYTES) for start in starts)
        tile = np.frombuffer(data, np.uint8).reshape(units, count, BLOCK_BYTES)
        for block in range(count):
            yield tile[:, block].tobytes()


def _write_segment(
    folder: str, classes: Iterator[Any], files: int, false_files: float
) -> SegmentEntry:
    """Write the two files of a segment."""
    name = f"_segment-{os.urandom(8).hex()}"
    found: list[tuple[_TypeAndBlocks, int, int]] = []
    first = 0
    with (
        write_whole(os.path.join(folder, name + BLOCKS), overwrite=False) as of_blocks,
        write_whole(os.path.join(folder, name + UNITS), overwrite=False) as of_units,
    ):
        # The runs of a class are written as its units are.
        parts: list[Iterator[Unit]] = []

        def each_class() -> Iterator[tuple[int, int, Iterator[bytes]]]:
            nonlocal first
            for key, count, units, runs in classes:
                number = NO_CLASS if key is None else len(found)
                parts.append(_numbered(units, number))
                if key is not None:
                    found.append((key, count, first))
                    yield key[1], count, runs
                first += count

        blocks_bytes, offsets = write_blocks(of_blocks, name, each_class())
        units_bytes = write_units(of_units, name, chain.from_iterable(parts))
    groups = tuple(
        UnitClass(json.loads(kind), blocks, count, offset, start)
        for ((kind, blocks), count, start), offset in zip(found, offsets, strict=True)
    )
    return SegmentEntry(name, first, groups, units_bytes, blocks_bytes, files, false_files)


def _numbered(units: Iterator[Unit], number: int) -> Iterator[Unit]:
    return (unit._replace(number=number, position=position) for position, unit in enumerate(units))


def _merge(folder: str, entries: Sequence[SegmentEntry]) -> SegmentEntry:
    """Merge segments into one, without their dead units. Memory holds one run of blocks."""
    with ExitStack() as stack:
        opened = [(stack.enter_context(entry.open(folder)), entry) for entry in entries]
        live = [(segment, entry.dead_units) for segment, entry in opened]
        false_files = sum(
            entry.false_files * (1 - sum(dead) / max(1, entry.units))
            for (_, dead), entry in zip(live, entries, strict=True)
        )
        files = sum(entry.files for entry in entries)
        return _write_segment(folder, _merged_classes(live), files, false_files)


def _merged_classes(segments: Sequence[tuple[OpenSegment, bytes]]) -> Iterator[Any]:
    parts: dict[_TypeAndBlocks, list[tuple[OpenSegment, UnitClass, list[int]]]] = {}
    others = []
    for segment, dead in segments:
        rest = 0
        for group in segment.classes:
            live = [at for at in range(group.units) if not (dead and dead[group.first + at])]
            if live:
                parts.setdefault((json.dumps(group.type, sort_keys=True), group.blocks), []).append(
                    (segment, group, live)
                )
            rest = group.first + group.units
        if kept := [unit for unit in range(rest, segment.units) if not (dead and dead[unit])]:
            others.append((segment, kept))
    for key in sorted(parts):
        rows = chain.from_iterable(
            _read_rows(segment, [group.first + at for at in live])
            for segment, group, live in parts[key]
        )
        yield (
            key,
            sum(len(live) for _, _, live in parts[key]),
            rows,
            _merged_runs(parts[key], key[1]),
        )
    if others:
        rows = chain.from_iterable(_read_rows(*each) for each in others)
        yield None, sum(len(kept) for _, kept in others), rows, iter(())


def _read_rows(segment: OpenSegment, wanted: Sequence[int]) -> Iterator[Unit]:
    of_wanted = set(wanted)
    for number, *values in segment.read_units(
        *Unit._fields, only=lambda rows: wanted[0] < rows.stop and wanted[-1] >= rows.start
    ):
        if number in of_wanted:
            yield Unit(*values)


def _merged_runs(
    parts: Sequence[tuple[OpenSegment, UnitClass, list[int]]], blocks: int
) -> Iterator[bytes]:
    for block in range(blocks):
        runs = []
        for segment, group, live in parts:
            run = segment.run(group, block)
            is_whole = len(live) == group.units
            runs.append(
                run
                if is_whole
                else b"".join(run[at * BLOCK_BYTES : (at + 1) * BLOCK_BYTES] for at in live)
            )
        yield b"".join(runs)
