"""Nothing is published that was not read back: wrong filters, bitsets, headers and footers are
detected before the file has its name.

The tests falsify one step of the work; the steps that check it stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sbbf_tool import SbbfError, add_filters, remove_filters
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.open_edit import OpenEdit
from sbbf_tool.parquet import patch
from sbbf_tool.storage import local
from sbbf_tool.storage.source import blocks_of
from sbbf_tool.verbs import remove_filter
from support.samples import listing, write_events
from support.tables import each


@pytest.fixture
def plain(tmp_path):
    return write_events(tmp_path / "events.parquet")


@pytest.fixture
def filtered(plain):
    """Two columns with filters, so that one can be removed and the other stay."""
    add_filters(plain, ["id", "name"], in_place=True)
    return plain


def assert_nothing_is_published(work: Callable[[], object], tmp_path, message: str) -> None:
    before = listing(tmp_path)
    with pytest.raises(SbbfError) as caught:
        work()
    assert message in str(caught.value)
    assert "nothing was changed" in str(caught.value)
    assert ".sbbf-tmp" not in str(caught.value), "a user knows nothing of temporary files"
    assert listing(tmp_path) == before


@each("target", ["in place", "elsewhere"])
@each("column", ["id", "name", "tags"])
def test_a_filter_that_lacks_values(plain, tmp_path, monkeypatch, column, target):
    def insert_half(self, hashes) -> None:
        for h in memoryview(hashes)[::2]:
            self.insert_hash(h)

    monkeypatch.setattr(BloomFilter, "insert_hashes", insert_half)
    ways = {"in_place": True} if target == "in place" else {"output": tmp_path / "out.parquet"}
    assert_nothing_is_published(
        lambda: add_filters(plain, [column], **ways), tmp_path, "are absent from the new filter"
    )


class Tampering:
    """Changes the bytes on their way to the disk: the piece of this number, by `change`."""

    def __init__(self, number: int, change: Callable[[bytes], bytes]) -> None:
        self.number, self.change = number, change
        self.calls = 0
        self.write = local.write_all

    def __call__(self, fd: int, data: bytes) -> None:
        self.write(fd, self.change(bytes(data)) if self.calls == self.number else data)
        self.calls += 1


def flip(at: int) -> Callable[[bytes], bytes]:
    return lambda data: (
        data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        if at >= 0
        else flip(len(data) + at)(data)
    )


# Pieces of a file with one filter in each of three row groups: header and bitset three times,
# footer, tail.
HEADER, BITSET, FOOTER, TAIL = 2, 3, 6, 7

LIES = {
    "a header that was damaged": (HEADER, flip(0), "cannot be read back"),
    "a header with another size": (HEADER, flip(2), "is not at its planned offset"),
    "a header with another hash": (
        HEADER,
        lambda data: data.replace(b"\x1c\x1c\0\0\x1c\x1c", b"\x1c\x1c\0\0\x1c\x2c"),
        "is not at its planned",
    ),
    "a bitset of zeros": (BITSET, lambda data: bytes(len(data)), "is not the one that was built"),
    "a bitset cut short": (BITSET, lambda data: data[:-1], "nothing was changed"),
    "a footer that was damaged": (FOOTER, flip(-40), "nothing was changed"),
    "a footer cut short": (FOOTER, lambda data: data[:-1], "nothing was changed"),
    "no footer": (FOOTER, lambda data: b"", "cannot be read back"),
    "no tail": (TAIL, lambda data: b"", "cannot be read back"),
    "another length of the footer": (TAIL, flip(0), "nothing was changed"),
    "another magic": (TAIL, flip(-1), "cannot be read back"),
}


@each("number, change, message", LIES)
def test_bytes_that_change_on_the_way_to_the_disk_are_detected(
    plain, tmp_path, monkeypatch, number, change, message
):
    tampering = Tampering(number, change)
    monkeypatch.setattr(local, "write_all", tampering)
    assert_nothing_is_published(
        lambda: add_filters(plain, ["id"], in_place=True), tmp_path, message
    )
    assert tampering.calls == 8


def lying_splice(raw: bytes, places, cipher=None, **options) -> bytes:
    """Sets the filters, and another byte of the footer."""
    spliced = splice(raw, places)
    return spliced.replace(b"parquet-cpp-arrow", b"parquet-cpp-harrow"[:17], 1)


splice = patch.set_filters


def test_a_footer_that_changed_elsewhere(plain, filtered, tmp_path, monkeypatch):
    monkeypatch.setattr(patch, "set_filters", lying_splice)
    assert_nothing_is_published(
        lambda: add_filters(plain, ["score"], in_place=True), tmp_path, "differs"
    )
    assert_nothing_is_published(
        lambda: remove_filters(filtered, ["id"], in_place=True), tmp_path, "differs"
    )


def test_two_filters_that_changed_places(plain, tmp_path, monkeypatch):
    """Each is a sound filter, of another row group."""

    def swapped(raw, places, cipher=None, **options):
        first, second = sorted(places)[:2]
        return splice(raw, {**places, first: places[second], second: places[first]})

    monkeypatch.setattr(patch, "set_filters", swapped)
    assert_nothing_is_published(
        lambda: add_filters(plain, ["id"], in_place=True), tmp_path, "is not at its planned offset"
    )


# Removing


def test_removing_too_much(filtered, tmp_path, monkeypatch):
    def all_of_them(raw, places, cipher=None, **options):
        return splice(raw, dict.fromkeys((n, column) for n in range(3) for column in (0, 1)))

    monkeypatch.setattr(patch, "set_filters", all_of_them)
    work = lambda: remove_filters(filtered, ["id"], in_place=True)  # noqa: E731
    assert_nothing_is_published(work, tmp_path, "nothing was changed")


@each("excess", [1, 8, 100])
def test_cutting_back_too_far(filtered, tmp_path, monkeypatch, excess):
    copy = local.copy
    monkeypatch.setattr(
        local,
        "copy",
        lambda source, fd, count, *, start: copy(source, fd, count - excess, start=start),
    )
    assert_nothing_is_published(
        lambda: remove_filters(filtered, in_place=True), tmp_path, "cannot be read back"
    )


def test_compacting_that_damages_a_filter_that_stays(filtered, tmp_path, monkeypatch):
    moved = remove_filter._plan_compaction

    def damage(*arguments):
        plan = moved(*arguments)
        pieces = list(map(bytes, blocks_of(plan.pieces)))
        pieces[0] = flip(-1)(pieces[0])
        return patch.Patch(plan.keep, tuple(pieces), plan.footer, plan.places)

    monkeypatch.setattr(remove_filter, "_plan_compaction", damage)
    work = lambda: remove_filters(filtered, ["id"], in_place=True, compact=True)  # noqa: E731
    assert_nothing_is_published(work, tmp_path, "a filter that should remain would change")


# A check that ends in an error of another kind


@each("error", [MemoryError(), KeyboardInterrupt(), RuntimeError("a bug")])
def test_an_error_in_the_comparison_publishes_nothing(plain, tmp_path, monkeypatch, error):
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(OpenEdit, "ensure_matches_plan", fail)
    before = listing(tmp_path)
    with pytest.raises(type(error)):
        add_filters(plain, ["id"], in_place=True)
    assert listing(tmp_path) == before
