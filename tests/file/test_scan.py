"""A scan answers for many plain files as opening each of them does, or declines."""

from __future__ import annotations

import ast
import os
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import SbbfError
from sbbf_tool.file import layout, scan, scan_kinds
from sbbf_tool.file.context import Context
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import footer_structs, large_footers
from sbbf_tool.parquet.idl.ttypes import FileMetaData, Statistics
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.run import run
from sbbf_tool.storage.journal import journal_of
from sbbf_tool.storage.leftovers import temporary_path
from sbbf_tool.verbs.add_filter import AddFilter, add_filters
from sbbf_tool.verbs.check import Check
from sbbf_tool.verbs.probe import Probe
from sbbf_tool.verbs.verb import COMPARE_SCANS
from support.corpus_edits import edit_footer
from support.defects import DEFECTS, SOUND
from support.scans import (
    QUICK_POLICIES,
    Compared,
    compare,
    compare_fitting_files,
    compare_mutants,
    join,
    mutants,
    sample,
    split,
)
from support.tables import each

pytestmark = pytest.mark.skipif(not scan.can_scan(), reason="the extension _scan was not built")

VALUES = ("0", "1", "7", "42", "name 7", "a", "-1.5", "2024-01-01", "2024-01-01 00:00:00", "0x00ff")


def scanned(verb: Probe | Check, paths: list[str], **given: Any) -> list[Any]:
    """Return the report of each file, or None."""
    scan_files = verb.scanner(Context(**given))
    assert scan_files is not None
    return list(scan_files(paths))


