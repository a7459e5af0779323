"""Names of columns in a table: renamed by field id or by path, with the scaffolding of lists and
maps; dropped columns stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import NoColumnError
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.parquet.idl.ttypes import ConvertedType, FieldRepetitionType, SchemaElement, Type

OPTIONAL, REPEATED = FieldRepetitionType.OPTIONAL, FieldRepetitionType.REPEATED


def leaf(name: str, field_id: int | None = None) -> SchemaElement:
    return SchemaElement(name=name, type=Type.INT32, repetition_type=OPTIONAL, field_id=field_id)


def group(
    name: str, children: list[list[SchemaElement]], repetition: int = OPTIONAL, **more: object
) -> list[SchemaElement]:
    element = SchemaElement(
        name=name, num_children=len(children), repetition_type=repetition, **more
    )
    return [element, *(each for child in children for each in child)]


def a_list(name: str, element: list[SchemaElement]) -> list[SchemaElement]:
    return group(name, [group("list", [element], REPEATED)], converted_type=ConvertedType.LIST)


def a_map(name: str, value: list[SchemaElement], key_id: int | None = None) -> list[SchemaElement]:
    return group(
        name,
        [group("key_value", [[leaf("key", key_id)], value], REPEATED)],
        converted_type=ConvertedType.MAP,
    )


def schema_of(*columns: list[SchemaElement]) -> list[SchemaElement]:
    return group("schema", list(columns))


def test_a_path_does_not_name_a_dropped_column_of_a_file_with_field_ids():
    """A column was dropped, and a column with the same name added: the values of the old one are
    not those of the new one."""
    names = ColumnNames({1: ("id",), 5: ("a",)}, {("id",): ("id",), ("a",): ("a",)})
    columns = names.leaf_columns(schema_of([leaf("id", 1)], [leaf("a", 2)]))
    assert [column.name for column in columns] == ["id", "a (dropped)"]
    with pytest.raises(NoColumnError):
        find_column(columns, "a")


def test_the_scaffolding_of_lists_and_maps_stays_in_the_path():
    names = ColumnNames(
        {1: ("labels",), 2: ("points", "px"), 3: ("m", "key"), 4: ("m", "value", "v")}
    )
    columns = names.leaf_columns(
        schema_of(
            a_list("tags", [leaf("element", 1)]),
            a_list("points", group("element", [[leaf("x", 2)]])),
            a_map("old", group("value", [[leaf("y", 4)]]), key_id=3),
        )
    )
    assert [column.name for column in columns] == [
        "labels.list.element",
        "points.list.element.px",
        "m.key_value.key",
        "m.key_value.value.v",
    ]
    assert [column.short_path for column in columns] == [
        ("labels",),
        ("points", "px"),
        ("m", "key"),
        ("m", "value", "v"),
    ]
    assert find_column(columns, "labels").index == 0
    assert find_column(columns, "m.value.v").index == 3


@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True),
    st.dictionaries(st.integers(1, 8), st.sampled_from("abcdefgh"), max_size=8),
    st.data(),
)
def test_names_are_unique_and_only_leaves_of_the_table_have_its_names(
    names: list[str], table: dict[int, str], data: st.DataObject
):
    ids = data.draw(
        st.lists(st.integers(1, 8), min_size=len(names), max_size=len(names), unique=True)
    )
    by_id = {
        number: (name,) for name, number in {name: number for number, name in table.items()}.items()
    }
    columns = ColumnNames(by_id).leaf_columns(
        schema_of(*([leaf(*pair)] for pair in zip(names, ids, strict=True)))
    )
    assert len({column.name for column in columns}) == len(names)
    for column, number in zip(columns, ids, strict=True):
        assert (
            (column.path == by_id.get(number))
            if number in by_id
            else (column.path not in by_id.values())
        )
