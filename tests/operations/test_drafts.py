"""Filters of the format's drafts, in Parquet files: inspected, queried, verified, repaired; used only on request."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.bloom.dialects import DRAFTS, TODAYS, find_dialect
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.operations.inspect import inspect
from sbbf_tool.operations.probe import probe
from sbbf_tool.operations.repair import repair
from sbbf_tool.operations.verify import verify
from sbbf_tool.parquet.filters import build_draft_header
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from support.draft_files import write_draft
from support.samples import write_column, write_events
from support.tables import each

pytestmark = pytest.mark.slow

NAMES = [dialect.name for dialect in DRAFTS]
DRAFT_DIALECTS = [dialect.name for dialect in DRAFTS if dialect.header != TODAYS]
"""Drafts whose header is not today's."""
COLUMNS = ("id", "name", "score", "point.x", "tags")


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write_events(tmp_path / "events.parquet")


def with_filters(source: Path, dialect: str, columns: tuple[str, ...] = COLUMNS) -> Path:
    target = source.with_name(f"{dialect}.parquet")
    write_draft(source, columns, target, dialect)
    return target


def put(path: Path, header: bytes, bitset: bytes, *, with_length: bool = True) -> None:
    """Give the only chunk of a file of one column this filter."""
    with ParquetFile.open(path) as file:
        body, raw = file.source.read(0, file.footer.start), file.footer.raw
    length = len(header) + len(bitset) if with_length else None
    new = set_filters(raw, {(0, 0): FilterPlace(len(body), length)})
    path.write_bytes(body + header + bitset + new + build_tail(new))


def build(dialect: str, values: list[bytes], size: int, *, is_number: bool = False) -> bytes:
    bloom = BloomFilter.empty(size)
    hasher = find_dialect(dialect).hasher(bloom.num_blocks, is_number=is_number)
    for value in values:
        bloom.insert_hash(hasher.hash_value(value))
    return bytes(bloom)


# Build, inspect, verify


@each("dialect", DRAFT_DIALECTS)
def test_a_file_of_each_dialect_is_inspected_and_verified(events, dialect):
    path = with_filters(events, dialect)
    for row in inspect(path).filters:
        assert row.dialect == dialect
        assert dialect in row.dialects
        assert row.unreadable is None
        assert row.fill_ratio
        assert f"match {dialect}" in row.warnings[0]
    report = verify(path)
    assert len(report.filters) == 3 * len(COLUMNS)
    assert all(result.is_verified and result.dialect == dialect and result.verified_values for result in report.filters)
    assert {finding.rule for finding in report.findings} == {"draft-dialect"}
    assert not report.is_sound
    assert pq.read_table(path).equals(pq.read_table(events))


@each("dialect", NAMES, every=3)
def test_every_type(fixtures, tmp_path, dialect):
    source = fixtures / "pyarrow-types.parquet"
    columns = [column for column in pq.read_schema(source).names if column not in ("point", "words")]
    target = tmp_path / "typed.parquet"
    write_draft(source, columns, target, dialect)
    if dialect != "draft2-final":
        assert all(result.is_verified and result.dialect == dialect for result in verify(target).filters)


# Query


@each("dialect", ["current", *DRAFT_DIALECTS])
@each("column", ["id", "name"])
def test_a_stored_value_is_never_absent_whatever_dialect_is_named(events, column, dialect):
    """The values of the column expose a wrong dialect; today's filters are queried as today's."""
    path = with_filters(events, dialect, (column,))
    values = pq.read_table(events)[column].drop_null().unique().to_pylist()[::7]
    for name in ("current", *NAMES):
        report = probe(path, column, values, dialect=name)
        assert not any(value.is_absent for value in report.values)
        answers = {answer.answer for value in report.values for answer in value.row_groups}
        is_asked = name == dialect or (dialect == "current" and name != "draft2-final")
        assert ("cannot say" not in answers) if is_asked else (answers == {"cannot say"})


# What the header leaves open


VALUES = [f"value {n}".encode() for n in range(200)]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_column(tmp_path / "texts.parquet", pa.array([value.decode() for value in VALUES]), use_dictionary=False)


def test_twelve_bytes_before_a_bitset_that_begins_with_zeros(tmp_path):
    path = write_column(tmp_path / "one.parquet", pa.array(["alone"]))
    bitset = build("draft1-raw", [b"alone"], 1024)
    assert bitset[:4] == b"\0" * 4
    for behind, fitting in ((b"", ("draft1-raw", "branch-12")), (b"else", ("draft1-raw", "branch-12", "branch-16"))):
        put(path, build_draft_header(find_dialect("draft1-raw"), 1024), bitset + behind, with_length=False)
        (row,) = inspect(path).filters
        assert row.dialects == fitting
        assert (row.dialect, row.header_bytes) == ("draft1-raw", 12)


@each("bits", {"none": b"\0", "all": b"\xff"})
def test_ambiguous_bits(texts, bits):
    put(texts, build_draft_header(find_dialect("draft1-thrift"), 64), bits * 64)
    (row,), (result,) = inspect(texts).filters, verify(texts).filters
    assert row.dialect is result.dialect is None
    assert row.dialects == ("draft1-thrift", "draft2-thrift")
    assert "match several or none" in row.warnings[0]


# Repair


@each("dialect", NAMES)
def test_repair_brings_it_to_todays_form(events, dialect):
    path = with_filters(events, dialect, ("id", "name"))
    before = pq.read_table(path)
    report = repair(path, in_place=True)
    assert {step.fix for step in report.steps} == {"rebuild"}
    assert verify(path).is_sound
    assert all(result.is_verified and result.dialect is None for result in verify(path).filters)
    assert probe(path, "name", ["nobody"]).is_absent
    assert pq.read_table(path).equals(before)


# Files with wrong headers


@each("dialect", DRAFT_DIALECTS)
def test_a_filter_that_would_run_into_the_footer(texts, dialect):
    put(texts, build_draft_header(find_dialect(dialect), 128 << 20), b"\xff" * 64)
    assert "runs into" in (inspect(texts).filters[0].unreadable or "")
    (result,) = verify(texts).filters
    assert result.problem
    assert probe(texts, "v", ["value 1"], dialect=dialect).unreadable


@each("dialect", DRAFT_DIALECTS)
def test_a_header_with_any_byte_changed(texts, dialect):
    """The report names what the header is then, and a stored value is never reported as absent."""
    header, bitset = build_draft_header(find_dialect(dialect), 1024), build(dialect, VALUES, 1024)
    values = [value.decode() for value in VALUES[::20]]
    for at in range(len(header)):
        for change in (0x01, 0x80, 0xFF):
            mutant = bytearray(header)
            mutant[at] ^= change
            put(texts, bytes(mutant), bitset, with_length=False)
            (row,) = inspect(texts).filters
            for name in (dialect, None):
                report = probe(texts, "v", values, dialect=name)
                assert bool(report.unreadable) == bool(row.unreadable)
                assert not any(value.is_absent for value in report.values)


def test_an_interval_for_which_duckdb_queries_another_form(fixtures, tmp_path):
    path = tmp_path / "spans.parquet"
    write_draft(fixtures / "duckdb-types.parquet", ["span"], path, "draft1-page")
    assert all(result.is_verified for result in verify(path, ["span"]).filters)
