"""Leaf columns: how they are named, how a written name finds one, and which schemas are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.parquet.columns import Column, find_column, leaf_columns, quote, unquote
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    DecimalType,
    FieldRepetitionType,
    IntType,
    LogicalType,
    MicroSeconds,
    SchemaElement,
    StringType,
    TimestampType,
    TimeUnit,
    Type,
    UUIDType,
)
from support.tables import each

REQUIRED, OPTIONAL, REPEATED = (
    FieldRepetitionType.REQUIRED,
    FieldRepetitionType.OPTIONAL,
    FieldRepetitionType.REPEATED,
)


def leaf(
    name: str | None,
    repetition: int | None = OPTIONAL,
    *,
    type: int | None = Type.INT32,
    **more: object,
) -> SchemaElement:
    return SchemaElement(name=name, type=type, repetition_type=repetition, **more)


def group(
    name: str, children: int, repetition: int | None = OPTIONAL, **more: object
) -> SchemaElement:
    return SchemaElement(name=name, num_children=children, repetition_type=repetition, **more)


def columns_of(*elements: SchemaElement, top_level: int) -> tuple[Column, ...]:
    return leaf_columns([group("schema", top_level, None), *elements])


# Levels


@each(
    "element, reason",
    [
        *(
            (leaf("y", repetition), f"no repetition type {repetition}")
            for repetition in (-1, 3, 2**31 - 1)
        ),
        *(
            (
                SchemaElement(name="y", type=kind, repetition_type=OPTIONAL),
                f"no physical type {kind}",
            )
            for kind in (-1, 8)
        ),
    ],
)
def test_an_element_that_the_format_does_not_have_is_a_column_that_cannot_be_read(element, reason):
    x, y, z = columns_of(leaf("x"), element, leaf("z"), top_level=3)
    assert (y.physical, y.logical, y.doubt) == ("UNKNOWN", None, f"the format has {reason}")
    assert (x.doubt, z.doubt, z.index) == (None, None, 2)


# Names

parts = st.text(
    st.one_of(st.sampled_from("`.ab "), st.characters(exclude_categories=["Cs"])), max_size=6
)


@given(st.lists(parts, min_size=1, max_size=4).map(tuple))
def test_a_quoted_path_is_read_back(path):
    assert unquote(quote(path)) == path


# Finding


def test_a_dot_means_a_path_first_and_a_name_with_a_dot_else():
    nested, dotted = group("a", 1), leaf("a.b")
    both = columns_of(nested, leaf("b"), dotted, top_level=2)
    assert find_column(both, "a.b").path == ("a", "b")
    assert find_column(both, "`a.b`").path == ("a.b",)
    alone = columns_of(dotted, top_level=1)
    assert find_column(alone, "a.b").path == ("a.b",)
    assert find_column(alone, "`a.b`").path == ("a.b",)


@each(
    "name, message",
    [
        (
            "quux",
            r"no column 'quux'; the columns of the file are "
            r"a\.x, a\.y, twice#1, twice#2, ID, user_id$",
        ),
        ("id", r"no column 'id'; did you mean ID"),
        ("usr_id", r"no column 'usr_id'; did you mean user_id"),
        ("user_ids", r"did you mean user_id\?$"),
        ("a", r"'a' is a group; name one of its leaf columns: a\.x, a\.y"),
        ("twice", "has 2 such columns; name one of twice#1, twice#2"),
        ("twice#3", "no column 'twice#3'"),
        *((name, "backtick") for name in ("`a", "a.`b", "`a``", "`a`b", "`a`b.c", "`")),
    ],
)
def test_a_name_that_is_no_column_is_a_usage_error(name, message):
    columns = columns_of(
        group("a", 2),
        leaf("x"),
        leaf("y"),
        leaf("twice"),
        leaf("twice"),
        leaf("ID"),
        leaf("user_id"),
        top_level=5,
    )
    with pytest.raises(UsageError, match=message):
        find_column(columns, name)


def test_a_column_with_two_names_is_listed_once():
    tags = group("tags", 1, converted_type=ConvertedType.LIST)
    columns = columns_of(leaf("id"), tags, group("list", 1, REPEATED), leaf("element"), top_level=2)
    with pytest.raises(UsageError, match=r"the columns of the file are id, tags\.list\.element$"):
        find_column(columns, "quux")
    with pytest.raises(UsageError, match=r"did you mean tags\.list\.element, tags\?$"):
        find_column(columns, "tag")


# Types


def test_the_logical_type_wins_over_the_converted_one_and_either_is_enough():
    micros = LogicalType(
        TIMESTAMP=TimestampType(isAdjustedToUTC=False, unit=TimeUnit(MICROS=MicroSeconds()))
    )
    columns = columns_of(
        leaf(
            "a", type=Type.INT64, logicalType=micros, converted_type=ConvertedType.TIMESTAMP_MICROS
        ),
        leaf("b", type=Type.INT64, converted_type=ConvertedType.TIMESTAMP_MILLIS),
        leaf(
            "c",
            logicalType=LogicalType(INTEGER=IntType(bitWidth=8, isSigned=False)),
            converted_type=ConvertedType.INT_32,
        ),
        leaf("d", logicalType=LogicalType(DECIMAL=DecimalType(precision=9, scale=2))),
        leaf("e", converted_type=ConvertedType.DECIMAL, precision=5, scale=1),
        leaf("f", type=Type.BYTE_ARRAY, logicalType=LogicalType(STRING=StringType())),
        leaf(
            "g",
            type=Type.FIXED_LEN_BYTE_ARRAY,
            type_length=16,
            logicalType=LogicalType(UUID=UUIDType()),
        ),
        leaf("h", type=Type.INT96),
        leaf("i", logicalType=LogicalType()),
        leaf("j", logicalType=LogicalType(), converted_type=ConvertedType.DATE),
        top_level=10,
    )
    assert [column.type_name for column in columns] == [
        "INT64 TIMESTAMP(MICROS,local)",
        "INT64 TIMESTAMP(MILLIS,UTC)",
        "INT32 INT(8,unsigned)",
        "INT32 DECIMAL(9,2)",
        "INT32 DECIMAL(5,1)",
        "BYTE_ARRAY STRING",
        "FIXED_LEN_BYTE_ARRAY(16) UUID",
        "INT96",
        "INT32",
        "INT32 DATE",
    ]
    assert [column.width for column in columns] == [8, 8, 4, 4, 4, None, 16, 12, 4, 4]


# Schemas that are none

MALFORMED = {
    "the root claims more than there is": ([leaf("a")], 2, "state more children"),
    "a group claims more than there is": ([group("a", 3), leaf("b")], 1, "state more children"),
    "a claim without end": ([group("a", 2**31 - 1), leaf("b")], 1, "state more children"),
    "elements without a parent": (
        [leaf("a"), leaf("b")],
        1,
        "has 3 elements, but the child counts of its groups add up to 2",
    ),
    "a negative number of children": ([group("a", -1), leaf("b")], 2, "group states -1 children"),
    "no name": ([leaf(None)], 1, "has no name"),
    "groups without end": (
        [*(group("g", 1) for _ in range(5000)), leaf("a")],
        1,
        "nested more than 100 deep",
    ),
}


@each("elements, top_level, complaint", MALFORMED)
def test_an_invalid_schema_is_unreadable(elements, top_level, complaint):
    with pytest.raises(UnreadableError, match=complaint):
        columns_of(*elements, top_level=top_level)


def test_one_of_several_columns_with_a_name_has_a_number():
    columns = columns_of(leaf("a"), leaf("b"), leaf("a"), leaf("b#1"), top_level=4)
    assert [find_column(columns, name).index for name in ("a#1", "a#2", "b", "b#1")] == [0, 2, 1, 3]
    assert [column.name for column in columns] == ["a#1", "b", "a#2", "b#1"], (
        "what is printed can be given"
    )