def write(path: Path, ids: Any, **options: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    filters = {"id": {"ndv": 100, "fpp": 0.001}}
    pq.write_table(pa.table({"id": ids}), path, bloom_filter_options=filters, **options)
    return str(path)


# --- The same answers ---


def _compare_files(paths: list[Path], values: tuple[str, ...] = VALUES) -> Compared:
    """Compare the answers of files of any kind for all their columns."""
    total = Compared()
    for path in paths:
        try:
            with ParquetFile.open(path) as file:
                columns = [column.name for column in file.footer.columns]
        except SbbfError:
            columns = ["id"]
        for policy in QUICK_POLICIES:
            total += _compare_or_fail_alike(Check(policy), str(path))
        for name in columns[:40]:
            for value in values:
                for verb in (
                    Probe(name, [value]),
                    Probe(name, [value, "8"], filters_only=True),
                    Probe(name, [value, "8"], confirm=True, rows=True),
                ):
                    total += _compare_or_fail_alike(verb, str(path))
    return total


def _compare_or_fail_alike(verb: Probe | Check, path: str) -> Compared:
    """Compare the answers of a file; a scan declines a file that cannot be queried."""
    try:
        verb.carry(path, Context(strict=False))
    except SbbfError:
        assert scanned(verb, [path]) == [None]
        return Compared(declined=1)
    return compare(verb, [path])


@each("values", [("42", "name 7")], heavy=[VALUES])
def test_fixtures(fixtures, values):
    paths = sorted(path for path in fixtures.rglob("*.parquet") if path.is_file())
    assert _compare_files(paths, values).answered > 100


@pytest.mark.heavy
def test_the_conformance_corpus(conformance):
    paths = sorted(path for path in conformance.rglob("*.parquet") if path.is_file())
    assert _compare_files(paths).answered > 1000


def test_generated_and_damaged_files(tmp_path):
    counts = compare_mutants(tmp_path, 1, rounds=12)
    assert counts["answered"] > 200
    assert counts["without"] > 20


def test_filters_that_fit_are_those_without_findings(tmp_path):
    counts = compare_fitting_files(tmp_path, 1, rounds=120)
    assert counts["answered"] > 50
    assert counts["without"] > 50
    assert counts["declined"] > 100
    counts = compare_fitting_files(tmp_path, 2, rounds=12, num_mutants=16)
    assert min(counts["answered"], counts["without"]) > 20


@pytest.mark.nightly(minutes=10)
@each("seed", range(4))
def test_many_files_with_filters(tmp_path, seed):
    assert compare_fitting_files(tmp_path, 10 + seed, rounds=2000)["answered"] > 1000
    assert compare_fitting_files(tmp_path, 20 + seed, rounds=400, num_mutants=8)["answered"] > 1000


@pytest.mark.nightly(minutes=40)
@each("seed", range(8))
def test_two_million_answers(tmp_path, seed):
    given = 0
    rounds = 0
    while given < 250_000:
        counts = compare_mutants(tmp_path, 1000 * (seed + 1) + rounds, rounds=100)
        given += counts.total()
        rounds += 1


# --- What answers ---


def _write_pandas(path: Path, ids: range) -> None:
    pandas = pytest.importorskip("pandas")
    names = [f"n{number}" for number in ids]
    frame = pandas.DataFrame({"id": ids, "name": names}, index=range(ids.start, ids.stop))
    frame.to_parquet(path, engine="pyarrow")


def _write_polars(path: Path, ids: range) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame({"id": ids, "name": [f"n{number}" for number in ids]}).write_parquet(path)


def _write_duckdb(path: Path, ids: range) -> None:
    duckdb = pytest.importorskip("duckdb")
    duckdb.sql(
        f"copy (select i as id, 'n' || i as name from range({ids.start}, {ids.stop}) t(i)) "
        f"to '{path}' (format parquet)"
    )


def _write_pyarrow(path: Path, ids: range) -> None:
    table = pa.table({"id": ids, "name": [f"n{number}" for number in ids]})
    filters = {"id": {"ndv": len(ids), "fpp": 0.001}, "name": {"ndv": len(ids), "fpp": 0.001}}
    pq.write_table(table, path, row_group_size=40, bloom_filter_options=filters)


def _write_older_pyarrow(path: Path, ids: range) -> None:
    pq.write_table(pa.table({"id": ids, "name": [f"n{number}" for number in ids]}), path)


@each(
    "write_file",
    [_write_pandas, _write_polars, _write_duckdb, _write_pyarrow, _write_older_pyarrow],
)
def test_no_plain_file_declines_whose_statistics_or_filters_exclude(tmp_path, write_file):
    paths = [str(tmp_path / f"{number}.parquet") for number in range(20)]
    for number, path in enumerate(paths):
        write_file(Path(path), range(number * 100, number * 100 + 100))
    assert compare(Probe("id", [5_000]), paths) == (20, 20, 0)
    assert compare(Probe("name", ["zzz"]), paths) == (20, 20, 0)


def test_no_file_with_a_filter_declines(fixtures, tmp_path):
    """Those of other writers, with a value that the column holds and one that it does not."""
    paths = [
        fixtures / f"{writer}-filters.parquet" for writer in ("duckdb", "datafusion", "pyarrow")
    ]
    for path in (*paths, fixtures / "spark-filters.parquet"):
        with ParquetFile.open(path) as file:
            places = file.footer.filter_places()
            names = {file.footer.columns[column].name for _, column in places}
            num_row_groups = file.footer.num_row_groups
        for name in sorted(names):
            if (
                sum(file.footer.columns[column].name == name for _, column in places)
                < num_row_groups
            ):
                continue
            for value in ("1", "name 7", "1.5"):
                report = Probe(name, [value])(path, strict=False)
                if not report.queried[0].verdict:
                    assert compare(Probe(name, [value]), [str(path)]).declined == 0, (path, name)


def test_many_values_have_the_hits_of_each_row_group(tmp_path):
    path = write(tmp_path / "a.parquet", range(100), row_group_size=20)
    assert compare(Probe("id", list(range(50, 150))), [path]) == (1, 0, 0)
    [report] = scanned(Probe("id", [25, 99, 1000]), [path])
    assert [(hit.value, hit.row_groups) for hit in report.hits] == [("25", (1,)), ("99", (4,))]


def test_very_many_hits(tmp_path):
    path = write(tmp_path / "a.parquet", range(3000), row_group_size=1000)
    verb = Probe("id", list(range(-10, 5000)))
    assert compare(verb, [path]) == (1, 0, 0)
    [report] = scanned(verb, [path])
    assert len(report.hits) >= 3000


def test_the_smallest_numbers_of_float16(tmp_path):
    ids = pa.array([number / 2**24 for number in (-3, -1, 1, 3)], pa.float16())
    path = write(tmp_path / "a.parquet", ids)
    for number in (-3, -2, -1, 1, 2, 3):
        is_stored = number % 2 == 1
        verb = Probe("id", [number / 2**24])
        assert compare(verb, [path]) == (1, not is_stored, 0)


@each("low, high", [(-300, 255), (50, 255), (-256, -128), (-129, 128)])
def test_the_sign_of_decimals_is_in_their_first_byte(tmp_path, low, high):
    """In two bytes, 255 has the first bit of its second byte set."""
    ids = pa.array(map(Decimal, (low, high)), pa.decimal128(4, 0))
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ids}), path)
    for value in (-301, -257, -200, -100, 0, 100, 200, 300, low, high):
        is_between = low <= value <= high
        verb = Probe("id", [Decimal(value)])
        # Without a filter, a file that its bounds do not exclude is opened.
        assert compare(verb, [path]) == ((0, 0, 1) if is_between else (1, 1, 0))


