"""Dates, times of day, instants and durations in ISO 8601 notation, in exact integers
(LogicalTypes.md, "Temporal Types").

The standard library's `datetime` is limited to microseconds and to the years 1 to 9999; columns are
not.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sbbf_tool.gregorian import Date, date_of, days_of

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_DAY = 86_400 * NANOS_PER_SECOND
UNIT_NANOS = {"MILLIS": 1_000_000, "MICROS": 1_000, "NANOS": 1}

_DATE = r"(?P<year>[+-]?\d{4,9})-(?P<month>\d\d)-(?P<day>\d\d)(?P<bc> \(BC\))?"
_TIME = r"(?P<hour>\d\d+):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
_ZONE = (
    r"(?: ?(?P<zone>[Zz]|[+-]\d\d(?::?\d\d(?::?\d\d)?)?))?(?: (?P<name>[A-Za-z][A-Za-z0-9_/+-]*))?"
)
"""An offset, the name of a zone, or both: BigQuery and Athena print `2026-01-31 03:03:00 UTC`,
Trino a name, Go `+0100 CET`."""
_DATE_ONLY = f"(?a){_DATE}"
_TIME_ONLY = f"(?a)(?P<sign>-)?{_TIME}{_ZONE}"
_UTC = ("UTC", "UT", "GMT", "Z")
_TIMESTAMP = f"(?a){_DATE}(?:[Tt ]{_TIME}{_ZONE})?"
_DURATION = (
    r"(?a)P(?:(?P<years>-?\d+)Y)?(?:(?P<months>-?\d+)M)?(?:(?P<weeks>-?\d+)W)?(?:(?P<days>-?\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:[.,](?P<fraction>\d+))?S)?)?"
)


class Instant(NamedTuple):
    """A parsed time: whole nanoseconds, whether digits below a nanosecond remain, and whether a
    zone was stated."""

    nanos: int
    finer: bool
    zoned: bool
    repeated: int | None = None
    """The nanoseconds of the second instant with this text, if the clocks of the zone were set back
    then."""

    @property
    def each(self) -> tuple[int, ...]:
        """The nanoseconds of each instant that the text may mean."""
        return (self.nanos,) if self.repeated is None else (self.nanos, self.repeated)

    def in_unit(self, unit: str) -> int | None:
        """Return the number of `unit`s; None if the time is finer than the unit."""
        count, rest = divmod(self.nanos, UNIT_NANOS[unit])
        return None if rest or self.finer else count


def parse_date(text: str) -> int:
    """Parse a date into days since 1970-01-01 in the proleptic Gregorian calendar. Raises
    ValueError."""
    match = re.fullmatch(_DATE_ONLY, text)
    if not match:
        raise ValueError("not a date")
    return _days(match)


def parse_time(text: str) -> Instant:
    """Parse a time of day into nanoseconds since midnight. Raises ValueError, also for zones except
    UTC.

    A time before midnight, or after the end of the day at 24:00, is one that a writer may have
    stored.
    """
    match = re.fullmatch(_TIME_ONLY, text)
    if not match or _zone_seconds(match["zone"]) or (match["name"] or "UTC").upper() not in _UTC:
        raise ValueError("not a time of day")
    nanos, finer = _time_of_day(match)
    return Instant(-nanos if match["sign"] else nanos, finer, bool(match["zone"] or match["name"]))


def parse_timestamp(text: str) -> Instant:
    """Parse a timestamp into nanoseconds since 1970-01-01T00:00 (UTC if it has a zone). A date
    alone means midnight. Raises ValueError."""
    match = re.fullmatch(_TIMESTAMP, text)
    if not match:
        raise ValueError("not a timestamp")
    nanos, finer = _time_of_day(match) if match["hour"] else (0, False)
    if nanos + finer > NANOS_PER_DAY:
        raise ValueError("not a time of day")
    nanos += _days(match) * NANOS_PER_DAY - _zone_seconds(match["zone"]) * NANOS_PER_SECOND
    if match["name"] and not match["zone"] and match["name"].upper() not in _UTC:
        first, second = _offsets(match["name"], nanos)
        return Instant(nanos - first, finer, True, None if first == second else nanos - second)
    return Instant(nanos, finer, bool(match["zone"] or match["name"]))


def parse_duration(text: str) -> tuple[int, int, int] | None:
    """Parse a duration into months, days and milliseconds; None if it is finer than a millisecond.
    Raises ValueError."""
    match = re.fullmatch(_DURATION, text)
    if not match or text.endswith(("P", "T")):
        raise ValueError("not a duration")
    part = {
        name: int(digits or 0) for name, digits in match.groupdict().items() if name != "fraction"
    }
    fraction = match["fraction"] or ""
    millis = ((part["hours"] * 60 + part["minutes"]) * 60 + part["seconds"]) * 1000 + int(
        fraction[:3].ljust(3, "0")
    )
    if fraction[3:].strip("0"):
        return None
    return part["years"] * 12 + part["months"], part["weeks"] * 7 + part["days"], millis


def format_date(days: int) -> str:
    return str(date_of(days))


def format_time(count: int, unit: str) -> str:
    """Format `count` units since midnight as HH:MM:SS with as many decimal digits as needed, also
    outside a day."""
    seconds, nanos = divmod(abs(count) * UNIT_NANOS[unit], NANOS_PER_SECOND)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if count < 0 else ""
    return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def format_timestamp(count: int, unit: str, *, utc: bool) -> str:
    days, nanos = divmod(count * UNIT_NANOS[unit], NANOS_PER_DAY)
    return f"{format_date(days)}T{format_time(nanos, 'NANOS')}{'Z' if utc else ''}"


def format_duration(months: int, days: int, millis: int) -> str:
    return f"P{months}M{days}DT{millis // 1000}.{millis % 1000:03d}S"


def _time_of_day(match: re.Match[str]) -> tuple[int, bool]:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    fraction = match["fraction"] or ""
    nanos = ((hour * 60 + minute) * 60 + second) * NANOS_PER_SECOND + int(
        fraction[:9].ljust(9, "0")
    )
    finer = bool(fraction[9:].strip("0"))
    if minute > 59 or second > 59:
        raise ValueError("not a time of day")
    return nanos, finer


def _zone_seconds(zone: str | None) -> int:
    if not zone or zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError("not a zone")
    return ((hours * 60 + minutes) * 60 + seconds) * (-1 if zone[0] == "-" else 1)


def _offsets(zone: str, local_nanos: int) -> tuple[int, int]:
    """Return the offsets in nanoseconds that a zone of the tz database has at a local time, which
    differ if clocks are set back then.

    Raises ValueError for an unknown zone, and OverflowError outside the years 1 to 9999.
    """
    from datetime import datetime, timedelta
    from zoneinfo import ZoneInfo

    try:
        local = datetime(1970, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(
            microseconds=local_nanos // 1000
        )
    except (KeyError, OSError):
        raise ValueError("not a zone") from None
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return first // timedelta(microseconds=1) * 1000, second // timedelta(microseconds=1) * 1000


def _days(match: re.Match[str]) -> int:
    year = int(match["year"])
    days = days_of(Date(1 - year if match["bc"] else year, int(match["month"]), int(match["day"])))
    if days is None:
        raise ValueError("not a day of the calendar")
    return days
