"""Filters of the format's drafts, in Parquet files: inspected, queried, verified, repaired; used
only on request."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.bloom.dialects import DRAFTS, TODAYS, find_dialect
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import RefusedError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import build_draft_header
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.verbs.check import check
from sbbf_tool.verbs.explain import explain
from sbbf_tool.verbs.inspect import inspect
from sbbf_tool.verbs.probe import probe
from sbbf_tool.verbs.prune import prune
from sbbf_tool.verbs.remove_filter import remove_filters
from sbbf_tool.verbs.repair import repair
from sbbf_tool.verbs.resize import resize_filters
from sbbf_tool.verbs.verify import verify
from support.corpus_edits import edit_footer
from support.draft_files import write_draft, write_draft_in_chunks
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
    assert all(
        result.is_verified and result.dialect == dialect and result.verified_values
        for result in report.filters
    )
    assert {finding.rule for finding in report.findings} == {"draft-dialect"}
    assert not report.is_sound
    assert pq.read_table(path).equals(pq.read_table(events))


@each("dialect", NAMES, every=3)
def test_every_type(fixtures, tmp_path, dialect):
    source = fixtures / "pyarrow-types.parquet"
    columns = [
        column for column in pq.read_schema(source).names if column not in ("point", "words")
    ]
    target = tmp_path / "typed.parquet"
    write_draft(source, columns, target, dialect)
    if dialect != "draft2-final":
        assert all(
            result.is_verified and result.dialect == dialect for result in verify(target).filters
        )


# Query


@each("dialect", ["current", *DRAFT_DIALECTS])
@each("column", ["id", "name"])
def test_a_stored_value_is_never_absent_whatever_dialect_is_named(events, column, dialect):
    """The values of the column expose a wrong dialect; today's filters are queried as today's."""
    path = with_filters(events, dialect, (column,))
    values = pq.read_table(events)[column].drop_null().unique().to_pylist()[::7]
    for name in ("current", *NAMES):
        report = probe(path, column, values, dialect=name, filters_only=True)
        assert not any(value.is_absent for value in report.values)
        answers = {answer.answer for value in report.values for answer in value.row_groups}
        is_asked = name == dialect or (dialect == "current" and name != "draft2-final")
        assert ("cannot say" not in answers) if is_asked else (answers == {"cannot say"})


# What the header leaves open


VALUES = [f"value {n}".encode() for n in range(200)]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_column(
        tmp_path / "texts.parquet",
        pa.array([value.decode() for value in VALUES]),
        use_dictionary=False,
    )


def test_twelve_bytes_before_a_bitset_that_begins_with_zeros(tmp_path):
    path = write_column(tmp_path / "one.parquet", pa.array(["alone"]))
    bitset = build("draft1-raw", [b"alone"], 1024)
    assert bitset[:4] == b"\0" * 4
    for behind, fitting in (
        (b"", ("draft1-raw", "branch-12")),
        (b"else", ("draft1-raw", "branch-12", "branch-16")),
    ):
        put(
            path,
            build_draft_header(find_dialect("draft1-raw"), 1024),
            bitset + behind,
            with_length=False,
        )
        (row,) = inspect(path).filters
        assert row.dialects == fitting
        assert (row.dialect, row.header_bytes) == ("draft1-raw", 12)


# Repair


@each("dialect", NAMES)
def test_repair_brings_it_to_todays_form(events, dialect):
    path = with_filters(events, dialect, ("id", "name"))
    before = pq.read_table(path)
    report = repair(path, in_place=True)
    assert {step.fix for step in report.steps} == {"rebuild"}
    assert verify(path).is_sound
    assert all(result.is_verified and result.dialect is None for result in verify(path).filters)
    assert probe(path, "name", ["nobody"], filters_only=True).is_absent
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


IN_CHUNKS = ("id", "k", "name", "maybe")
"""Among them the first two and the last two but one of the file, so that filters follow pages
directly."""
FIRST_DRAFTS = [dialect.name for dialect in DRAFTS if dialect.name.startswith("draft1")]
SIZES = pytest.mark.parametrize(
    "in_size", [False, True], ids=["size of the pages", "size with the filter"]
)


@pytest.fixture(scope="module")
def plain(fixtures: Path) -> Path:
    return fixtures / "pyarrow-plain.parquet"


def write(plain: Path, folder: Path, dialect: str, in_size: bool) -> Path:
    path = folder / "first.parquet"
    write_draft_in_chunks(plain, IN_CHUNKS, path, dialect, in_size=in_size)
    return path


@SIZES
@each("dialect", FIRST_DRAFTS)
def test_queries_in_the_dialect_and_without(
    plain: Path, tmp_path: Path, dialect: str, in_size: bool
):
    path = write(plain, tmp_path, dialect, in_size)
    for column in IN_CHUNKS:
        values = pq.read_table(plain)[column].drop_null().unique().to_pylist()[::9]
        assert not any(
            value.is_absent for value in probe(path, column, values, dialect=dialect).values
        )
    assert {
        row.answer
        for row in probe(path, "id", [-1], dialect=dialect, filters_only=True).values[0].row_groups
    } == {"absent"}
    assert {
        row.answer for row in probe(path, "id", [-1], filters_only=True).values[0].row_groups
    } == {"cannot say"}
    assert {row.filter for row in explain(path, "name", "nobody").row_groups} == {"cannot say"}
    assert prune([path], "name", ["nobody"]).skipped_by_filter == 0


@SIZES
@each("compact", [False, True])
@each("columns", {"all": (), "one": ("id",)})
def test_remove(
    plain: Path, tmp_path: Path, columns: tuple[str, ...], compact: bool, in_size: bool
):
    """The bytes of a filter between pages stay in the file, since pages do not move, and are
    in_size as unreferenced."""
    path = write(plain, tmp_path, "draft1-page", in_size)
    report = remove_filters(path, columns, compact=compact, in_place=True)
    assert report.unreferenced_bytes
    assert {row.column for row in inspect(path).filters} == set(IN_CHUNKS) - set(
        columns or IN_CHUNKS
    )
    assert "overlapping-filter" not in {finding.rule for finding in check(path).findings}
    assert pq.read_table(path).equals(pq.read_table(plain))


def test_repair_can_drop_and_resize_is_refused(plain: Path, tmp_path: Path):
    path = write(plain, tmp_path, "draft1-raw", in_size=False)
    content = path.read_bytes()
    with pytest.raises(
        RefusedError,
        match=r"is that of a draft of the format: draft1-raw or branch-12; repair can rebuild it",
    ):
        resize_filters(path, fpp=0.1, in_place=True)
    assert path.read_bytes() == content
    assert {step.fix for step in repair(path, drop=True, in_place=True).steps} == {"drop"}
    assert inspect(path).filters == ()


def test_a_filter_is_not_taken_for_a_page(plain: Path, tmp_path: Path):
    """parquet-mr's first commit with filters (d473d17) stated the filter's offset as that of the
    first page."""
    path = write(plain, tmp_path, "draft1-raw", in_size=False)

    def state_the_filter(metadata) -> None:
        for row_group in metadata.row_groups:
            for chunk in row_group.columns:
                chunk.meta_data.data_page_offset = (
                    chunk.meta_data.bloom_filter_offset or chunk.meta_data.data_page_offset
                )

    edit_footer(path, state_the_filter)
    assert all(
        "does not state the size of its page" in (result.problem or "")
        for result in verify(path).filters
    )
    report = probe(path, "id", [-1], dialect="draft1-raw", filters_only=True)
    assert {row.answer for row in report.values[0].row_groups} == {"cannot say"}
    assert "overlapping-filter" in {
        finding.rule for finding in check(path, Policy(quick=True)).findings
    }