@each("name", ["min", "max", "min_value", "max_value"])
def test_bounds_contradict_a_chunk_of_nulls(tmp_path, name):
    path = write(tmp_path / "a.parquet", [5, 7])

    def contradict(metadata: FileMetaData) -> None:
        statistics = Statistics(null_count=2)
        setattr(statistics, name, (5).to_bytes(8, "little"))
        metadata.row_groups[0].columns[0].meta_data.statistics = statistics

    edit_footer(Path(path), contradict)
    assert compare(Probe("id", [6]), [path]) == (1, 1, 0)
    assert compare(Probe("id", [7]), [path]) == (1, 0, 0)


def test_rows_of_more_values_than_a_chunk_has_and_without_filters(tmp_path):
    path = write(tmp_path / "a.parquet", [3, None, 7, 3, 1000], row_group_size=2)
    bare = str(tmp_path / "bare.parquet")
    pq.write_table(pa.table({"id": [5, 7, 7, None, 101]}), bare)
    for values in (range(100), [7], [101, 1000, 6]):
        assert compare(Probe("id", values, rows=True), [path, bare]) == (2, 0, 0)
    verb = Probe("id", list(range(100)), rows=True)
    reports = scanned(verb, [path, bare])
    assert [[row.row for row in report.rows] for report in reports] == [[0, 2, 3], [0, 1, 2]]


@each("options", [{"confirm": True, "also": {"name": ["b"]}}, {"also": {"name": ["b"]}}])
def test_files_that_are_excluded_are_not_read(tmp_path, options):
    path = str(tmp_path / "a.parquet")
    filters = {"id": {"ndv": 100, "fpp": 0.001}}
    table = pa.table({"id": range(0, 100, 2), "name": ["a"] * 50})
    pq.write_table(table, path, bloom_filter_options=filters)
    assert compare(Probe("id", [13, 999], **options), [path]) == (1, 1, 0)
    assert scanned(Probe("id", [14], **options), [path]) == [None]


# --- Certain answers ---

CONFIRMED: dict[str, pa.Array] = {
    "integers": pa.array([*range(40), None, 7, 7, -1] * 5, pa.int64()),
    "narrow": pa.array([*range(40), None, 7] * 5, pa.int8()),
    "unsigned": pa.array([*range(40), 2**64 - 1, 7] * 5, pa.uint64()),
    "texts": pa.array([f"text {n % 50}" if n % 3 else None for n in range(300)]),
    "empty": pa.array(["", "a", None, ""] * 50),
    "fixed": pa.array([b"%04d" % (n % 90) for n in range(200)], pa.binary(4)),
    "decimals": pa.array([Decimal(n) for n in range(-50, 50)] * 3, pa.decimal128(22, 2)),
    "dates": pa.array(range(200), pa.date32()),
}


@each("column", CONFIRMED)
def test_the_column_is_read_where_values_may_be(tmp_path, column):
    """In pages of every form, with several row groups, and for values that are there more than
    once, in the question or in the file."""
    paths = []
    for number, options in enumerate(
        [
            {},
            {"use_dictionary": False},
            {"compression": "none", "data_page_version": "2.0"},
            {"data_page_size": 1, "write_batch_size": 3, "write_page_checksum": True},
            {"dictionary_pagesize_limit": 20, "write_batch_size": 16, "row_group_size": 70},
            *({"compression": codec} for codec in ("zstd", "gzip", "brotli")),
        ]
    ):
        path = tmp_path / f"{number}.parquet"
        table = pa.table({"id": column, "other": range(len(column))})
        filters = {"id": {"ndv": 100, "fpp": 0.05}}
        pq.write_table(table, path, bloom_filter_options=filters, **options)
        paths.append(str(path))
    stored = column.drop_null().unique().to_pylist()
    values = [*stored, *stored[:3]]
    for verb in (
        Probe("id", values, confirm=True),
        Probe("id", values, rows=True),
        Probe("id", stored[-1:], confirm=True, rows=True),
    ):
        assert compare(verb, paths) == (len(paths), 0, 0)
    [report] = scanned(Probe("id", values, rows=True), paths[:1])
    assert len({row.row for row in report.rows}) == len(column) - column.null_count


