"""`verify`: the expected result for each file of a known writer, and the report where values cannot
be verified.

The chunks of one file verified concurrently: the same report, within bounds, and an end at the
first error.
"""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, check, probe, verify
from sbbf_tool.errors import OversizedPageError
from sbbf_tool.file import membership
from sbbf_tool.file.context import Context
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.rules import facts
from sbbf_tool.rules.facts import Reads, gather
from support.tables import each

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"


class Expected(NamedTuple):
    """The expected result for a file: filters, verified values, false negatives, and the rules with
    findings."""

    filters: int
    values: int
    false_negatives: int = 0
    findings: tuple[str, ...] = ()
    unverified: int = 0


NOTHING = Expected(0, 0)
ONE_BLOCK = ("under-64-bytes",)

EXPECTED = {
    # No filters at all.
    "datafusion-plain": NOTHING,
    "duckdb-plain": NOTHING,
    "events": NOTHING,
    "pyarrow-edges": NOTHING,
    "pyarrow-empty": NOTHING,
    "pyarrow-encodings": NOTHING,
    "pyarrow-21-int96": NOTHING,
    "pyarrow-floats": NOTHING,
    "pyarrow-plain": NOTHING,
    "pyarrow-types": NOTHING,
    "spark-plain": NOTHING,
    # arrow-rs folds to one block for few values, and hashes a BOOLEAN as a byte.
    "datafusion-defaults": Expected(40, 3840, findings=ONE_BLOCK),
    "datafusion-filters": Expected(40, 3840, findings=ONE_BLOCK),
    "datafusion-one-column": Expected(4, 400),
    # DuckDB gives each dictionary a filter, of one block where that is enough, and normalises
    # intervals as it says.
    "duckdb-defaults": Expected(4, 400, findings=ONE_BLOCK),
    "duckdb-filters": Expected(36, 3440, findings=ONE_BLOCK),
    "duckdb-some-row-groups": Expected(2, 200, findings=ONE_BLOCK),
    "duckdb-types": Expected(68, 3495, findings=ONE_BLOCK),
    # Arrow C++ hashes the bits it stores: of a zero one sign, of NaN one payload.
    "pyarrow-edges-filters": Expected(8, 100, findings=ONE_BLOCK),
    "pyarrow-filters": Expected(36, 3440, findings=ONE_BLOCK),
    "pyarrow-floats-filters": Expected(
        12, 54, findings=("zero-form-missing", "nan-forms-missing", *ONE_BLOCK)
    ),
    "pyarrow-types-filters": Expected(72, 3695, findings=("zero-form-missing", *ONE_BLOCK)),
    # parquet-java accepts any size, and never fills the filter of a BOOLEAN column.
    "spark-filters": Expected(32, 3040),
    "spark-types": Expected(48, 2495),
    "spark-int96": Expected(8, 400),
    "spark-96-bytes": Expected(16, 1600, findings=("not-power-of-two",)),
    "spark-1000-bytes": Expected(16, 1600, findings=("partial-block", "not-power-of-two")),
    "spark-boolean": Expected(
        4, 400, false_negatives=400, findings=("empty-boolean-filter", *ONE_BLOCK)
    ),
}
ERRORS = {"partial-block", "empty-boolean-filter"}

CONFORMANCE = {
    "parquet-testing/data_index_bloom_encoding_stats.parquet": Expected(
        1, 14, findings=("missing-length",)
    ),
    "parquet-testing/data_index_bloom_encoding_with_length.parquet": Expected(1, 14),
    "encrypted/plain.parquet": Expected(10, 5858, findings=("zero-form-missing",)),
    # Filters of encrypted columns can be queried only with the key; those of plaintext columns are
    # verified.
    "encrypted/columns_plainfooter.parquet": Expected(10, 2000, unverified=6),
    "encrypted/uniform_plainfooter.parquet": Expected(10, 0, unverified=10),
}


def assert_expected(path: Path, expected: Expected) -> None:
    report = verify(path)
    assert len(report.filters) == expected.filters
    assert sum(result.verified_values for result in report.filters) == expected.values
    assert sum(result.false_negatives for result in report.filters) == expected.false_negatives
    assert sum(result.problem is not None for result in report.filters) == expected.unverified
    assert {finding.rule for finding in report.findings} == set(expected.findings)
    assert report.is_sound == (not ERRORS & set(expected.findings))
    assert report.unreadable == ()


def test_every_fixture_is_known():
    assert {path.stem for path in FIXTURES.glob("*.parquet")} == set(EXPECTED)


@each("name", list(EXPECTED))
def test_fixture(name: str):
    assert_expected(FIXTURES / f"{name}.parquet", EXPECTED[name])


@each("name", list(CONFORMANCE))
def test_conformance(name: str, conformance: Path):
    assert_expected(conformance / name, CONFORMANCE[name])


