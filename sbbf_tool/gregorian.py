"""Dates as days since 1970-01-01, and days as dates, in the proleptic Gregorian calendar and for
any year (`datetime` stops at 1 and 9999).

The DATE type of Parquet counts days this way. Years start in March here, so that the leap day is
the last day of a year; 400 years have 146,097 days.
"""

from __future__ import annotations

from typing import NamedTuple

_DAYS_IN_ERA = 146_097
_EPOCH = 719_468  # days from 0000-03-01 to 1970-01-01


class Date(NamedTuple):
    year: int
    month: int
    day: int

    def __str__(self) -> str:
        """Format the date as ISO 8601 and Java do: years with more than four digits and years
        before 0 have a sign."""
        year_text = f"{self.year:04d}" if 0 <= self.year <= 9999 else f"{self.year:+05d}"
        return f"{year_text}-{self.month:02d}-{self.day:02d}"


def days_of(date: Date) -> int | None:
    """Return the days since 1970-01-01; None for a date that does not exist."""
    if not 1 <= date.month <= 12 or not 1 <= date.day <= 31:
        return None
    year = date.year - (date.month <= 2)
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((date.month + 9) % 12) + 2) // 5 + date.day - 1
    leap_days = year_of_era // 4 - year_of_era // 100
    days = era * _DAYS_IN_ERA + year_of_era * 365 + leap_days + day_of_year - _EPOCH
    if date_of(days) != date:  # such as 30 February
        return None
    return days


def date_of(days: int) -> Date:
    """Return the date that is `days` after 1970-01-01."""
    era, day = divmod(days + _EPOCH, _DAYS_IN_ERA)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= year * 365 + year // 4 - year // 100
    month = (5 * day + 2) // 153  # from 0 for March
    day_of_month = day - (153 * month + 2) // 5 + 1
    return Date(era * 400 + year + (month >= 10), (month + 2) % 12 + 1, day_of_month)