def test_a_column_that_is_read_is_searched_for_all_values(tmp_path):
    """Also for those that wrong statistics exclude."""
    path = write(tmp_path / "a.parquet", [5, 100])

    def understate(metadata: FileMetaData) -> None:
        statistics = metadata.row_groups[0].columns[0].meta_data.statistics
        statistics.max_value = statistics.max = (50).to_bytes(8, "little")

    edit_footer(Path(path), understate)
    verb = Probe("id", [5, 100], confirm=True)
    assert compare(verb, [path]) == (1, 0, 0)
    assert [hit.value for hit in scanned(verb, [path])[0].hits] == ["5", "100"]
    assert scanned(Probe("id", [100], confirm=True), [path])[0].is_absent


def test_a_dictionary_with_a_wrong_checksum_is_not_believed(tmp_path):
    path = tmp_path / "a.parquet"
    ids = [f"text {number}" for number in range(10)]
    write(path, ids, compression="none", write_page_checksum=True)
    data = path.read_bytes()
    assert data.count(b"text 5") == 1
    path.write_bytes(data.replace(b"text 5", b"text X"))
    for value in ("text 4", "text 5"):
        verb = Probe("id", [value], confirm=True)
        assert scanned(verb, [str(path)]) == [None]
        (message,) = verb(path).unreadable
        assert "dictionary page at byte 4: the checksum does not match" in message


def test_many_certain_rows(tmp_path):
    """More rows than a report has at once."""
    path = write(tmp_path / "a.parquet", [n % 2000 for n in range(6000)], row_group_size=4000)
    verb = Probe("id", list(range(1500)), rows=True)
    assert compare(verb, [path]) == (1, 0, 0)
    [report] = scanned(verb, [path])
    assert len(report.rows) == 4500
    assert {hit.count for hit in report.hits} == {3}


@each(
    "column, options",
    [
        (pa.array([1.5, -0.0] * 9), {}),
        (pa.array([[1], [2, 1]] * 9), {}),
        (pa.array(range(18)), {"compression": "lz4"}),
        (pa.array(range(18)), {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}),
    ],
)
def test_other_columns_are_read_by_opening_the_file(tmp_path, column, options):
    path = write(tmp_path / "a.parquet", column, **options)
    name = "id.list.element" if pa.types.is_list(column.type) else "id"
    verb = Probe(name, ["1", "1.5"], confirm=True)
    assert compare(verb, [path]).declined == 1


def test_a_limit_of_pages_is_for_opened_files(tmp_path):
    path = write(tmp_path / "a.parquet", range(50))
    verb = Probe("id", ["5"], confirm=True)
    assert scanned(verb, [path], limit=PageLimit(10)) == [None]
    assert scanned(verb, [path]) != [None]


def test_warnings_depend_on_the_bounds_of_the_file(tmp_path):
    """A UUID may be stored without hyphens; a file whose texts have them gives no warning."""
    digits = [f"{n:032x}" for n in range(9)]
    texts = [f"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}" for t in digits]
    paths = []
    for number, ids in enumerate([texts, digits, ["other"], texts]):
        options = {"write_statistics": number < 3}
        paths.append(write(tmp_path / f"{number}.parquet", ids, **options))
    assert compare(Probe("id", texts[:1]), paths) == (4, 2, 0)
    reports = scanned(Probe("id", texts[:1]), paths)
    assert [bool(report.warnings) for report in reports] == [False, True, True, True]


# --- What declines ---


