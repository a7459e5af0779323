"""The contents of an index: `current.json`, which names its segments, and which each change
replaces in one step."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

from sbbf_tool.errors import MissingError, UnreadableError
from sbbf_tool.extensions.index.segment import (
    BLOCKS,
    UNITS,
    OpenSegment,
    UnitClass,
    damaged,
    rebuild_hint,
)
from sbbf_tool.frozen import Frozen, field, replace
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.plain import from_plain
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.storage import places

SUFFIX = ".sbbfx"
CURRENT = "current.json"
FORMAT = "sbbf-index"
VERSION = 2
_NAME = re.compile("_segment-[0-9a-f]{16}")
_FILE = re.compile(rf"{_NAME.pattern}(?:{re.escape(UNITS)}|{re.escape(BLOCKS)})")
_MOST_BYTES = 256 << 20


class SegmentEntry(Frozen):
    """What the index states of a segment."""

    name: str
    units: int
    classes: tuple[UnitClass, ...]
    units_bytes: int
    blocks_bytes: int
    files: int
    false_files: float
    """Expected number of files that a key is not in and that the units of this segment do not
    exclude."""
    dead: str = ""
    """The units of files that have changed or vanished since, as a bitmap in base64 after zlib;
    empty if there are none."""

    @cached_property
    def dead_units(self) -> bytes:
        """A byte for each unit, 1 for a dead one; empty if there are none. It takes memory for
        units that `OpenSegment` has found."""
        if not self.dead:
            return b""
        most = self.units // 8 + 1
        try:
            packed = zlib.decompressobj().decompress(b64decode(self.dead), most)
        except (TypeError, ValueError, zlib.error):
            raise damaged("it does not state which units are dead", self.name) from None
        number = int.from_bytes(packed, "little")
        digits = f"{number:0{self.units}b}"
        return bytes(map(int, reversed(digits)))[: self.units]

    def with_dead(self, dead: bytes) -> SegmentEntry:
        """Return the same segment with these dead units, a byte for each unit."""
        if not any(dead):
            return replace(self, dead="")
        digits = "".join("1" if flag else "0" for flag in reversed(dead))
        packed = int(digits, 2).to_bytes(self.units // 8 + 1, "little")
        return replace(self, dead=b64encode(zlib.compress(packed)).decode())

    def open(self, folder: str) -> OpenSegment:
        return OpenSegment(
            f"{folder}/{self.name}", self.units, self.classes, (self.units_bytes, self.blocks_bytes)
        )

    def ensure_valid(self) -> None:
        """Raise ValueError for contents that no index has."""
        numbers = [
            self.units,
            self.units_bytes,
            self.blocks_bytes,
            self.files,
            self.units - sum(group.units for group in self.classes),
        ]
        for group in self.classes:
            numbers += [
                group.blocks - 1,
                group.units - 1,
                group.offset,
                group.first,
                self.units - group.first - group.units,
            ]
        if any(number < 0 for number in numbers) or not _NAME.fullmatch(self.name):
            raise ValueError("a segment is not described as an index describes it")


class Contents(Frozen):
    """All that `current.json` states."""

    lake: tuple[str, ...]
    """Names of files, folders, globs and URLs, absolute; or the table."""
    column: str
    where: str | None = None
    """Predicate on the partitions whose files are indexed; a query opens the others."""
    fpp: float | None = None
    """FPP per file that was requested; None for that of the filters that the files have."""
    table_version: str | None = None
    """Version of the table that was indexed."""
    meaning: str | None = None
    """What the table means by the name of the column; see `identity.meaning_of`."""
    names: tuple[str, ...] = ()
    """The names of the lake as they were given, by which files are printed where they mean the
    same."""
    retired: tuple[str, ...] = ()
    """Files of former segments, which readers may still have open."""
    segments: tuple[SegmentEntry, ...] = field(default=())

    def ensure_valid(self) -> None:
        """Raise ValueError for contents that no index has."""
        rates = [self.fpp or 0.0]
        for entry in self.segments:
            entry.ensure_valid()
            rates.append(entry.false_files)
        if not self.lake or not all(0 <= rate < float("inf") for rate in rates):
            raise ValueError("there is no name of a lake, or a rate is no number")


class IndexReport(Tabular):
    """What building or updating an index did, or would do."""

    index: str
    column: str
    files: int
    """Files of the lake."""
    new_files: int
    """Files that were indexed, because they are new or have changed."""
    vanished_files: int
    """Files of the index that have changed or are no longer in the lake."""
    files_without_filter: int
    """Files that may hold any value, because nothing in them may exclude one."""
    failed_files: int
    """Files that could not be read, which are not in the index."""
    errors: tuple[str, ...]
    """The first of them, each with the reason."""
    reasons: tuple[str, ...]
    """Why files may hold any value, each reason once."""
    units: int
    classes: int
    segments: int
    filter_bytes: int
    """Bytes of filters that were read."""
    data_bytes: int
    """Bytes of column chunks that were read, in a dry run those that would be read."""
    index_bytes: int
    """Bytes of the index, in a dry run about those that are added."""
    false_files: float
    """Expected number of files that a value is not in, and that the index does not exclude."""
    dry_run: bool

    def _summary(self) -> str:
        return f"{self.index}: {format_count(self.files, 'file')}, {self.new_files:,} new"


def parse(data: bytes, name: str) -> Contents:
    """Read `current.json`. Raises UnreadableError."""
    try:
        document = json.loads(data)
        index = document["index"]
        if document["format"] != FORMAT or document["version"] != VERSION:
            version = document["version"]
            raise UnreadableError(
                f"this release reads version {VERSION} of {FORMAT}, and not {version!r}",
                file=name,
                hint=rebuild_hint(name),
            )
        if document["checksum"] != _checksum(index):
            raise ValueError("the checksum is that of another content")
        contents = from_plain(Contents, index)
        contents.ensure_valid()
        return contents
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise damaged(f"{type(error).__name__}: {error}", name) from None


def build(contents: Contents) -> bytes:
    """Build the bytes of `current.json`."""
    index = json.loads(json.dumps(asdict(contents)))
    document = {
        "format": FORMAT,
        "version": VERSION,
        "checksum": _checksum(index),
        "index": index,
    }
    return json.dumps(document).encode()


def _checksum(index: Any) -> str:
    data = json.dumps(index, sort_keys=True).encode()
    return f"{zlib.crc32(data):08x}"


def read(folder: str) -> Contents:
    """Read the contents of an index. Raises MissingError and UnreadableError."""
    name = f"{folder}/{CURRENT}"
    try:
        return parse(places.open_folders(folder).read(name, _MOST_BYTES), name)
    except FileNotFoundError:
        raise MissingError(
            "there is no index", file=folder, hint="build it with sbbf index"
        ) from None
    except OSError as error:
        raise UnreadableError(
            f"the index cannot be read: {error.strerror or error}", file=name
        ) from None


def is_file_name(name: str) -> bool:
    """Return whether the form of a name is that of a file of a segment."""
    return _FILE.fullmatch(name) is not None


def names_of(segments: Sequence[SegmentEntry]) -> set[str]:
    """Return the names of the files of these segments."""
    names = set[str]()
    for entry in segments:
        names |= {entry.name + UNITS, entry.name + BLOCKS}
    return names
