"""Encrypted files of parquet-java: we read them, add filters to them, and parquet-java reads rows
and our filters and prunes by them.

Both algorithms, footers in the clear and encrypted, uniform keys and column keys, AAD prefixes
stored and supplied, keys of 128, 192 and 256 bits. pyarrow reads the rows where its Python
interface takes the keys: uniform ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from sbbf_tool import add_filters, inspect, probe, remove_filters, verify
from support.parquet_java import (
    COLUMNS,
    FIRST_ID,
    ROW_GROUPS,
    ROWS,
    Encryption,
    ParquetJava,
    values_of,
)
from support.tables import each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.engines, pytest.mark.heavy]

K16, K24, K32 = (
    b"0123456789012345",
    b"012345678901234567890123",
    b"01234567890123456789012345678901",
)
OWN = {"name": b"1234567890123450", "nested.tag": K32}

WAYS = {
    "uniform-ctr-192": Encryption(K24, ctr=True),
    "uniform-supplied": Encryption(K16, aad_prefix=b"table/part-0", store_prefix=False),
    "uniform-signed": Encryption(K32, plaintext_footer=True),
    "columns": Encryption(K16, OWN, ("score",)),
    "columns-signed": Encryption(K16, OWN, ("score",), plaintext_footer=True),
    "columns-signed-ctr-prefix": Encryption(
        K32, OWN, ("score",), plaintext_footer=True, ctr=True, aad_prefix=b"stored"
    ),
}


@pytest.fixture(scope="session")
def java(spark: SparkSession) -> ParquetJava:
    return ParquetJava(spark)


def as_pyarrow_reads(path: Path, how: Encryption) -> list[int]:
    prefix = how.aad_prefix if how.aad_prefix is not None and not how.store_prefix else None
    options = pe.create_decryption_properties(
        how.footer_key, **({"aad_prefix": prefix} if prefix is not None else {})
    )
    with pq.ParquetFile(path, decryption_properties=options) as file:
        return file.read(columns=["id"]).column("id").to_pylist()


def assert_parquet_java_uses_our_filters(java: ParquetJava, path: Path, how: Encryption) -> None:
    assert java.rows(path, how) == ROWS
    blooms = java.filters(path, how)
    assert blooms.keys() == {(number, column) for number in range(ROW_GROUPS) for column in COLUMNS}
    for column in ("id", "name", "nested.tag"):
        for number in range(ROW_GROUPS):
            assert all(
                java.holds(blooms[number, column], value)
                for value in values_of(column, number)[::9]
            )
    for column, absent in (("id", FIRST_ID + 1), ("name", "nobody"), ("score", 0.3)):
        assert java.row_groups_read(path, how, column, absent) < ROW_GROUPS
        assert java.row_groups_read(path, how, column, values_of(column, 0)[0]) >= 1


@each("name", list(WAYS))
def test_filters_added_to_an_encrypted_file(java: ParquetJava, tmp_path: Path, name: str) -> None:
    how = WAYS[name]
    plain, path = java.write(tmp_path / "before.parquet", how), tmp_path / "after.parquet"
    assert java.filters(plain, how) == {}
    report = add_filters(plain, COLUMNS, output=path, keys=how.keys())
    assert len(report.filters) == ROW_GROUPS * len(COLUMNS)
    assert_parquet_java_uses_our_filters(java, path, how)
    if not how.column_keys:
        assert as_pyarrow_reads(path, how) == [row.id for row in ROWS]
    assert verify(path, keys=how.keys()).is_sound
    remove_filters(path, in_place=True, keys=how.keys())
    assert path.read_bytes() == plain.read_bytes()


@each("name", ["uniform-ctr-192", "columns"])
@each("pages", ["v1", "v2-plain-zstd"])
def test_filters_that_parquet_java_wrote(
    java: ParquetJava, tmp_path: Path, name: str, pages: str
) -> None:
    how = WAYS[name]
    path = java.write(
        tmp_path / "file.parquet",
        how,
        filters=COLUMNS,
        v2="v2" in pages,
        dictionary="plain" not in pages,
        codec="ZSTD" if "zstd" in pages else "SNAPPY",
    )
    report = verify(path, keys=how.keys())
    assert [result.problem for result in report.filters] == [None] * len(report.filters)
    assert {
        (result.row_group, result.column): result.verified_values for result in report.filters
    } == {
        (number, column): len(values_of(column, number))
        for number in range(ROW_GROUPS)
        for column in COLUMNS
    }
    assert all(result.false_negatives == 0 for result in report.filters)
    assert all(
        row.header_bytes is not None and row.unreadable is None
        for row in inspect(path, keys=how.keys()).filters
    )
    assert not probe(path, "name", [values_of("name", 0)[0]], keys=how.keys()).is_absent
    assert probe(path, "name", ["nobody"], filters_only=True, keys=how.keys()).is_absent