def test_what_is_no_plain_file_is_declined(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "short").write_bytes(b"PAR1")
    (tmp_path / "text").write_bytes(b"no Parquet file at all")
    names = [str(tmp_path / name) for name in ("fifo", "short", "text", "missing", "")]
    plain = write(tmp_path / "a.parquet", range(5))
    paths = [*names, str(tmp_path), "", "a\0b", f"file://{plain}", plain]
    answers = scanned(Probe("id", [99]), paths)
    assert answers[:-1] == [None] * (len(paths) - 1)
    assert answers[-1].is_absent


def test_folders_that_state_the_column_are_declined(tmp_path):
    stated = write(tmp_path / "ID=99" / "a.parquet", range(5))
    other = write(tmp_path / "day=1" / "a.parquet", range(5))
    answers = scanned(Probe("id", [99]), [stated, other])
    assert answers[0] is None
    assert answers[1].is_absent


def test_files_of_too_many_kinds_are_declined(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "_MOST_KINDS", 3)
    paths = []
    for number in range(6):
        path = tmp_path / f"{number}.parquet"
        filters = {"id": {"ndv": 100, "fpp": 0.001}}
        table = pa.table({"id": range(5)}).replace_schema_metadata({"k": str(number)})
        pq.write_table(table, path, bloom_filter_options=filters)
        paths.append(str(path))
    answers = scanned(Probe("id", [99]), paths)
    assert [answer is None for answer in answers] == [False] * 3 + [True] * 3


def test_values_that_cannot_be_compared_with_the_column_are_not_scanned(tmp_path):
    path = write(tmp_path / "a.parquet", range(5))
    all_values = Probe("id", [1, 9], compares=lambda column: True)
    assert compare(all_values, [path]) == (1, 0, 0)
    some_values = Probe("id", [1, 9], compares=lambda column: (1).__eq__)
    assert compare(some_values, [path]) == (0, 0, 1)


@each("bounds", [(1, 300), (-300, 5), (-300, 300)])
def test_bounds_that_a_narrow_type_does_not_have_are_declined(tmp_path, bounds):
    """Readers show such numbers as other ones."""
    path = write(tmp_path / "a.parquet", pa.array([1, 5], pa.int8()))

    def widen(metadata: FileMetaData) -> None:
        statistics = metadata.row_groups[0].columns[0].meta_data.statistics
        low, high = (number.to_bytes(4, "little", signed=True) for number in bounds)
        statistics.min_value = statistics.min = low
        statistics.max_value = statistics.max = high

    assert scanned(Probe("id", [44]), [path])[0].is_absent
    edit_footer(Path(path), widen)
    assert scanned(Probe("id", [44]), [path]) == [None]
    assert not Probe("id", [44])(path).is_absent


def test_drafts_are_not_scanned():
    assert Probe("id", [1], dialect="draft1-raw").scanner(Context()) is None


def test_keys_and_every_column_are_not_scanned():
    assert Probe(None, [1]).scanner(Context()) is None
    assert Probe("id", [1]).scanner(Context(keys={"footer": b"0" * 16})) is None


def test_a_filter_without_a_length_may_run_into_the_next_one(tmp_path):
    path = tmp_path / "a.parquet"
    ids = list(range(0, 200, 2))
    filters = {name: {"ndv": 100, "fpp": 0.01} for name in ("first", "v")}
    table = pa.table({"first": ids, "v": ids})
    pq.write_table(table, path, bloom_filter_options=filters, use_dictionary=False)
    start, metadata = split(path.read_bytes())
    first, second = (chunk.meta_data for chunk in metadata.row_groups[0].columns)
    first.bloom_filter_length = second.bloom_filter_length = None
    path.write_bytes(join(start, metadata))
    assert compare(Probe("v", [101]), [str(path)]).answered == 1
    offset = second.bloom_filter_offset
    header = start[offset : offset + 16]
    first.bloom_filter_offset = offset - 40
    data = start[: offset - 40] + header + start[offset - 24 :]
    path.write_bytes(join(data, metadata))
    assert scanned(Probe("v", [101]), [str(path)]) == [None]
    assert not Probe("v", [101])(path).is_absent


