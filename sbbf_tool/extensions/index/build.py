"""Building an index, and keeping it: new and changed files get a segment, and segments are merged
when there are many.

Segments have names that were never used, and `current.json` is replaced as the last step: a reader
has the old index or the new one, and a process that is killed leaves files that nothing names. The
next change removes them when they are old, since a reader may have opened the old `current.json` a
moment ago.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom.filter import BLOCK_BYTES
from sbbf_tool.bloom.sizing import ensure_fpp
from sbbf_tool.display import redact
from sbbf_tool.errors import ChangedError, RefusedError, UnreadableError, UsageError
from sbbf_tool.extension import is_table_name
from sbbf_tool.extensions.index import contents
from sbbf_tool.extensions.index.contents import CURRENT, Contents, IndexReport, SegmentEntry
from sbbf_tool.extensions.index.lake_index import (
    fingerprint_of,
    identify,
    meaning_of,
    selection_of,
    version_of,
)
from sbbf_tool.extensions.index.segment import (
    BLOCKS,
    NO_CLASS,
    UNITS,
    WHOLE_FILE,
    OpenSegment,
    Unit,
    UnitClass,
    write_blocks,
    write_units,
)
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
from sbbf_tool.storage.system_calls import close, leads_to, lock, open_to_change
from sbbf_tool.storage.whole import ensure_own_link, write_whole
from sbbf_tool.verbs.verb import as_name

if TYPE_CHECKING:
    from sbbf_tool.running.selection import Selection

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
    Carry = Callable[[IndexUnits, Selection], Iterator[Row[FileUnits]]]

MOST_SEGMENTS = 16
"""Number of segments that an update leaves; beyond it they are merged into one."""
_TILE_BYTES = 64 << 20
"""Bytes of blocks in memory at once."""
_KEPT_SECONDS = 3600
_MOST_LINES = 20
_TypeAndBlocks = tuple[str, int]


class IndexTarget:
    """What an index is to be, or is: its folder, and what `current.json` states. Use as a context
    manager."""

    def __init__(self, folder: str, new: Contents | None = None) -> None:
        """Take what a new index is to state; without it the index exists, and is updated. Raises
        SbbfError."""
        if places.is_url(folder):
            raise RefusedError(
                "an index is written on this machine",
                file=folder,
                hint="write it to a folder, and copy that to the store",
            )
        self.name, self.folder = folder, places.absolute(folder).rstrip("/")
        self.current = os.path.join(self.folder, CURRENT)
        self.is_new = new is not None
        if new is not None:
            if not self.folder.endswith(contents.SUFFIX):
                raise UsageError(f"the name of an index ends with {contents.SUFFIX}", file=folder)
            for name in new.lake:
                if redact(name) != name:
                    reason = (
                        "an index keeps the URL, and others could read its password or signature"
                    )
                    raise RefusedError(
                        reason, file=name, hint="give credentials as variables of the environment"
                    )
                if not places.is_url(name) and f"{self.folder}/".startswith(
                    f"{os.path.realpath(name).rstrip('/')}/"
                ):
                    raise UsageError(
                        f"the index would be among the files of {name}",
                        file=folder,
                        hint="name another folder",
                    )
            if os.path.lexists(self.current):
                raise RefusedError(
                    "the index exists",
                    file=folder,
                    hint="give it as the path to update it, or name another",
                )
            ensure_own_link(self.folder)
        self.before = contents.read(self.folder) if new is None else new
        self._stack = ExitStack()

    def __enter__(self) -> IndexTarget:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()
        if self.is_new:
            with suppress(OSError):
                os.rmdir(self.folder)  # if it is empty

    def begin(self) -> None:
        """Make the folder, or keep other processes from changing the index. Raises SbbfError."""
        try:
            if self.is_new:
                os.makedirs(self.folder, exist_ok=True)
                return
            self._fd = open_to_change(self.current)
            self._stack.callback(close, self._fd)
            with suppress(OSError):
                lock(self._fd, self.folder, "updating")
        except OSError as error:
            what = f"cannot be {'created' if self.is_new else 'changed'}"
            raise RefusedError(
                f"the index {what}: {error.strerror or error}", file=self.folder
            ) from error
        self.before = contents.read(self.folder)
        self._ensure_own()

    def publish(self, after: Contents) -> None:
        """Replace `current.json`, and remove old files that it does not name."""
        if not self.is_new:
            self._ensure_own()
        for name in contents.names_of(self.before.segments) - contents.names_of(after.segments):
            with suppress(OSError):
                os.utime(
                    os.path.join(self.folder, name), follow_symlinks=False
                )  # the hour for readers that have it open begins now
        with write_whole(self.current, overwrite=not self.is_new) as stream:
            stream.write(contents.build(after))
        named = contents.names_of(after.segments)
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.startswith("_segment-") and name not in named:
                with suppress(OSError):
                    if time.time() - os.stat(path).st_mtime > _KEPT_SECONDS:
                        os.unlink(path)

    def _ensure_own(self) -> None:
        if not leads_to(self.current, self._fd):
            raise ChangedError(
                "another process has updated the index",
                file=self.folder,
                hint="run the command again",
            )


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
    names = (
        name if is_table_name(name) else places.absolute(name)
        for name in map(os.fsdecode, as_iterable(paths))
    )
    return IndexTarget(os.fspath(index), Contents(tuple(names), as_name(column), where, fpp))


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
    listed = [identify(file) for file in selection.files() if file.skipped is None]
    if not listed and selection.where is not None:
        raise UnreadableError("no file is in the partitions that are selected")
    fingerprints = {file.path: fingerprint_of(file) for file in listed}
    table = selection.table
    meaning = meaning_of(table, before.column)
    # When the table gives the name to another column, no unit is of use.
    is_known = target.is_new or meaning == before.meaning
    segments, known, gone = _mark_dead(
        target, set(filter(None, fingerprints.values())) if is_known else set()
    )
    mapped = (
        {live.path for live in selection.live_files() if live.columns is not None}
        if table is not None
        else set()
    )
    new = [
        file for file in listed if fingerprints[file.path] not in known and file.path not in mapped
    ]
    fpp = before.fpp if false_files is None else min(0.5, false_files / max(1, len(listed)))
    wait_for_other_times(new)
    counts, reasons = (
        Counter[str](new=0),
        dict[str, None](),
    )  # an empty one would keep truth values as they are
    errors: list[str] = []
    is_complete = True
    if mapped:
        counts["doubtful"] += len(mapped)
        reasons["the table finds the columns of the file by a mapping of its own"] = None
    verb = IndexUnits(before.column, fpp, dry_run, CrossChecks())
    with closing(_Collected(target.folder)) as collected:
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
                if not dry_run and fingerprints[row.path] is not None:
                    collected.add(of_path[row.path], report)
            else:
                counts["failed"] += 1
                # A folder that cannot be listed, or read, stands in the listing instead of its
                # files.
                is_complete = (
                    is_complete
                    and fingerprints.get(row.path) is not None
                    and not os.path.isdir(row.path)
                )
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


def _mark_dead(
    target: IndexTarget, listed: set[bytes]
) -> tuple[list[SegmentEntry], set[bytes], int]:
    """Return the segments, with the units of files that are not listed as dead; the files that they
    have, and how many are gone."""
    segments, known, gone = list[SegmentEntry](), set[bytes](), set[bytes]()
    for entry in target.before.segments:
        with entry.open(target.folder) as segment:
            segment.ensure_whole()
            dead, gone_before = bytearray(entry.units), len(gone)
            for unit, fingerprint in segment.read_units("fingerprint"):
                if fingerprint in listed:
                    known.add(fingerprint)
                else:
                    dead[unit] = 1
                    if not (entry.dead_units and entry.dead_units[unit]):
                        gone.add(fingerprint)
        segments.append(
            replace(entry.with_dead(bytes(dead)), files=entry.files - len(gone) + gone_before)
        )
    return [each for each in segments if b"\0" in (each.dead_units or b"\0")], known, len(gone)


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

    def add(self, file: ListedFile, report: FileUnits) -> None:
        """Add the units of a file."""
        fingerprint = fingerprint_of(file)
        assert fingerprint is not None, "only files with a fingerprint are indexed"
        name = (escape_bytes(file.path), file.bytes or 0, version_of(file), fingerprint)
        self.files += 1
        if report.reason is not None:
            self._rows.setdefault(None, []).append(_unit_row(*name, WHOLE_FILE, report.rows))
            self.units += 1
            self.false_files += 1
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
