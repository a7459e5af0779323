"""Days and dates, each the other's inverse."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.gregorian import Date, date_of, days_of


@given(st.integers(-(10**9), 10**9))
def test_days_and_dates(days: int) -> None:
    assert days_of(date_of(days)) == days


@pytest.mark.parametrize(
    ("date", "days"),
    [(Date(1970, 1, 1), 0), (Date(1, 1, 1), -719162), (Date(2024, 2, 29), 19782), (Date(0, 2, 29), -719469), (Date(10000, 1, 1), 2932897)],
)
def test_known_dates(date: Date, days: int) -> None:
    assert days_of(date) == days


@pytest.mark.parametrize("date", [Date(2023, 2, 29), Date(2024, 0, 1), Date(2024, 13, 1), Date(2024, 4, 31), Date(2024, 1, 0)])
def test_no_such_date(date: Date) -> None:
    assert days_of(date) is None


@given(st.dates())
def test_the_standard_library_agrees_where_it_reaches(date: datetime.date) -> None:
    days = (date - datetime.date(1970, 1, 1)).days
    assert days_of(Date(date.year, date.month, date.day)) == days
    assert str(date_of(days)) == date.isoformat()


@pytest.mark.parametrize(
    ("date", "text"), [(Date(10000, 1, 2), "+10000-01-02"), (Date(-1, 12, 31), "-0001-12-31"), (Date(0, 1, 1), "0000-01-01")]
)
def test_years_beyond_four_digits_are_signed(date: Date, text: str) -> None:
    assert str(date) == text