def test_a_filter_that_runs_into_the_footer_is_declined(tmp_path):
    path = tmp_path / "a.parquet"
    filters = {"v": {"ndv": 100, "fpp": 0.01}}
    table = pa.table({"v": range(0, 200, 2)})
    pq.write_table(table, path, bloom_filter_options=filters, use_dictionary=False)
    start, metadata = split(path.read_bytes())
    meta = metadata.row_groups[0].columns[0].meta_data
    offset = meta.bloom_filter_offset
    meta.bloom_filter_length = None
    path.write_bytes(join(start, metadata))
    assert compare(Probe("v", [101]), [str(path)]).answered == 1
    assert start[offset : offset + 3] == b"\x15\x80\x02"  # 128 bytes
    data = start[:offset] + b"\x15\x80\x04" + start[offset + 3 :]
    path.write_bytes(join(data, metadata))
    assert scanned(Probe("v", [101]), [str(path)]) == [None]
    assert Probe("v", [101])(path).unreadable


# --- Runs ---


def _rows(paths: list[str], **options: Any) -> list[tuple[Any, ...]]:
    rows = []
    for row in run(Probe("id", [31, 62]), paths, **options):
        report = None if row.report is None else (row.report.hits, row.report.inconclusive)
        rows.append((row.path, row.status, row.reason, report))
    return rows


@each("jobs", [1, 2])
def test_a_run_has_the_same_rows_in_the_same_order(tmp_path, monkeypatch, jobs):
    paths = []
    for number in range(70):
        path = tmp_path / f"{number:02}.parquet"
        paths.append(write(path, range(number, number + 2)))
        if number % 7 == 3:
            path.write_bytes(path.read_bytes()[:-1])
        elif number % 7 == 5:
            pq.write_table(pa.table({"id": [0, 99]}), path)
    monkeypatch.setattr("sbbf_tool.running.local.FILES_PER_SCAN", 8)
    monkeypatch.setattr("sbbf_tool.running.local._FILES_OF_TRIAL", 16)
    monkeypatch.setattr("sbbf_tool.running.local._FILES_PER_SEGMENT", 24)
    answers = _rows(paths, jobs=jobs)
    monkeypatch.setattr(scan, "can_scan", lambda: False)
    assert answers == _rows(paths, jobs=jobs)
    assert [path for path, *_ in answers] == paths


def test_where_a_scan_answers_for_few_files_it_ends(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [0, 99]}), path)
    paths = []
    for number in range(60):
        paths.append(str(tmp_path / f"{number:02}.parquet"))
        os.link(path, paths[-1])
    monkeypatch.setattr("sbbf_tool.running.local._FILES_OF_TRIAL", 40)
    names = []
    really = scan.FileScan.__call__

    def noting(self: scan.FileScan, paths: list[str]) -> Any:
        names.extend(paths)
        return really(self, paths)

    monkeypatch.setattr(scan.FileScan, "__call__", noting)
    assert [path for path, *_ in _rows(paths)] == paths
    assert names == paths[:40]


