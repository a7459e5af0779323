"""Dates, times of day, instants and durations in ISO 8601 notation, in exact integers
(LogicalTypes.md, "Temporal Types").

The standard library's `datetime` is limited to microseconds and to the years 1 to 9999; columns are
not.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
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
        if self.repeated is None:
            return (self.nanos,)
        return (self.nanos, self.repeated)

    def in_unit(self, unit: str) -> int | None:
        """Return the number of `unit`s; None if the time is finer than the unit."""
        if self.finer or self.nanos % UNIT_NANOS[unit]:
            return None
        return self.nanos // UNIT_NANOS[unit]


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
    if not match or _zone_seconds(match["zone"]) or not _is_utc(match["name"] or "UTC"):
        raise ValueError("not a time of day")
    nanos, finer = _time_of_day(match)
    if match["sign"]:
        nanos = -nanos
    return Instant(nanos, finer, _states_zone(match))


def parse_timestamp(text: str) -> Instant:
    """Parse a timestamp into nanoseconds since 1970-01-01T00:00 (UTC if it has a zone). A date
    alone means midnight. Raises ValueError."""
    match = re.fullmatch(_TIMESTAMP, text)
    if not match:
        raise ValueError("not a timestamp")
    time_of_day = 0
    finer = False
    if match["hour"]:
        time_of_day, finer = _time_of_day(match)
    if time_of_day + finer > NANOS_PER_DAY:
        raise ValueError("not a time of day")
    local = _days(match) * NANOS_PER_DAY + time_of_day
    zone_name = match["name"]
    if zone_name and not match["zone"] and not _is_utc(zone_name):
        return _instant_in_zone(local, finer, zone_name)
    nanos = local - _zone_seconds(match["zone"]) * NANOS_PER_SECOND
    return Instant(nanos, finer, _states_zone(match))


def _is_utc(zone_name: str) -> bool:
    return zone_name.upper() in _UTC


def _states_zone(match: re.Match[str]) -> bool:
    return bool(match["zone"] or match["name"])


def parse_duration(text: str) -> tuple[int, int, int] | None:
    """Parse a duration into months, days and milliseconds; None if it is finer than a millisecond.
    Raises ValueError."""
    match = re.fullmatch(_DURATION, text)
    if not match or text.endswith(("P", "T")):
        raise ValueError("not a duration")
    parts = match.groupdict(default="0")
    months = int(parts["years"]) * 12 + int(parts["months"])
    days = int(parts["weeks"]) * 7 + int(parts["days"])
    seconds = _seconds(int(parts["hours"]), int(parts["minutes"]), int(parts["seconds"]))
    millis_of_fraction, finer = _fraction(match, 3)
    if finer:
        return None
    return months, days, seconds * 1000 + millis_of_fraction


def format_date(days: int) -> str:
    return str(date_of(days))


def format_time(count: int, unit: str) -> str:
    """Format `count` units since midnight as HH:MM:SS with as many decimal digits as needed, also
    outside a day."""
    seconds, nanos = divmod(abs(count) * UNIT_NANOS[unit], NANOS_PER_SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours:02d}:{minutes:02d}:{seconds:02d}"
    if count < 0:
        text = f"-{text}"
    if nanos:
        text += f".{nanos:09d}".rstrip("0")
    return text


def format_timestamp(count: int, unit: str, *, utc: bool) -> str:
    days, nanos = divmod(count * UNIT_NANOS[unit], NANOS_PER_DAY)
    text = f"{format_date(days)}T{format_time(nanos, 'NANOS')}"
    return f"{text}Z" if utc else text


def format_duration(months: int, days: int, millis: int) -> str:
    seconds, millis = divmod(millis, 1000)
    return f"P{months}M{days}DT{seconds}.{millis:03d}S"


def _time_of_day(match: re.Match[str]) -> tuple[int, bool]:
    """Return the nanoseconds since midnight, and whether digits below a nanosecond remain."""
    hour = int(match["hour"])
    minute = int(match["minute"])
    second = int(match["second"] or 0)
    if minute > 59 or second > 59:
        raise ValueError("not a time of day")
    nanos_of_fraction, finer = _fraction(match, 9)
    return _seconds(hour, minute, second) * NANOS_PER_SECOND + nanos_of_fraction, finer


def _fraction(match: re.Match[str], num_digits: int) -> tuple[int, bool]:
    """Return the first digits of the fraction of a second as a number, and whether others that are
    not zero follow them."""
    digits = match["fraction"] or ""
    first_digits = digits[:num_digits].ljust(num_digits, "0")
    finer = bool(digits[num_digits:].strip("0"))
    return int(first_digits), finer


def _seconds(hours: int, minutes: int, seconds: int) -> int:
    return (hours * 60 + minutes) * 60 + seconds


def _zone_seconds(zone: str | None) -> int:
    if not zone or zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours = int(digits[:2])
    minutes = int(digits[2:4])
    seconds = int(digits[4:])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError("not a zone")
    offset = _seconds(hours, minutes, seconds)
    return -offset if zone.startswith("-") else offset


def _instant_in_zone(local: int, finer: bool, zone: str) -> Instant:
    """Return the instant of a local time, in nanoseconds, in a zone of the tz database. Raises as
    `_offsets`."""
    first, second = _offsets(zone, local)
    if first == second:
        return Instant(local - first, finer, zoned=True)
    return Instant(local - first, finer, zoned=True, repeated=local - second)


def _offsets(zone: str, local_nanos: int) -> tuple[int, int]:
    """Return the offsets in nanoseconds that a zone of the tz database has at a local time, which
    differ if clocks are set back then.

    Raises ValueError for an unknown zone, and OverflowError outside the years 1 to 9999.
    """
    from zoneinfo import ZoneInfo

    microsecond = timedelta(microseconds=1)
    try:
        epoch = datetime(1970, 1, 1, tzinfo=ZoneInfo(zone))
    except (KeyError, OSError):
        raise ValueError("not a zone") from None
    local = epoch + local_nanos // 1000 * microsecond
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return first // microsecond * 1000, second // microsecond * 1000


def _days(match: re.Match[str]) -> int:
    year = int(match["year"])
    if match["bc"]:
        year = 1 - year
    date = Date(year, int(match["month"]), int(match["day"]))
    days = days_of(date)
    if days is None:
        raise ValueError("not a day of the calendar")
    return days
