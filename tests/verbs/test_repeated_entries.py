"""Dictionaries with repeated entries, as DuckDB 2.0.1 writes them for an ENUM: as dictionaries, pyarrow decodes them to other values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, probe, verify
from support.samples import stored
from support.tables import each


def write_repeated(path: Path, entries: list[str], repeated: str, first: str, indices: list[int]) -> list[str]:
    """Write a column of text with a dictionary in which `repeated` is stored as `first`, and return its values."""
    values = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(entries))
    pq.write_table(pa.table({"v": values}), path, compression="none", store_schema=False)
    data = path.read_bytes()
    start = pq.read_metadata(path).row_group(0).column(0).dictionary_page_offset
    position = data.index(repeated.encode(), start)
    path.write_bytes(data[:position] + first.encode() + data[position + len(first) :])
    return [first if entries[index] == repeated else entries[index] for index in indices]


@each(
    "indices",
    {
        "pyarrow decodes other values without an error": [0, 1, 2] * 50,
        "pyarrow decodes indices past the end of its dictionary": [0, 1, 2, 3] * 50,
    },
)
def test_values_of_a_dictionary_with_repeated_entries(tmp_path: Path, indices: list[int]) -> None:
    path = tmp_path / "f.parquet"
    expected = write_repeated(path, ["aa", "ab", "ac", "ad"], "ab", "aa", indices)

    assert stored(path) == [value.encode() for value in expected]
    assert len(add_filters(path, ["v"], in_place=True).filters) == 1
    (verified,) = verify(path).filters
    assert (verified.problem, verified.false_negatives, verified.verified_values) == (None, 0, len(indices))
    assert not any(answer.is_absent for answer in probe(path, "v", sorted(set(expected))).values)


@pytest.mark.engines
def test_an_enum_of_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "f.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("CREATE TABLE rows AS SELECT ['red', 'green', 'blue'][1 + i // 2048] AS colour FROM range(6144) t(i)")
        connection.execute("CREATE TABLE typed AS SELECT CAST(colour AS ENUM ('red', 'green', 'blue')) AS colour FROM rows")
        connection.execute(f"COPY typed TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048, WRITE_BLOOM_FILTER false)")

    assert len(add_filters(path, ["colour"], in_place=True).filters) == 3
    assert [(row.problem, row.false_negatives) for row in verify(path).filters] == [(None, 0)] * 3