def test_the_variable_compares_both_ways(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", range(5))
    monkeypatch.setenv(COMPARE_SCANS, "1")
    assert Probe("id", [99])(path).is_absent
    monkeypatch.setattr(scan.ScannedFile, "row_groups", 7)
    with pytest.raises(AssertionError, match="the scan answers"):
        Probe("id", [99])(path)


# --- Filters that fit ---


def _write_parts(path: Path, parts: list[range]) -> str:
    """Write a row group for each of these ranges."""
    ids = [7919 * number for part in parts for number in part]
    filters = {"id": {"ndv": len(parts[0]), "fpp": 0.01}}
    pq.write_table(
        pa.table({"id": ids}),
        path,
        row_group_size=len(parts[0]),
        use_dictionary=False,
        bloom_filter_options=filters,
    )
    return str(path)


def _findings(path: str, example: str) -> list[str]:
    """Return the rules of the findings, after a comparison with the answer of a scan that knows the
    kind of the file by an example."""
    verb = Check(Policy(quick=True))
    assert compare(verb, [example, path]).answered > 0
    return [finding.rule for finding in verb(path).findings]


@each(
    "starts, rules",
    [
        ((0, 400, 800), ["sorted-column"]),
        ((800, 400, 0), ["sorted-column"]),
        ((400, 0, 800), ["sorted-column"]),
        ((0, 399, 800), []),
        ((800, 401, 2), []),
    ],
)
def test_a_column_may_be_sorted_in_either_direction(tmp_path, starts, rules):
    example = _write_parts(tmp_path / "example.parquet", [range(400)] * 3)
    parts = [range(start, start + 400) for start in starts]
    assert _findings(_write_parts(tmp_path / "a.parquet", parts), example) == rules


@each("defect", sorted(DEFECTS.keys() - {"over-128-mib"}))
def test_a_sound_file_of_the_same_kind_hides_no_defect(tmp_path, defect):
    path = tmp_path / f"{defect}.parquet"
    DEFECTS[defect].make(path)
    _findings(str(path), str(SOUND))


def test_a_filter_may_be_larger_than_the_data_of_its_row_group(tmp_path):
    paths = []
    for encoding in ("PLAIN", "DELTA_BINARY_PACKED"):
        path = str(tmp_path / f"{encoding}.parquet")
        options = {"use_dictionary": False, "column_encoding": encoding}
        filters = {"id": {"ndv": 400, "fpp": 0.01}}
        pq.write_table(pa.table({"id": range(400)}), path, bloom_filter_options=filters, **options)
        paths.append(path)
    assert _findings(paths[1], paths[0]) == ["larger-than-chunk"]


@each("place", ["first", "last"])
def test_unreferenced_bytes_are_reported_wherever_they_are(tmp_path, place):
    example = _write_parts(tmp_path / "example.parquet", [range(400)] * 2)
    start, metadata = split(Path(example).read_bytes())
    unreferenced = bytes(64 << 10)
    if place == "last":
        data = join(start + unreferenced, metadata)
    else:
        for row_group in metadata.row_groups:
            meta = row_group.columns[0].meta_data
            meta.data_page_offset += len(unreferenced)
            meta.bloom_filter_offset += len(unreferenced)
        data = join(start[:4] + unreferenced + start[4:], metadata)
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    assert _findings(str(path), example) == ["unreferenced-bytes"]


# --- Filters that are there ---


def _lake_with_filters(folder: Path, count: int) -> list[str]:
    paths = []
    for number in range(count):
        path = folder / f"{number:02}.parquet"
        pq.write_table(pa.table({"id": range(number, number + 300), "x": ["x"] * 300}), path)
        add_filters(path, ["id"], in_place=True)
        paths.append(str(path))
    return paths


def _complete(paths: list[str], **options: Any) -> list[bool]:
    """Return of each file whether the scan finds that it has the filters."""
    scan_files = AddFilter(FilterSpec("id")).scanner(
        Context(strict=False), None, Edit(in_place=True, **options)
    )
    assert scan_files is not None
    return [report is not None for report in scan_files(paths)]


@each("options", [{}, {"dry_run": True}, {"append": True}])
def test_files_that_have_every_filter_are_not_opened(tmp_path, options):
    paths = _lake_with_filters(tmp_path, 4)
    edit = Edit(in_place=True, **options)
    assert compare(AddFilter(FilterSpec("id")), paths, edit=edit).declined == 0
    assert compare(AddFilter(FilterSpec("id"), rebuild="weak"), paths, edit=edit).declined == 0
    assert compare(AddFilter(FilterSpec(("id", "no"))), paths, edit=edit).declined == 0
    assert compare(AddFilter(FilterSpec("x")), paths, edit=edit).declined == 4
    assert compare(AddFilter(FilterSpec("id", fpp=1e-6)), paths, edit=edit).declined == 4


def test_other_changes_are_not_scanned(tmp_path):
    verb = AddFilter(FilterSpec("id"))
    for edit in (None, Edit(output=f"{tmp_path}/"), Edit(in_place=True, allow_table_files=True)):
        assert verb.scanner(Context(), None, edit) is None
    edit = Edit(in_place=True)
    assert AddFilter(FilterSpec("id"), rebuild="all").scanner(Context(), None, edit) is None
    spec = FilterSpec("id", share_of_data=0.5)
    assert AddFilter(spec).scanner(Context(), None, edit) is None


def test_what_killed_commands_left_is_removed_or_undone(tmp_path):
    """Also beside files that are not opened."""
    paths = _lake_with_filters(tmp_path, 3)
    left = Path(temporary_path(paths[0]))
    left.write_bytes(b"")
    Path(journal_of(paths[1])).write_bytes(b"no journal")
    assert _complete(paths) == [True, False, True]
    assert not left.exists()


def test_files_that_must_not_be_changed_are_refused(tmp_path):
    paths = _lake_with_filters(tmp_path, 2)
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "00000000000000000000.json").write_text("{}")
    assert _complete(paths) == [False, False]


