"""The container: its bytes, in both directions, and what is done to broken ones."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon import index_container
from sbbf_tool.extensions.paimon.index_container import Container, build_container, lay_out, parse_container

bodies = st.none() | st.binary(max_size=20)
contents = st.dictionaries(st.text(max_size=8), st.dictionaries(st.text(max_size=8), bodies, max_size=3), max_size=4)
SAMPLE = lay_out({"é": {"bloom-filter": b"\0\0\0\1\7", "bitmap": b"xyz"}, "m[\U0001f600]": {"bloom-filter": None}, "": {}})


@given(contents)
def test_containers_round_trip(indexes: dict[str, dict[str, bytes | None]]) -> None:
    container = lay_out(indexes)
    data = build_container(container)
    assert parse_container(data) == container
    assert container.size == len(data)
    assert container.indexes.keys() == indexes.keys()
    for column, kinds in indexes.items():
        for kind, body in kinds.items():
            entry = container.indexes[column][kind]
            assert entry.empty == (body is None)
            assert container.body_of(entry) == (body or b"")


def test_the_bytes_of_a_container() -> None:
    expected = (
        bytes.fromhex("00054e4ed01a35ae") + struct.pack(">iii", 1, 53, 1) + b"\0\1c" + struct.pack(">i", 1)
        + b"\0\x0cbloom-filter" + struct.pack(">ii", 53, 5) + struct.pack(">i", 0) + b"\0\0\0\1\7"
    )  # fmt: skip
    assert build_container(lay_out({"c": {"bloom-filter": b"\0\0\0\1\7"}})) == expected
    assert len(build_container(lay_out({}))) == 24


def test_redundant_bytes_are_kept_and_not_looked_at() -> None:
    plain = build_container(lay_out({"c": {"k": b"body"}}))
    head_length = struct.unpack_from(">i", plain, 12)[0]
    for tail in (struct.pack(">i", 3) + b"new", b"", b"\xff" * 9):
        head = plain[16 : head_length - 4]
        grown = head_length - 4 + len(tail)
        moved = head.replace(struct.pack(">ii", head_length, 4), struct.pack(">ii", grown, 4))
        data = plain[:12] + struct.pack(">i", grown) + moved + tail + b"body"
        container = parse_container(data)
        assert container.head_tail == tail
        assert container.body_of(container.indexes["c"]["k"]) == b"body"
        assert build_container(container) == data


def test_a_column_named_twice_adds_up_and_the_last_of_a_kind_counts() -> None:
    first, second = lay_out({"c": {"a": b"1", "b": b"2"}}).columns[0], lay_out({"c": {"b": b"3"}}).columns[0]
    head = 20 + 2 * (2 + 1 + 4) + 3 * (2 + 1 + 8) + 4
    indexes = tuple(type(index)(index.kind, head + at, 1) for at, index in enumerate(first.indexes + second.indexes))
    container = Container((type(first)("c", indexes[:2]), type(first)("c", indexes[2:])), b"123")
    again = parse_container(build_container(container))
    assert again == container
    assert {kind: again.body_of(entry) for kind, entry in again.indexes["c"].items()} == {"a": b"1", "b": b"3"}


PLAIN = lay_out({"c": {"bloom-filter": b"\0\0\0\1\7"}})


def test_what_is_unreadable() -> None:
    data = build_container(SAMPLE)
    for end in range(len(data)):
        with pytest.raises(UnreadableError) as caught:
            parse_container(data[:end])
        assert caught.value.place is not None
    for offset, value, message in (
        (0, 1, "magic"), (8, 2, "version"), (12, -1, "head"), (12, 10**6, "head"), (16, -1, "columns"), (16, 2**31 - 1, "columns"),
    ):  # fmt: skip
        damaged = bytearray(data)
        struct.pack_into(">i", damaged, offset, value)
        with pytest.raises(UnreadableError, match=message):
            parse_container(bytes(damaged))
    for start, length in ((-2, 0), (0, 1), (19, 1), (10**6, 1), (2**31 - 1, 2**31 - 1), (53, -1), (53, 6)):
        damaged = bytearray(build_container(PLAIN))
        struct.pack_into(">ii", damaged, 53 - 12, start, length)
        with pytest.raises(UnreadableError):
            parse_container(bytes(damaged))


@given(st.data())
def test_mutations_give_an_answer_or_are_unreadable(data: st.DataObject) -> None:
    mutant = bytearray(build_container(SAMPLE))
    for _ in range(data.draw(st.integers(1, 4))):
        mutant[data.draw(st.integers(0, len(mutant) - 1))] = data.draw(st.integers(0, 255))
    try:
        container = parse_container(bytes(mutant))
    except UnreadableError:
        return
    assert build_container(container) == bytes(mutant)
    for kinds in container.indexes.values():
        for entry in kinds.values():
            assert len(container.body_of(entry)) == (0 if entry.empty else entry.length)


def test_a_container_has_at_most_the_bytes_of_a_java_array(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        build_container(lay_out({"x" * 65536: {}}))
    assert index_container._MAX_SIZE == 2_147_483_647
    size = lay_out({"c": {"k": b"body"}}).size
    monkeypatch.setattr(index_container, "_MAX_SIZE", size)
    assert lay_out({"c": {"k": b"body"}}).size == size
    with pytest.raises(UsageError, match=f"would have {size + 1} bytes; the limit is {size}"):
        lay_out({"c": {"k": b"body+"}})
