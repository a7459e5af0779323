"""The files of a lake when an index is built or updated, and the units of the index that are of
none of them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sbbf_tool.extensions.index.identity import fingerprint_of, hash_of, identify
from sbbf_tool.extensions.index.segment_pages import UNKNOWN_ROWS
from sbbf_tool.frozen import replace

if TYPE_CHECKING:
    from sbbf_tool.extensions.index.contents import SegmentEntry
    from sbbf_tool.extensions.index.target import IndexTarget
    from sbbf_tool.reports.rows import ListedFile
    from sbbf_tool.running.selection import Selection

_MAPPED = "the table finds the columns of the file by a mapping of its own"
_NO_VERSION = "the listing states no version of the file (a strong ETag), so it shows no change"


class ListedLake:
    """The files of a lake, as they are listed now."""

    def __init__(self, selection: Selection) -> None:
        is_in_table = selection.table is not None
        self.skipped: list[ListedFile] = []
        self.files: list[ListedFile] = []
        self.fingerprints: dict[str, bytes | None] = {}
        self.unread: dict[str, str] = {}
        """Why each file is not read that may hold any value, by path."""
        for listed in list(selection.files()):
            if listed.skipped is not None:
                self.skipped.append(listed)
                continue
            file = identify(listed)
            fingerprint = fingerprint_of(file, is_in_table=is_in_table)
            self.files.append(file)
            self.fingerprints[file.path] = fingerprint
            if file.bytes is not None and fingerprint is None:
                self.unread[file.path] = _NO_VERSION
        if is_in_table:
            for live in selection.live_files():
                if live.columns is not None and live.path in self.fingerprints:
                    self.unread[live.path] = _MAPPED

    def identify(self, file: ListedFile) -> bytes:
        """Return the hash by which a unit is found that says nothing of its file."""
        return hash_of(file, file.skipped or "")

    @cached_property
    def unread_by_identity(self) -> dict[bytes, ListedFile]:
        """The files that are not read, and those that the listing skips."""
        files = [file for file in self.files if file.path in self.unread]
        files += self.skipped
        return {self.identify(file): file for file in files}

    def list_new(self, known: AbstractSet[bytes]) -> list[ListedFile]:
        """Return the files to read: those that the index does not have under one of these
        hashes."""
        new = []
        for file in self.files:
            is_known = self.fingerprints[file.path] in known
            if not is_known and file.path not in self.unread:
                new.append(file)
        return new

    def list_hashes(self, stored: AbstractSet[bytes]) -> set[bytes]:
        """Return the hashes by which the units of these files are found, of which the index has
        those in `stored`."""
        hashes = set(self.unread_by_identity)
        for file in self.files:
            fingerprint = self.fingerprints[file.path]
            if fingerprint and fingerprint in stored and file.path not in self.unread:
                hashes.add(fingerprint)
            else:
                # A file that could not be read before has a unit that says nothing of it.
                hashes.add(self.identify(file))
        return hashes


class FormerUnits(NamedTuple):
    """What an update keeps of an index."""

    segments: list[SegmentEntry]
    """The segments that have live units, with the units of files that are not in the lake as
    dead."""
    known: set[bytes]
    """The hashes by which the units of the lake's files are found."""
    gone: int
    """Number of files that are gone."""


def mark_dead(target: IndexTarget, lake: ListedLake | None) -> FormerUnits:
    """Return the units of an index that are of files of the lake. Without a lake, all files are
    gone."""
    stored: list[list[tuple[Any, ...]]] = []
    for entry in target.before.segments:
        with entry.open(target.folder) as segment:
            segment.ensure_whole()
            stored.append(list(segment.read_units("fingerprint", "rows", "skipped")))
    all_hashes = set[bytes]()
    for units in stored:
        for _, fingerprint, _, _ in units:
            all_hashes.add(fingerprint)
    listed = set[bytes]()
    if lake is not None and all_hashes:
        listed = lake.list_hashes(all_hashes)
    segments: list[SegmentEntry] = []
    gone = set[bytes]()
    for entry, units in zip(target.before.segments, stored, strict=True):
        dead = bytearray(entry.units)
        dead_before = entry.dead_units or bytes(entry.units)
        gone_files = set[bytes]()
        for unit, fingerprint, rows, skipped in units:
            if fingerprint in listed:
                continue
            dead[unit] = 1
            if dead_before[unit]:
                continue
            if not skipped:
                gone_files.add(fingerprint)
            if rows != UNKNOWN_ROWS:
                gone.add(fingerprint)
        if not dead or 0 in dead:
            files = entry.files - len(gone_files)
            segments.append(replace(entry.with_dead(bytes(dead)), files=files))
    return FormerUnits(segments, all_hashes & listed, len(gone))
