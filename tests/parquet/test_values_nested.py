"""Leaves below lists, maps and structs: every non-null element, in order, whatever is null or empty
above it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sbbf_tool import add_filters, probe
from sbbf_tool.file.parquet_file import ParquetFile
from support.corpus_edits import bare_repeated, flatten_lists
from support.samples import stored
from support.tables import each

X = pa.field("x", pa.int32())
REQUIRED_X = pa.field("x", pa.int32(), nullable=False)
S = pa.string()


def required(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=False))


# Each leaf three groups down at least once.
SHAPES: list[pa.DataType] = [
    pa.list_(pa.int32()),
    required(pa.int32()),
    pa.list_(pa.list_(pa.list_(pa.int32()))),
    pa.struct([X]),
    pa.struct([REQUIRED_X]),
    pa.struct([pa.field("a", pa.struct([pa.field("b", pa.struct([REQUIRED_X]))]))]),
    pa.list_(pa.struct([X, pa.field("y", S)])),
    pa.list_(pa.struct([REQUIRED_X])),
    required(pa.struct([REQUIRED_X, pa.field("y", S, nullable=False)])),
    pa.map_(S, pa.int32()),
    pa.map_(S, pa.field("value", pa.int32(), nullable=False)),
    pa.map_(S, pa.list_(pa.struct([X]))),
    pa.struct([pa.field("a", pa.list_(pa.map_(S, pa.int32())))]),
    pa.list_(pa.map_(S, pa.struct([pa.field("a", pa.list_(S))]))),
    pa.list_(pa.int32(), 2),
    pa.large_list(pa.large_string()),
]


def values_of(kind: pa.DataType, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        value: st.SearchStrategy[Any] = st.fixed_dictionaries(
            {f.name: values_of(f.type, nullable=f.nullable) for f in kind}
        )
    elif pa.types.is_map(kind):
        entry = st.tuples(
            values_of(kind.key_type, nullable=False),
            values_of(kind.item_type, nullable=kind.item_field.nullable),
        )
        value = st.lists(entry, max_size=3)
    elif pa.types.is_fixed_size_list(kind):
        value = st.lists(
            values_of(kind.value_type), min_size=kind.list_size, max_size=kind.list_size
        )
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        value = st.lists(values_of(kind.value_type, nullable=kind.value_field.nullable), max_size=3)
    else:
        value = (
            st.integers(-5, 2**31 - 1) if pa.types.is_integer(kind) else st.text("abc", max_size=3)
        )
    return st.none() | value if nullable else value


def leaves(
    kind: pa.DataType, value: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Every non-null leaf of a value, with the path that it has when lists and maps leave out their
    scaffolding."""
    if value is None:
        return
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(field.type, value[field.name], (*path, field.name))
    elif pa.types.is_map(kind):
        for key, item in value:
            yield from leaves(kind.key_type, key, (*path, "key"))
            yield from leaves(kind.item_type, item, (*path, "value"))
    elif pa.types.is_nested(kind) or pa.types.is_fixed_size_list(
        kind
    ):  # before pyarrow 15, the second is no case of the first
        for element in value:
            yield from leaves(kind.value_type, element, path)
    else:
        yield path, struct.pack("<i", value) if isinstance(value, int) else value.encode()


def check(path: Path, kind: pa.DataType, rows: list[Any]) -> None:
    with ParquetFile.open(path) as file:
        columns = file.footer.columns
    for column in columns:
        expected = [
            plain
            for row in rows
            for where, plain in leaves(kind, row, ("v",))
            if where == column.short_path
        ]
        assert stored(path, column.name) == expected
        assert stored(path, ".".join(column.short_path)) == expected


@pytest.mark.slow
@settings(
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(SHAPES), st.data())
def test_any_nested_value(tmp_path: Path, kind: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(st.lists(values_of(kind), min_size=1, max_size=20))
    use_dictionary, version, group = (
        data.draw(st.booleans()),
        data.draw(st.sampled_from(["1.0", "2.0"])),
        data.draw(st.integers(1, 20)),
    )
    path = tmp_path / "f.parquet"
    table = pa.table({"v": pa.array(rows, kind)})

    pq.write_table(
        table,
        path,
        use_dictionary=use_dictionary,
        data_page_version=version,
        row_group_size=group,
        data_page_size=100,
    )

    check(path, kind, rows)


def test_an_empty_page_at_the_start_hides_no_value(tmp_path: Path) -> None:
    """pyarrow 26 writes such a page with a page size of one byte, reads no row of such a list, and
    reports no error."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"v": pa.array([[1]], pa.list_(pa.int32()))}), path, data_page_size=1)
    assert pq.read_table(path).num_rows == 0

    assert stored(path, "v") == [struct.pack("<i", 1)]
    # The value is in the dictionary, which is all that a filter of such a chunk is built from.
    add_filters(path, ["v"], output=tmp_path / "with_filters.parquet")
    assert not probe(tmp_path / "with_filters.parquet", "v", [1]).is_absent


def test_lists_of_two_levels(tmp_path: Path) -> None:
    """As parquet-avro, Thrift and Hive wrote them: the repeated thing is the element."""
    path = tmp_path / "f.parquet"
    rows = [[1, 2], None, [], [3]]
    pq.write_table(pa.table({"v": pa.array(rows, required(pa.int32()))}), path)
    flatten_lists(path)

    assert stored(path, "v.array") == [struct.pack("<i", n) for n in (1, 2, 3)]
    assert stored(path, "v") == stored(path, "v.array")


@each("use_dictionary", [True, False])
def test_a_repeated_leaf_without_any_list_around_it(tmp_path: Path, use_dictionary: bool) -> None:
    path = tmp_path / "f.parquet"
    schema = pa.schema([pa.field("v", required(pa.string()), nullable=False)])
    pq.write_table(
        pa.table([pa.array([["a", "b"], [], ["c"]], schema.field(0).type)], schema=schema),
        path,
        use_dictionary=use_dictionary,
    )
    bare_repeated(path)

    with ParquetFile.open(path) as file:
        (column,) = file.footer.columns
    assert (column.path, column.max_definition, column.max_repetition) == (("v",), 1, 1)
    assert stored(path) == [b"a", b"b", b"c"]
