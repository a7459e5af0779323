"""Days and dates, each the other's inverse."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.gregorian import Date, date_of, days_of


@given(st.integers(-(10**9), 10**9))
def test_days_and_dates(days: int) -> None:
    assert days_of(date_of(days)) == days


def test_known_dates() -> None:
    known = {
        Date(1970, 1, 1): 0,
        Date(1, 1, 1): -719162,
        Date(2024, 2, 29): 19782,
        Date(0, 2, 29): -719469,
        Date(10000, 1, 1): 2932897,
    }
    assert {date: days_of(date) for date in known} == known
    none = [
        Date(2023, 2, 29),
        Date(2024, 0, 1),
        Date(2024, 13, 1),
        Date(2024, 4, 31),
        Date(2024, 1, 0),
    ]
    assert [days_of(date) for date in none] == [None] * 5
    signed = {
        Date(10000, 1, 2): "+10000-01-02",
        Date(-1, 12, 31): "-0001-12-31",
        Date(0, 1, 1): "0000-01-01",
    }
    assert {date: str(date) for date in signed} == signed


@given(st.dates())
def test_the_standard_library_agrees_where_it_reaches(date: datetime.date) -> None:
    days = (date - datetime.date(1970, 1, 1)).days
    assert days_of(Date(date.year, date.month, date.day)) == days
    assert str(date_of(days)) == date.isoformat()
