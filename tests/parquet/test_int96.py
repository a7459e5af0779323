"""The forms of an INT96 instant: what writers store, what is looked up, and what is inserted."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from sbbf_tool.parquet import equals, int96
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.literals import parse_object
from support.tables import each

DAY = 86_400 * 10**9
EPOCH = 2_440_588
INT96 = Column(0, ("at",), ("at",), "INT96", 0, None, 0, 0)

INSTANTS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-3 * DAY, 3 * DAY)
    | st.integers(-5, 5).map(lambda days: days * DAY)
)


def stored(day: int, nanos: int) -> bytes:
    return struct.pack("<qi", nanos, day)


def as_cpp_divides(instant: int) -> bytes:
    """What Arrow C++ up to 22.0 stores: quotient and remainder as C++ and Java have them."""
    days, nanos = abs(instant) // DAY, abs(instant) % DAY
    return stored(EPOCH + (-days if instant < 0 else days), -nanos if instant < 0 else nanos)


@given(INSTANTS)
def test_both_roundings_of_an_instant_are_looked_up(instant: int) -> None:
    forms = int96.forms_of(instant)
    assert set(forms) == {stored(EPOCH + instant // DAY, instant % DAY), as_cpp_divides(instant)}
    assert {int96.instant_of(form) for form in forms} == {instant}
    assert len(forms) == len(set(forms))


@given(
    st.lists(
        st.tuples(
            st.integers(EPOCH - 200_000, EPOCH + 200_000),
            st.integers(-(2**63), 2**63 - 1) | st.integers(-2 * DAY, 2 * DAY),
        )
    )
)
@example(
    [
        (EPOCH, DAY),
        (EPOCH + 1, 0),
        (EPOCH, 2 * DAY + 1),
        (EPOCH, -DAY),
        (EPOCH, -1),
        (EPOCH - 1, DAY - 1),
        (EPOCH - 2, 3 * DAY),
    ]
)
def test_many_values_get_the_forms_of_a_single_value(parts: list[tuple[int, int]]) -> None:
    plains = [stored(*part) for part in parts]
    beside = int96.forms_beside(memoryview(b"".join(plains)))
    expected = sorted(
        form
        for plain in plains
        for form in int96.forms_of(int96.instant_of(plain))
        if form != plain
    )
    assert sorted(beside[at : at + 12] for at in range(0, len(beside), 12)) == expected
    assert expected == sorted(form for plain in plains for form in int96.other_forms_of(plain))
    floored = int96.rounded_down(memoryview(b"".join(plains)))
    assert floored == b"".join(
        stored(EPOCH + int96.instant_of(plain) // DAY, int96.instant_of(plain) % DAY)
        for plain in plains
        if not 0 <= _nanos(plain) < DAY
    )


def _nanos(plain: bytes) -> int:
    return int(struct.unpack("<qi", plain)[0])


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
@example(-(2**31), -1)
def test_stored_bytes_are_looked_up_as_they_are_and_as_their_instant(day: int, nanos: int) -> None:
    plain = stored(day, nanos)
    literal = parse_object(INT96, plain)
    assert plain in literal.forms
    assert set(literal.forms) - {plain} == set(int96.other_forms_of(plain))


WRITERS = [
    ("parquet-cpp-arrow version 21.0.0", {}, True),
    ("parquet-cpp-arrow version 26.0.1", {}, True),
    ("parquet-cpp version 1.5.1-SNAPSHOT", {}, True),
    ("fastparquet-python version 2026.9.0 (build 0)", {}, True),
    ("impala version 4.1.0-RELEASE (build abc)", {}, True),
    ("parquet-mr-trino version 480 (build n/a)", {}, True),
    ("parquet-mr version 1.17.0 (build x)", {"org.apache.spark.version": "4.3.0"}, True),
    (
        "parquet-mr version 1.10.0 (build x)",
        {"org.apache.spark.sql.parquet.row.metadata": "{}"},
        True,
    ),
    ("parquet-mr version 1.11.1 (build x)", {"writer.date.proleptic": "false"}, True),
    ("parquet-mr version 1.17.0 (build x)", {}, False),
    ("parquet-mr version 1.17.0 (build x)", {"parquet.avro.schema": "{}"}, False),
    ("acme 1.0", {"org.apache.spark.version": "4.3.0"}, False),
    ("parquet-go version latest", {}, False),
    ("", {}, False),
    (None, {}, False),
]


@each("created_by, keys, is_known", WRITERS)
def test_writers_known_to_use_one_of_the_two_forms(
    fixtures: Path, created_by: str | None, keys: dict[str, str], is_known: bool
) -> None:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.idl.ttypes import KeyValue

    with ParquetFile.open(fixtures / "spark-int96.parquet") as file:
        footer: Footer = file.footer
        footer.metadata.created_by = created_by
        footer.metadata.key_value_metadata = [KeyValue(key, value) for key, value in keys.items()]
        writer = int96.unknown_writer(footer)
        assert (writer is None) == is_known
        assert writer is None or (created_by or "not stated") in writer
        assert equals.uncertainty(footer, footer.columns[1]) == writer
        assert equals.uncertainty(footer, footer.columns[0]) is None
    assert int96.unknown_writer(None)
