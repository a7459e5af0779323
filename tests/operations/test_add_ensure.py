"""`add_filters` where filters exist: which satisfy the request, and which `ensure` rebuilds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sbbf_tool import UsageError, add_filters, verify
from sbbf_tool.reports.add import AddReport
from support.samples import filter_at, places, write_events
from support.tables import each


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_events(tmp_path / "events.parquet")


def kinds(report: AddReport) -> tuple[int, int, int, int, int]:
    return len(report.filters), report.skipped, report.weaker, report.too_large, report.broken


def spoil_header(path: Path, column: str) -> None:
    data = bytearray(path.read_bytes())
    for (_, name), place in places(path).items():
        if name == column:
            data[place.offset] ^= 0xFF
    path.write_bytes(data)


def make_empty(path: Path, column: str) -> None:
    """Unset all bits of a column's filters."""
    data = bytearray(path.read_bytes())
    for (_, name), place in places(path).items():
        if name == column:
            num_bytes = filter_at(path, place).num_bytes
            data[place.end - num_bytes : place.end] = bytes(num_bytes)
    path.write_bytes(data)


def test_filters_that_do_not_are_counted_and_stay(path: Path):
    add_filters(path, ["id"], fpp=0.3, in_place=True)
    add_filters(path, ["name"], ndv=100_000, in_place=True)
    add_filters(path, ["score", "point.x"], in_place=True)
    make_empty(path, "score")
    spoil_header(path, "point.x")
    before = path.read_bytes()
    columns = ["id", "name", "score", "point.x"]
    report = add_filters(path, columns, in_place=True)
    assert kinds(report) == (0, 12, 3, 3, 6)
    assert path.read_bytes() == before
    assert kinds(add_filters(path, columns, ndv=100_000, in_place=True)) == (0, 12, 3, 0, 6)


def test_ensure_rebuilds_exactly_those(path: Path):
    add_filters(path, ["id"], fpp=0.3, in_place=True)
    add_filters(path, ["name"], in_place=True)
    make_empty(path, "name")
    add_filters(path, ["score"], in_place=True)
    columns = ["id", "name", "score", "tags.list.element"]
    report = add_filters(path, columns, rebuild="weak", in_place=True)
    assert kinds(report) == (9, 3, 0, 0, 0)
    assert {row.column for row in report.filters} == {"id", "name", "tags.list.element"}
    assert verify(path).is_sound
    assert kinds(add_filters(path, columns, rebuild="weak", in_place=True)) == (0, 12, 0, 0, 0)


@each("fpp", [0.5, 1e-4, 1e-9])
@each("max_bytes", [None, 64, 100])
@each("ndv", [None, 3, 100_000])
def test_a_second_run_finds_nothing_to_do(path: Path, fpp: float, max_bytes: int | None, ndv: int | None):
    columns = ["id", "name", "score", "nothing", "tags.list.element"]
    add_filters(path, columns, fpp=fpp, max_bytes=max_bytes, ndv=ndv, in_place=True)
    assert kinds(add_filters(path, columns, fpp=fpp, max_bytes=max_bytes, ndv=ndv, rebuild="weak", in_place=True)) == (0, 15, 0, 0, 0)


def test_what_to_rebuild_is_weak_or_all(path: Path):
    with pytest.raises(UsageError, match="rebuild must be weak or all, not 'some'"):
        add_filters(path, ["id"], rebuild="some", in_place=True)
