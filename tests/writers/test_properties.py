"""What the properties of a writer or a table say of filters: `parse(build(x)) == x`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UsageError
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.writers.properties import (
    DATAFUSION_PROPERTIES,
    ICEBERG_PROPERTIES,
    PARQUET_JAVA_PROPERTIES,
    TRINO_PROPERTIES,
    Properties,
    declare,
)
from sbbf_tool.writers.settings import parse_settings

NAMES = st.text("abcXYZ_0.9é- ", min_size=1, max_size=12).map(str.strip).filter(bool)
NDVS, FPPS = st.integers(1, 1 << 30), st.floats(1e-9, 0.9)


@st.composite
def specs_of(draw: st.DrawFn, properties: Properties) -> tuple[FilterSpec, ...]:
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    if properties is TRINO_PROPERTIES:
        return tuple(map(declare, names))
    limit = draw(st.none() | st.integers(64, 1 << 27))  # for all columns
    return tuple(
        declare(name, draw(st.none() | FPPS), draw(st.none() | NDVS), limit) for name in names
    )


@pytest.mark.parametrize(
    "of_writer",
    [ICEBERG_PROPERTIES, PARQUET_JAVA_PROPERTIES, TRINO_PROPERTIES, DATAFUSION_PROPERTIES],
    ids=lambda each: each[0],
)
@given(data=st.data())
def test_what_is_built_is_parsed(of_writer: Properties, data: st.DataObject) -> None:
    specs = data.draw(specs_of(of_writer))
    properties = of_writer.build(specs)
    assert all(isinstance(text, str) for item in properties.items() for text in item)
    assert of_writer.parse(properties) == specs
    other = {"spark.hadoop.parquet.compression": "zstd", "write.format.default": "parquet"}
    assert of_writer.parse({**other, **properties}) == specs


@pytest.mark.parametrize(
    ("properties", "specs"),
    [
        ({"write.parquet.bloom-filter-enabled.column.user.id": "true"}, (declare("user.id"),)),
        (
            {
                "parquet.bloom.filter.enabled#a": "TRUE",
                "parquet.bloom.filter.enabled#b": "false",
                "parquet.bloom.filter.fpp": "0.1",
            },
            (declare("a", 0.1),),
        ),
        (
            {"parquet.bloom.filter.enabled": "true", "parquet.bloom.filter.enabled#a": "true"},
            (declare("a"),),
        ),
        ({"parquet_bloom_filter_columns": "ARRAY['a', 'b']"}, (declare("a"), declare("b"))),
        ({"parquet_bloom_filter_columns": '["a"]'}, (declare("a"),)),
        ({"parquet_bloom_filter_columns": " a,b, "}, (declare("a"), declare("b"))),
    ],
)
def test_properties_of_tables(properties: dict[str, str], specs: tuple[FilterSpec, ...]) -> None:
    assert parse_settings(properties) == specs


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"write.parquet.bloom-filter-enabled.column.a": "False"}, "declare no filter"),
        ({"write.parquet.bloom-filter-fpp.column.a": "0.01"}, "declare no filter"),
        ({"parquet.bloom.filter.enabled": "true"}, "declare no filter"),
        ({"file-index.bloom-filter.columns": "a,b"}, "declare no filter"),
        (
            {"write.parquet.bloom-filter-enabled.column.a": "yes"},
            "must be true or false, not 'yes'",
        ),
        ({"parquet.bloom.filter.fpp": "high"}, "must be a number above 0 and below 1"),
        ({"write.parquet.bloom-filter-max-bytes": "1MB"}, "must be a whole number"),
    ],
)
def test_properties_that_declare_nothing_to_check(properties: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_settings(properties)