def test_a_run_finds_the_file_that_lacks_a_filter(tmp_path):
    paths = _lake_with_filters(tmp_path, 34)
    pq.write_table(pa.table({"id": range(300), "x": ["x"] * 300}), paths[20])
    summary = run(AddFilter(FilterSpec("id")), paths, edit=Edit(in_place=True), jobs=1)
    assert (summary.files["ok"], summary.files["skipped"]) == (1, 33)
    assert _complete(paths) == [True] * 34


# --- Kinds ---


def test_no_judgment_of_a_probe_reads_a_key_value_that_decides_no_kind():
    looked_up = set(scan_kinds.LEFT_OUT) & set(large_footers._KEYS_READ)
    assert looked_up == {"ARROW:schema"}
    package = Path(scan.__file__).parents[1]
    readers = set()
    for path in package.rglob("*.py"):
        if "arrow_schema" not in path.read_text():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "sbbf_tool.parquet.arrow_schema":
                readers.add(path.relative_to(package).parts[0])
    assert readers == {"advice", "query_engines", "verbs"}
    for path in ((package / "verbs" / "probe.py"), *(package / "file").glob("*.py")):
        assert "arrow_schema" not in path.read_text()


def test_the_kind_of_a_footer_is_the_same_for_other_row_groups(tmp_path):
    keys = set()
    for number in range(3):
        path = write(tmp_path / "a.parquet", range(number * 10 + 1), row_group_size=number + 1)
        with ParquetFile.open(path) as file:
            keys.add(scan_kinds.key_of_kind(file.footer))
    assert len(keys) == 1
    assert None not in keys


def test_invalid_arguments_are_refused():
    table = footer_structs.table_of_structs()
    kind = (b"", bytes(72), b"", b"", b"")
    for arguments in (
        (b"a", (), table, b"", ()),
        (b"a\0", (kind,), table, b"", ()),
        (b"a\0", ((b"",),), table, b"", ()),
        (b"a\0", (), table[1:], b"", ()),
    ):
        with pytest.raises(ValueError, match=r"NUL|not a table"):
            scan._scan.scan(*arguments)


def test_kinds_with_random_numbers_are_refused_or_answer(tmp_path):
    path = write(tmp_path / "a.parquet", range(5))
    table = footer_structs.table_of_structs()
    with ParquetFile.open(path) as file:
        key = scan_kinds.key_of_kind(file.footer)
    choose = random.Random(1)
    assert key is not None
    for _ in range(2000):
        numbers = [choose.choice((0, 1, 2, 3, 4, 5, 8, 63, -1)) for _ in range(9)]
        packed = b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)
        keys, offsets = (choose.randbytes(8 * choose.randrange(4)) for _ in range(2))
        kind = (key, packed, keys, offsets, choose.randbytes(8 * choose.randrange(4)))
        try:
            scan._scan.scan(os.fsencode(path) + b"\0", (kind,), table, b"", ())
        except ValueError:
            continue


# --- Places ---


def _shared_filters(path: Path) -> list[bool]:
    """Return of each filter of a file whether it shares bytes with other contents."""
    shared = []
    with ParquetFile.open(path) as file:
        for row_group, column in file.footer.filter_places():
            try:
                stored = file.stored_filter(row_group, file.footer.columns[column])
            except SbbfError:
                continue
            if stored is not None:
                shared.append(layout.shares_bytes(file, stored))
    return shared


def test_places_by_the_extension_are_those_of_the_footer(tmp_path, monkeypatch):
    choose = random.Random(5)
    path = tmp_path / "a.parquet"
    seen = Counter[bool]()
    for name in ("int64", "string", "double") * 4:
        made = sample(tmp_path, name, choose)
        for data in (made.data, *mutants(made.data, choose, 40)):
            path.write_bytes(data)
            try:
                shared = _shared_filters(path)
            except SbbfError:
                continue
            seen.update(shared)
            with monkeypatch.context() as patch:
                patch.setattr(layout, "_scan", None)
                assert _shared_filters(path) == shared
    assert min(seen[True], seen[False]) > 20
