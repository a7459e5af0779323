"""A type by its name, for filters without a schema: the inverse of how columns name theirs."""

from __future__ import annotations

import pytest

from sbbf_tool.errors import UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.type_names import column_of_type

SHORT = {
    "STRING": "BYTE_ARRAY STRING",
    "string": "BYTE_ARRAY STRING",
    "UUID": "FIXED_LEN_BYTE_ARRAY(16) UUID",
    "DATE": "INT32 DATE",
    "FLOAT16": "FIXED_LEN_BYTE_ARRAY(2) FLOAT16",
    "INTERVAL": "FIXED_LEN_BYTE_ARRAY(12) INTERVAL",
    "INT(8,unsigned)": "INT32 INT(8,unsigned)",
    "INT(64,signed)": "INT64 INT(64,signed)",
    "TIME(MILLIS,UTC)": "INT32 TIME(MILLIS,UTC)",
    "TIME(NANOS,local)": "INT64 TIME(NANOS,local)",
    "TIMESTAMP(MICROS,UTC)": "INT64 TIMESTAMP(MICROS,UTC)",
    "int64": "INT64",
    "fixed_len_byte_array(5)": "FIXED_LEN_BYTE_ARRAY(5)",
    "int32 decimal(9,2)": "INT32 DECIMAL(9,2)",
    "FIXED_LEN_BYTE_ARRAY FLOAT16": "FIXED_LEN_BYTE_ARRAY(2) FLOAT16",
    "fixed_len_byte_array uuid": "FIXED_LEN_BYTE_ARRAY(16) UUID",
}


@pytest.mark.parametrize(("name", "full"), SHORT.items())
def test_short_names(name, full):
    assert column_of_type(name).type_name == full


@pytest.mark.parametrize("name", ["pyarrow-types", "duckdb-types", "spark-types", "spark-int96", "pyarrow-plain"])
def test_every_type_that_inspect_prints_is_read_back(fixtures, name):
    with ParquetFile.open(fixtures / f"{name}.parquet") as file:
        for column in file.footer.columns:
            read = column_of_type(column.type_name)
            assert (read.physical, read.type_length, read.logical) == (column.physical, column.type_length, column.logical)


NONE = ["", " ", "INT", "INT128", "FIXED_LEN_BYTE_ARRAY(0)", "FIXED_LEN_BYTE_ARRAY(99999999)"]
NONE += ["INT32(4)", "INT64 STRINGS", "INT64 TIMESTAMP(DAYS,UTC)", "INT64 INT(7,signed)", "BYTE_ARRAY STRING STRING", "STRING(1,2)"]
NONE += ["INT32 DECIMAL(a,b)", "TIMESTAMP", "INT64 TIMESTAMP", "x" * 10_000]


@pytest.mark.parametrize("name", NONE)
def test_names_of_no_type(name):
    with pytest.raises(UsageError, match="no type"):
        column_of_type(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DECIMAL(9,2)", "does not state how its values are stored; write how before it: INT32, INT64, .*, such as INT32 DECIMAL"),
        ("FIXED_LEN_BYTE_ARRAY", r"does not state the length of its values; write FIXED_LEN_BYTE_ARRAY\(n\)"),
        ("FIXED_LEN_BYTE_ARRAY DECIMAL(9,2)", "does not state the length of its values"),
    ],
)
def test_an_incomplete_type_is_answered_with_what_is_missing(name, message):
    with pytest.raises(UsageError, match=message):
        column_of_type(name)
