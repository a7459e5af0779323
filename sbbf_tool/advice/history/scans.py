"""Scans of real queries: the values that they compared by = or IN, the files that they read, and how many bytes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sbbf_tool.advice.queries import Condition, Query
from sbbf_tool.parquet.columns import quote

_MOST_GROUPS, _MOST_SAMPLES, _MOST_LOCATIONS = 1000, 10, 5
_MOST_VALUES = 1000
"""More values of one condition than this are cut off; no filter excludes so many."""
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan of one query."""

    locations: tuple[str, ...]
    """Folders and files that it read; empty if the log does not say."""
    conditions: tuple[Condition, ...]
    """Conditions by = or IN, of which all must hold."""
    bytes_read: int | None
    is_file_size: bool = False
    """Whether these are all bytes of its files, as the log does not say how many the scan read."""


@dataclass
class Group:
    """The scans with conditions on the same columns."""

    columns: tuple[str, ...]
    scans: int = 0
    bytes_read: int = 0
    samples: list[Query] = field(default_factory=list)
    """Different queries among them, of which at most ten are kept."""


@dataclass
class History:
    """The scans of all logs that read the files, by the columns that they query."""

    logs: int = 0
    scans: int = 0
    """Scans of the files with a condition by = or IN."""
    scans_without: int = 0
    """Scans of the files without such a condition."""
    other_scans: int = 0
    """Scans of other files."""
    scans_by_file_size: int = 0
    """Scans whose bytes are all bytes of their files."""
    scans_without_bytes: int = 0
    """Scans whose bytes no log has."""
    skipped_lines: int = 0
    unreadable_logs: list[str] = field(default_factory=list)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    locations: Counter[str] = field(default_factory=Counter)
    """Some of the other files."""

    @property
    def queries(self) -> list[Query]:
        """The queries of all groups."""
        return [query for group in self.groups.values() for query in group.samples]

    def add(self, scan: Scan, places: Iterable[str]) -> None:
        """Add a scan; `places` are the files and folders for which the advice is."""
        if not any(_overlap(location, place) for location in map(_normalise, scan.locations) for place in places):
            self.other_scans += 1
            if len(self.locations) < _MOST_LOCATIONS:
                self.locations.update(scan.locations)
            return
        if not scan.conditions:
            self.scans_without += 1
            return
        self.scans += 1
        self.scans_by_file_size += scan.is_file_size
        self.scans_without_bytes += scan.bytes_read is None
        columns = tuple(sorted({condition.column for condition in scan.conditions}))
        if columns not in self.groups and len(self.groups) >= _MOST_GROUPS:
            return
        group = self.groups.setdefault(columns, Group(columns))
        group.scans += 1
        group.bytes_read += scan.bytes_read or 0
        if len(group.samples) < _MOST_SAMPLES:
            query = Query(_text_of(scan.conditions), scan.conditions, is_observed=True)
            if query not in group.samples:
                group.samples.append(query)


def places_of(names: Iterable[str]) -> list[str]:
    """Return the files and folders of the names that a user gave; a glob stands for the folder above its first wildcard."""
    places = []
    for name in names:
        wildcard = next((at for at, letter in enumerate(name) if letter in "*?["), None)
        if wildcard is not None and not os.path.lexists(name):
            name = name[:wildcard].rpartition("/")[0] or "."
        places.append(_normalise(name))
    return places


def condition_of(path: tuple[str, ...], values: Iterable[str]) -> Condition:
    """Return a condition on the column with this path."""
    return Condition(quote(path), tuple(values)[:_MOST_VALUES])


def _normalise(name: str) -> str:
    """Return an absolute path, or a URL with the scheme that this package uses, without a slash at the end."""
    scheme, colon, rest = name.partition(":")
    if colon and scheme == "file":
        return f"/{rest.lstrip('/')}".rstrip("/")
    if colon and rest.startswith("//"):
        return f"{_SCHEMES.get(scheme, scheme)}:{rest}".rstrip("/")
    return os.path.abspath(name)


def _overlap(location: str, place: str) -> bool:
    return location == place or location.startswith(f"{place}/") or place.startswith(f"{location}/")


def _text_of(conditions: Iterable[Condition]) -> str:
    return " AND ".join(_texts_of(conditions))


def _texts_of(conditions: Iterable[Condition]) -> Iterator[str]:
    for condition in conditions:
        values = [f"'{_shorten(value)}'" for value in condition.values[:_MOST_PRINTED]]
        more = ", ..." if len(condition.values) > _MOST_PRINTED else ""
        yield f"{condition.column} = {values[0]}" if len(condition.values) == 1 else f"{condition.column} IN ({', '.join(values)}{more})"


_MOST_PRINTED = 5


def _shorten(value: str) -> str:
    return value.replace("'", "''") if len(value) <= 60 else f"{value[:60]}..."
