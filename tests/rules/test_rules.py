"""The rules one by one: where each has a finding and where not, and what it must have read. Whole
reports are in golden/."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import FilterSpec, Limits, Policy, add_filters, check
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.file.layout import owned_ranges
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.idl.ttypes import FileMetaData, KeyValue
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.reports.findings import Finding
from sbbf_tool.rules.catalog import GROUPS, RULES
from sbbf_tool.rules.facts import ColumnFacts, Reads, gather
from support.corpus_edits import edit_footer
from support.defects import Edit
from support.tables import each

ROW_GROUPS = 2
MODULE = (44).to_bytes(4, "little") + bytes(44)
"""A module of the length that an encrypted header may have."""


def write(
    path: Path,
    columns: dict[str, pa.Array],
    *,
    groups: int = ROW_GROUPS,
    filters: tuple[str, ...] = (),
    **options: object,
) -> Path:
    """Write a table in row groups of the same size, plain and uncompressed by default."""
    table = pa.table(columns)
    settings = {"use_dictionary": False, "compression": "none", **options}
    pq.write_table(table, path, row_group_size=max(1, -(-len(table) // groups)), **settings)
    if filters:
        add_filters(path, filters, in_place=True)
    return path


def findings(path: Path, rule: str, limits: Limits | None = None) -> tuple[Finding, ...]:
    return check(path, Policy(limits or Limits(), select=(rule,))).findings


def replace_filter(path: Path, row_group: int, bloom: BloomFilter, *, column: int = 0) -> None:
    """Give a chunk this filter, and leave all else."""
    with ParquetFile.open(path) as file:
        body, footer = file.source.read(0, file.footer.start), file.footer
    header = build_header(bloom.num_bytes)
    place = FilterPlace(len(body), len(header) + bloom.num_bytes)
    raw = set_filters(footer.raw, {(row_group, column): place})
    path.write_bytes(body + header + bytes(bloom.bitset) + raw + build_tail(raw))


def set_key_values(footer: FileMetaData, entries: dict[str, str]) -> None:
    footer.key_value_metadata = [KeyValue(key, value) for key, value in entries.items()] or None


def shuffled(count: int) -> pa.Array:
    return pa.array(np.random.default_rng(3).permutation(count))


class TestTable:
    def test_names_are_stable_words(self):
        names = [rule.name for rule in RULES]
        assert len(set(names)) == len(names)
        assert not set(names) & set(GROUPS)
        for name in (*names, *GROUPS):
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)

    @each(
        "name",
        ["spark-boolean", "spark-1000-bytes", "pyarrow-types-filters", "duckdb-some-row-groups"],
    )
    def test_each_reads_no_more_than_it_says(self, name, fixtures):
        """On facts that were read as far as it says, it sees what it sees when all was read; on
        fewer, it looks without failing."""
        limits = Limits(
            filters=FilterSpec("id", judge="existence"),
            max_fpp=1e-9,
            max_bytes_share=1e-9,
            min_ndv=10**6,
            min_chunk_bytes=10**6,
        )
        with ParquetFile.open(fixtures / f"{name}.parquet") as file:
            facts = {reads: list(gather(file, file.footer.columns, reads)) for reads in Reads}
            for rule in RULES:
                looked_at = {
                    reads: [rule.find(column, limits) for column in facts[reads]] for reads in Reads
                }
                assert looked_at[rule.reads] == looked_at[Reads.DATA], rule.name


class TestSorted:
    def has_finding(self, tmp_path: Path, values: pa.Array, groups: int = ROW_GROUPS) -> bool:
        return bool(
            findings(
                write(tmp_path / "s.parquet", {"c": values}, groups=groups, filters=("c",)),
                "sorted-column",
            )
        )

    @each("values", [[1, 2, 3, 4], [3, 4, 1, 2], [1, 2, 4, 3]])
    def test_row_groups_that_do_not_overlap(self, values, tmp_path):
        assert self.has_finding(tmp_path, pa.array(values))

    @each("values", [[1, 3, 2, 4], [1, 2, 2, 3], [1, 1, 1, 1]])
    def test_those_that_do_or_touch(self, values, tmp_path):
        assert not self.has_finding(tmp_path, pa.array(values))

    def test_unsigned_numbers_are_compared_as_such(self, tmp_path):
        assert self.has_finding(tmp_path, pa.array([1, 2, 2**64 - 2, 2**64 - 1], pa.uint64()))
        assert not self.has_finding(tmp_path, pa.array([1, 2**64 - 1, 2, 2**64 - 2], pa.uint64()))


class TestWorth:
    @each("times, is_reported", [(2, False), (4, True), (16, True)])
    def test_nearly_empty_begins_where_a_quarter_would_do(self, times, is_reported, tmp_path):
        path = write(tmp_path / "f.parquet", {"c": shuffled(1300)}, groups=1, filters=("c",))
        bloom = BloomFilter.empty(2048 * times)
        for n in range(1300):
            bloom.insert(n.to_bytes(8, "little"))
        replace_filter(path, 0, bloom)
        assert bool(findings(path, "nearly-empty")) is is_reported

    def test_saturated_begins_above_one_half(self, tmp_path):
        path = write(tmp_path / "f.parquet", {"c": shuffled(1300)}, groups=1, filters=("c",))
        for values, is_reported in ((800, False), (1300, True)):
            bloom = BloomFilter.empty(512)
            for n in range(values):
                bloom.insert(n.to_bytes(8, "little"))
            replace_filter(path, 0, bloom)
            assert bloom.fpp > 0.1
            assert (bloom.fpp > 0.5) is is_reported
            assert bool(findings(path, "saturated")) is is_reported


class TestSecrecy:
    @each(
        "header, before_footer, fact",
        {
            "header at": (b"", 0, "the header's module begins in the footer"),
            "header 3 before": (b"", 3, "the header's module begins in the footer"),
            "header 4 before": (
                b"",
                4,
                "the header's module has 0 bytes, but nonce and tag take 28",
            ),
            "bitset at": (MODULE, 0, "the bitset's module begins in the footer"),
            "bitset 3 before": (MODULE, 3, "the bitset's module begins in the footer"),
            "bitset 4 before": (
                MODULE,
                4,
                "the bitset's module has 0 bytes, but nonce and tag take 28",
            ),
        },
    )
    def test_modules_of_a_locked_column_begin_before_the_footer(
        self, header, before_footer, fact, tmp_path
    ):
        path = tmp_path / "f.parquet"
        edit = Edit()
        edit.append(0, "id", header, bytes(before_footer))
        edit.encrypt(0, "id")
        edit.write(path)
        (finding,) = findings(path, "damaged-encrypted-filter")
        assert [evidence.fact for evidence in finding.evidence] == [fact]


def value_of(path: Path, length: int) -> ColumnFacts:
    """Write one text of this length, and a filter; return the facts of the column."""
    write(path, {"c": pa.array(["x" * length])}, filters=("c",), write_statistics=False)
    with ParquetFile.open(path) as file:
        (column,) = gather(file, file.footer.columns, Reads.FILTERS)
    return column


class TestPolicy:
    def test_an_fpp_at_the_limit_is_allowed_and_one_above_is_not(self, tmp_path):
        path = tmp_path / "f.parquet"
        bits = value_of(path, 100).filters[0].bits
        assert bits is not None
        assert not findings(path, "fpp-above-limit", Limits(max_fpp=bits.fpp))
        assert findings(path, "fpp-above-limit", Limits(max_fpp=bits.fpp * 0.999))


class TestBoolean:
    def test_a_filter_that_would_be_rebuilt_is_removed(self, fixtures, tmp_path):
        """sbbf builds no filter of a BOOLEAN column."""
        path = Path(shutil.copy(fixtures / "datafusion-defaults.parquet", tmp_path))
        with ParquetFile.open(path) as file:
            column = next(column for column in file.footer.columns if column.name == "flag")
        mutant = BloomFilter.empty(64)
        mutant.insert(b"neither 0 nor 1")
        replace_filter(path, 0, mutant, column=column.index)
        (finding,) = findings(path, "false-negatives")
        assert finding.column == "flag"
        assert finding.fix is not None
        assert finding.fix.verb == "remove_filters"


class TestUnreferencedBytes:
    """Each file has dead bytes between its last page and its first filter."""

    RULE = "unreferenced-bytes"

    def make(
        self,
        path: Path,
        dead: bytes | int,
        *,
        rows: int = 1000,
        metadata: dict[str, str] | None = None,
    ) -> Path:
        """Write a file with these dead bytes, or this number of zeros."""
        pages, body = write(path, {"c": shuffled(rows)}), bytearray()
        with ParquetFile.open(pages) as file:
            body += file.source.read(0, file.footer.start) + (
                bytes(dead) if isinstance(dead, int) else dead
            )
            footer, places = file.footer.raw, {}
            for row_group in range(ROW_GROUPS):
                bloom = BloomFilter.empty(2048)
                header = build_header(bloom.num_bytes)
                places[row_group, 0] = FilterPlace(len(body), len(header) + bloom.num_bytes)
                body += header + bytes(bloom.bitset)
        raw = set_filters(footer, places)
        path.write_bytes(bytes(body) + raw + build_tail(raw))
        return edit_footer(path, lambda footer: set_key_values(footer, metadata or {}))

    def evidence(self, path: Path) -> list[str]:
        return [each.fact for finding in findings(path, self.RULE) for each in finding.evidence]

    def outcome(self, path: Path) -> tuple[str, str | None]:
        report = check(path, Policy(select=(self.RULE,)))
        return next(
            (entry.outcome, entry.reason) for entry in report.rules if entry.rule == self.RULE
        )

    def test_it_begins_at_64_kib(self, tmp_path):
        path = self.make(tmp_path / "f.parquet", (64 << 10) - 1)
        assert self.outcome(path) == ("passed", None)
        path = self.make(tmp_path / "f.parquet", 64 << 10)
        start = 4 + sum(column.length for column in owned_ranges(ParquetFile.open(path).footer))
        (fact,) = self.evidence(path)
        assert re.fullmatch(
            rf"65,536 bytes, \d+\.\d % of the file, from byte {start:,}: unknown \(65,536\)", fact
        ), fact
        (finding,) = findings(path, self.RULE)
        assert (finding.column, finding.fix, finding.severity) == (None, None, "info")

    def test_what_a_key_value_entry_names_belongs_to_another_program(self, tmp_path):
        index = b"IDX1" + bytes(128 << 10)
        (fact,) = self.evidence(
            self.make(
                tmp_path / "f.parquet", index, metadata={"rows": "17", "schema": "AAA4100BBB="}
            )
        )
        start = int(re.search("from byte ([0-9,]+)", fact)[1].replace(",", ""))
        path = tmp_path / "f.parquet"
        assert self.evidence(self.make(path, index, metadata={"index": str(start)})) == []
        assert (
            self.evidence(
                self.make(
                    path,
                    index,
                    metadata={"index": f'{{"offset": {start}, "length": {len(index)}}}'},
                )
            )
            == []
        )
        assert self.evidence(self.make(path, index, metadata={"index": str(start - 1)})) == [fact]