@each("name", [name for name, expected in EXPECTED.items() if expected.filters])
def test_the_measured_fpp_is_the_estimated_fpp(name: str):
    """The measured FPP is within five standard deviations for so many keys."""
    for result in verify(FIXTURES / f"{name}.parquet").filters:
        if result.type == "BOOLEAN":
            assert result.measured_fpp is None
            continue
        assert result.absent_keys > 200
        deviation = math.sqrt(
            result.estimated_fpp * (1 - result.estimated_fpp) / result.absent_keys
        )
        assert (
            abs(result.measured_fpp - result.estimated_fpp)
            <= 5 * deviation + 1 / result.absent_keys
        )


# Floating-point numbers


def with_doubles(path: Path, stored: list[int], hashes: list[int]) -> None:
    """A file of doubles given as bit patterns, whose filter holds other ones."""
    table = pa.table({"x": np.array(hashes, np.uint64).view(np.float64)})
    pq.write_table(table, path, use_dictionary=False, compression="none", write_statistics=False)
    add_filters(path, ["x"], in_place=True)
    data = path.read_bytes()
    for before, after in zip(hashes, stored, strict=True):
        data = data.replace(before.to_bytes(8, "little"), after.to_bytes(8, "little"), 1)
    path.write_bytes(data)


def test_a_false_negative_is_reported_beside_a_nan_too(tmp_path: Path):
    path = tmp_path / "mixed.parquet"
    first, second, third = np.array([1.5, 2.5, 3.5], np.float64).view(np.uint64).tolist()
    with_doubles(
        path,
        stored=[0x7FF8_0000_DEAD_0001, first, third],
        hashes=[0x7FF8_0000_0000_0001, first, second],
    )
    report = verify(path)
    (result,) = report.filters
    assert (result.false_negatives, result.excluded_nans, result.examples) == (1, 1, ("3.5",))
    assert not report.is_sound


# Values that cannot be verified


@each("zero", [False, True])
@each("union", ["algorithm", "hash", "compression"])
def test_a_header_of_another_kind_is_neither_verified_nor_false(
    tmp_path: Path, union: str, zero: bool
):
    """Whatever the bits are, they have another meaning."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": range(1000)}), path, use_dictionary=False)
    add_filters(path, ["id"], in_place=True)
    with ParquetFile.open(path) as file:
        stored = file.stored_filter(0, file.footer.columns[0])
    content = bytearray(path.read_bytes())
    at = stored.bitset_offset - 13 + 4 * ("algorithm", "hash", "compression").index(union) + 1
    assert content[at] == 0x1C
    content[at] = 0x2C
    if zero:
        content[stored.bitset_offset : stored.end] = bytes(stored.end - stored.bitset_offset)
    path.write_bytes(content)
    report = verify(path)
    (verification,) = report.filters
    assert "cannot be interpreted" in verification.problem
    assert (
        verification.false_negatives,
        verification.is_verified,
        report.is_sound,
        report.unreadable,
    ) == (0, False, False, ())
    assert "false-negatives" not in {finding.rule for finding in report.findings}
    assert not probe(path, "id", [7]).is_absent


GROUPS = 6


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "_WORTH_THREADS", 0)
    path = tmp_path / "data.parquet"
    table = pa.table({"id": range(1200), "name": [f"name {number}" for number in range(1200)]})
    pq.write_table(table, path, row_group_size=1200 // GROUPS)
    add_filters(path, ["id", "name"], in_place=True)
    return path


@each("jobs", [2, 5, None])
def test_the_report_is_the_same(path, jobs):
    assert verify(path, jobs=jobs) == verify(path, jobs=1)
    assert check(path, jobs=jobs) == check(path, jobs=1)


@each("jobs", [1, 4])
def test_the_first_error_in_the_order_of_the_chunks_is_raised(path, jobs):
    with pytest.raises(OversizedPageError) as caught:
        verify(path, jobs=jobs, max_page_bytes=100)
    assert "column id, row group 0" in str(caught.value)


@each("error", [KeyboardInterrupt, MemoryError])
def test_after_an_error_no_chunk_is_begun(path, error, monkeypatch):
    # Threads that fetch from stores outlive the tests that started them.
    begun, before = [], set(threading.enumerate())

    verify = membership.verify_filter

    def verify_filter(file, stored, bloom):
        begun.append(stored.row_group)
        if len(begun) == 1:
            raise error
        time.sleep(0.05)
        return verify(file, stored, bloom)

    monkeypatch.setattr(membership, "verify_filter", verify_filter)
    with ParquetFile.open(path, Context(jobs=2)) as file, pytest.raises(error):
        gather(file, file.footer.columns, Reads.DATA)
    assert len(begun) < GROUPS
    assert not [
        thread for thread in set(threading.enumerate()) - before if thread.name.startswith("sbbf")
    ]
