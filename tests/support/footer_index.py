"""Footers read in both ways: chunks indexed by the compiled walker and parsed one by one, and
parsed as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import footer_structs
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.footer_structs import FooterStructs
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, ColumnMetaData, RowGroup
from sbbf_tool.parquet.splice import set_filters, walk_to_chunks

needs_walker = pytest.mark.skipif(
    not footer_structs.has_walker, reason="the extension _compact was not built"
)

INTEGERS_AND_TEXT = (6, 8, 10, 11)
"""Numbers of Thrift's `TType`."""
FIELDS = [
    spec[2] for cls in (ColumnChunk, ColumnMetaData) for spec in cls.thrift_spec if spec is not None
]
NUMBERS = [
    spec[2]
    for cls in (ColumnChunk, ColumnMetaData)
    for spec in cls.thrift_spec
    if spec is not None and spec[1] in INTEGERS_AND_TEXT and spec[2] != "encrypted_column_metadata"
]
TEXT = "file_path"


@contextmanager
def without_walker() -> Iterator[None]:
    before, footer_structs.has_walker = footer_structs.has_walker, False
    try:
        yield
    finally:
        footer_structs.has_walker = before


def assert_index_agrees(raw: bytes) -> bool:
    """Return whether the walker takes the footer. If it does, both ways must state the same; Footer
    must not depend on it in any case."""
    index = footer_structs.index_chunks(raw)
    if index is not None:
        structs, expected = FooterStructs(raw), FooterStructs(raw, whole=True)
        assert repr(structs.metadata) == repr(expected.metadata)
        assert_same_row_groups(structs, expected)
        keys = {
            (number, column)
            for number in range(expected.num_row_groups)
            for column in range(expected.num_chunks(number) or 0)
        }
        assert [(key, index.chunk_start(*key)) for key in sorted(keys)] == walk_to_chunks(raw, keys)
        assert index.chunk_start(expected.num_row_groups, 0) is index.chunk_start(-1, 0) is None
    with_index = describe_footer(raw)
    with without_walker():
        assert describe_footer(raw) == with_index
    return index is not None


def assert_same_row_groups(structs: FooterStructs, expected: FooterStructs) -> None:
    assert structs.num_row_groups == expected.num_row_groups
    assert not structs.has_encrypted_chunks
    assert not expected.has_encrypted_chunks
    for number in range(expected.num_row_groups):
        num_chunks = expected.num_chunks(number)
        assert structs.num_chunks(number) == num_chunks is not None
        assert _without_chunks(structs.row_group(number)) == _without_chunks(
            expected.row_group(number)
        )
        chunks = [repr(chunk) for chunk in expected.column_chunks(number)]
        assert [repr(chunk) for chunk in structs.column_chunks(number)] == chunks
        assert [
            repr(structs.column_chunk(number, column)) for column in range(num_chunks)
        ] == chunks
    for name in NUMBERS:
        if name != TEXT:
            assert [*structs.numbers(name)[0]] == [*expected.numbers(name)[0]], name
    assert [bool(length) for length in structs.numbers(TEXT)[0]] == [
        bool(length) for length in expected.numbers(TEXT)[0]
    ]
    for flags, expected_flags, name in zip(
        structs.numbers(*FIELDS, presence=True),
        expected.numbers(*FIELDS, presence=True),
        FIELDS,
        strict=True,
    ):
        # A generated class has 0 in place of a `file_offset` that is not stated.
        assert name == "file_offset" or [*flags] == [*expected_flags], name


def _without_chunks(row_group: RowGroup) -> dict[str, object]:
    return {name: value for name, value in vars(row_group).items() if name != "columns"}


def describe_footer(raw: bytes) -> object:
    """Return what a footer states about filters, and what it becomes when they are set; or why it
    is refused."""
    try:
        footer = Footer(raw, 4)
    except UnreadableError as error:
        return str(error)
    keys = [
        (number, column.index)
        for number in range(footer.num_row_groups)
        for column in footer.columns
    ][:8]
    facts = [
        footer.filter_places(),
        footer.recorded_chunks(),
        footer.has_locked_chunks(),
        footer.has_encrypted_chunks,
    ]
    try:
        return (
            *facts,
            footer.set_filters(dict.fromkeys(keys)),
            set_filters(raw, dict.fromkeys(keys)),
        )
    except UnreadableError as error:
        return *facts, str(error)


def footer_of(path: Path) -> bytes:
    """Return the bytes of a file's footer, encrypted or not; none if the file is not a Parquet
    file."""
    data = path.read_bytes()
    if data[-4:] not in (b"PAR1", b"PARE"):
        return b""
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
