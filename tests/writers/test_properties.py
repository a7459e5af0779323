"""What a writer's properties say of filters: `parse_properties(build_properties(x)) == x`."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.writers import datafusion, iceberg, paimon, parquet_java, trino
from sbbf_tool.writers.properties import FilterSetting, FilterSettings

NAMES = st.text("abcXYZ_0.9é- ", min_size=1, max_size=12).map(str.strip).filter(bool)
COUNTS = st.none() | st.integers(0, 1 << 62)
FPPS = st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True)


@st.composite
def settings_of(draw: st.DrawFn, writer: ModuleType) -> FilterSettings:
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    if writer is trino:
        return FilterSettings(tuple(map(FilterSetting, names)))
    # The limit holds for all columns; Paimon has none.
    limit = None if writer is paimon else draw(COUNTS)
    columns = tuple(FilterSetting(name, draw(COUNTS), draw(FPPS), limit) for name in names)
    return FilterSettings(columns, draw(st.booleans()) if writer is parquet_java else False)


@pytest.mark.parametrize("writer", [iceberg, parquet_java, trino, paimon, datafusion], ids=lambda writer: writer.__name__)
@given(data=st.data())
def test_what_is_built_is_parsed(writer: ModuleType, data: st.DataObject) -> None:
    settings = data.draw(settings_of(writer))
    properties = writer.build_properties(settings)
    assert all(isinstance(text, str) for item in properties.items() for text in item)
    assert writer.parse_properties(properties) == settings
    other = {"spark.hadoop.parquet.compression": "zstd", "write.format.default": "parquet"}
    assert writer.parse_properties({**other, **properties}) == settings
