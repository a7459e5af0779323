"""Files that contradict themselves or the format.

A footer that contradicts itself or its pages: a reader would stop early, and a filter would miss
the rest.

Filters without a set bit: they exclude every value, so they answer nothing about a column chunk
that has values.

Footers without repetition types: the same values as in pyarrow and DuckDB, or a refusal.

Dictionaries with repeated entries, as DuckDB 2.0.1 writes them for an ENUM: as dictionaries,
pyarrow decodes them to other values.

Numbers that are stored outside the range of their annotation: what readers show for them is found,
and so is what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import fastparquet
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UnreadableError, add_filters, explain, inspect, probe, prune, verify
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    DateType,
    Encoding,
    FileMetaData,
    IntType,
    LogicalType,
    MicroSeconds,
    MilliSeconds,
    PageType,
    TimeType,
    TimeUnit,
    Type,
)
from support.corpus_edits import annotate, decimal, edit_footer
from support.samples import ROWS, stored, write_column, write_events
from support.tables import each
from verbs.bad_files import assert_refused


@each("num_values", [0, 99, 101, -100, 2**62])
def test_a_chunk_that_counts_other_values_than_rows(plain, tmp_path, num_values):
    def count(metadata: FileMetaData) -> None:
        metadata.row_groups[1].columns[0].meta_data.num_values = num_values

    edit_footer(plain, count)
    work = lambda: add_filters(plain, ["id"], in_place=True)  # noqa: E731
    message = f"the footer states {num_values:,} values in 100 rows"
    assert_refused(
        work,
        tmp_path,
        message=message,
        hint="",
        place="column id, row group 1",
        error=UnreadableError,
    )


@each(
    "physical_type, words",
    [(Type.INT32, "INT32"), (Type.BYTE_ARRAY, "BYTE_ARRAY"), (99, "type 99"), (None, "no type")],
)
def test_a_chunk_of_another_type_than_its_column(plain, tmp_path, physical_type, words):
    """From the footer, before a page is read: the pages of the first row group would be in
    order."""

    def change(metadata: FileMetaData) -> None:
        metadata.row_groups[1].columns[0].meta_data.type = physical_type

    edit_footer(plain, change)
    add_filters(plain, ["score"], in_place=True)
    message = f"the schema states INT64, but the column chunk states {words}"
    for work in (
        lambda: add_filters(plain, ["name", "id"], in_place=True),
        lambda: add_filters(plain, ["name", "id"], in_place=True, dry_run=True),
    ):
        assert_refused(
            work,
            tmp_path,
            message=message,
            hint="damaged",
            place="column id, row group 1",
            error=UnreadableError,
        )


def test_a_chunk_that_ends_between_two_pages(tmp_path):
    """Some readers stop there silently; others read the values of the pages that follow, so the
    filter must hold them."""
    path = write_column(
        tmp_path / "v.parquet",
        pa.array(range(4000)),
        use_dictionary=False,
        data_page_size=1000,
        write_batch_size=100,
        compression="none",
    )
    chunk = pq.read_metadata(path).row_group(0).column(0)
    pages = chunk.total_compressed_size // 20

    def shrink(metadata: FileMetaData) -> None:
        metadata.row_groups[0].columns[0].meta_data.total_compressed_size = pages * 2

    edit_footer(path, shrink)
    assert pq.read_table(path).num_rows == 400
    add_filters(path, ["v"], in_place=True)
    assert not any(value.is_absent for value in probe(path, "v", range(4000)).values)
    assert probe(path, "v", [-1], filters_only=True).is_absent


def test_pages_that_the_footer_takes_for_dictionary_encoded(tmp_path):
    """Where a dictionary grew too large, the pages behind hold their values themselves; the pages
    know, not the footer."""
    path = write_column(
        tmp_path / "v.parquet",
        pa.array([f"{n:020d}" for n in range(3000)]),
        dictionary_pagesize_limit=1000,
    )

    def claim(metadata: FileMetaData) -> None:
        for stats in metadata.row_groups[0].columns[0].meta_data.encoding_stats:
            if stats.page_type == PageType.DATA_PAGE:
                stats.encoding = Encoding.RLE_DICTIONARY

    edit_footer(path, claim)
    add_filters(path, ["v"], in_place=True)
    assert not any(
        value.is_absent for value in probe(path, "v", [f"{n:020d}" for n in range(3000)]).values
    )


REASON = "the filter is empty, but the column chunk has values"


def clear(path: Path, row_group: int, column: str) -> None:
    (stored,) = (
        each
        for each in inspect(path).filters
        if (each.row_group, each.column) == (row_group, column)
    )
    data = bytearray(path.read_bytes())
    start, length = stored.offset + stored.header_bytes, stored.bitset_bytes
    data[start : start + length] = bytes(length)
    path.write_bytes(data)


def answers(path: Path, column: str, values: Sequence[object]) -> set[tuple[str, str | None]]:
    """Return the distinct answers of the first row group with their reasons."""
    row_groups = [
        value.row_groups[0] for value in probe(path, column, values, filters_only=True).values
    ]
    return {(answer.answer, answer.reason) for answer in row_groups}


@pytest.fixture(params=[30, 800_000], ids=["small", "large"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file whose first filter is empty."""
    path = write_events(tmp_path / "events.parquet")
    add_filters(path, ["id"], in_place=True, ndv=request.param)
    clear(path, 0, "id")
    return path


# One value reads a block, some values read the bitset, and many are queried in bulk.
@each("count", [1, 100, ROWS])
def test_no_stored_value_is_absent(path: Path, count: int) -> None:
    assert answers(path, "id", range(count)) == {("cannot say", REASON)}
    report = probe(path, "id", range(count), filters_only=True)
    assert [(each.row_groups, each.answer, each.reason) for each in report.inconclusive] == [
        ((0,), "cannot say", REASON)
    ]


def test_explain_and_prune_do_not_skip_its_row_group(path: Path) -> None:
    first, *_ = explain(path, "id", 7).row_groups
    assert (first.filter, first.filter_reason) == ("cannot say", REASON)
    # Engines skip it, which is the defect.
    assert (
        next(
            engine for engine in explain(path, "id", 7).engines if engine.engine == "datafusion"
        ).harm
        == "loses rows"
    )
    assert prune([path], "id", 7).dataset().to_table()["id"].to_pylist()[1] == 7


def test_a_chunk_without_a_count_of_nulls_may_have_values(tmp_path: Path) -> None:
    path = write_column(tmp_path / "v.parquet", pa.array([1, None]), write_statistics=False)
    add_filters(path, ["v"], in_place=True)
    clear(path, 0, "v")
    assert answers(path, "v", [1]) == {("cannot say", REASON)}


WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]


@each("page_version", ["1.0", "2.0"])
@each("use_dictionary", [False, True])
def test_every_value_of_a_column_without_a_repetition_type_is_found(
    tmp_path, page_version, use_dictionary
):
    path = tmp_path / "f.parquet"
    x = pa.field("x", pa.int32(), nullable=False)
    schema = pa.schema(
        [pa.field("s", pa.string(), nullable=False), pa.field("g", pa.struct([x]), nullable=False)]
    )
    table = pa.table({"s": WORDS, "g": [{"x": number} for number in range(5)]}, schema)
    pq.write_table(table, path, use_dictionary=use_dictionary, data_page_version=page_version)

    def leave_out(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            element.repetition_type = None

    edit_footer(path, leave_out)
    assert pq.read_table(path).column("s").to_pylist() == WORDS
    add_filters(path, ["s", "g.x"], in_place=True)
    assert not any(
        answer.is_absent
        for answer in probe(path, "s", WORDS).values + probe(path, "g.x", list(range(5))).values
    )
    assert probe(path, "s", ["zeta"], filters_only=True).is_absent
    assert [
        duckdb.sql(f"select count(*) from '{path}' where s = '{word}'").fetchall() for word in WORDS
    ] == [[(1,)]] * 5


def test_files_of_fastparquet(tmp_path):
    """It leaves the field out for columns without nulls, but writes levels where the values are
    strings: every reader takes those for a value. Then the page holds as many values as it states,
    and bytes are left over.
    """
    path = tmp_path / "f.parquet"
    fastparquet.write(
        str(path),
        pd.DataFrame({"s": pd.Series(WORDS, dtype=object), "n": range(5)}),
        has_nulls="infer",
    )
    with ParquetFile.open(path) as file:
        assert {element.repetition_type for element in file.footer.metadata.schema} == {None}
    assert pq.read_table(path).column("s").to_pylist() != WORDS
    work = lambda: add_filters(path, ["n", "s"], in_place=True)  # noqa: E731
    message = "the page has 19 bytes after its last value"
    assert_refused(
        work,
        tmp_path,
        message=message,
        hint="",
        place="column s, row group 0, page at byte 4",
        error=UnreadableError,
    )
    add_filters(path, ["n"], in_place=True)
    assert all(not probe(path, "n", [number]).is_absent for number in range(5))


@each("words", [["", "null", None], [""], ["a", "bb", None, "\0" * 8], [None, ""]])
@each("compression", [None, "GZIP"])
def test_pages_of_fastparquet_are_padded(tmp_path, words, compression):
    """Eight zero bytes follow the values of each page: they are no values, and nothing is wrong
    with the page."""
    path = tmp_path / "f.parquet"
    frame = pd.DataFrame({"s": pd.Series(words * 50, dtype=object)})
    fastparquet.write(
        str(path), frame, row_group_offsets=50, compression=compression, has_nulls=True
    )
    assert pq.read_table(path).column("s").to_pylist() == words * 50
    add_filters(path, ["s"], in_place=True)
    assert not any(probe(path, "s", [word]).is_absent for word in words)
    assert probe(path, "s", ["zeta"], filters_only=True).is_absent


def write_repeated(
    path: Path, entries: list[str], repeated: str, first: str, indices: list[int]
) -> list[str]:
    """Write a column of text with a dictionary in which `repeated` is stored as `first`, and return
    its values."""
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
    assert (verified.problem, verified.false_negatives, verified.verified_values) == (
        None,
        0,
        len(indices),
    )
    assert not any(answer.is_absent for answer in probe(path, "v", sorted(set(expected))).values)


@pytest.mark.engines
def test_an_enum_of_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "f.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(
            "CREATE TABLE rows AS SELECT ['red', 'green', 'blue'][1 + i // 2048] AS colour FROM "
            "range(6144) t(i)"
        )
        connection.execute(
            "CREATE TABLE typed AS SELECT CAST(colour AS ENUM ('red', 'green', 'blue')) AS "
            "colour FROM rows"
        )
        connection.execute(
            f"COPY typed TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048, WRITE_BLOOM_FILTER "
            "false)"
        )

    assert len(add_filters(path, ["colour"], in_place=True).filters) == 3
    assert [(row.problem, row.false_negatives) for row in verify(path).filters] == [(None, 0)] * 3


HOUR = 3_600_000


def _int(bits: int, *, signed: bool, converted: int) -> dict[str, Any]:
    return {
        "logicalType": LogicalType(INTEGER=IntType(bitWidth=bits, isSigned=signed)),
        "converted_type": converted,
    }


def _time(unit: TimeUnit, converted: int) -> dict[str, Any]:
    return {
        "logicalType": LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=unit)),
        "converted_type": converted,
    }


DATE = {"logicalType": LogicalType(DATE=DateType()), "converted_type": ConvertedType.DATE}
CASES = {
    # Type, annotation, stored numbers, what DuckDB finds them as, what each of them is queried as,
    # what is absent.
    "uint8": (pa.int32(), _int(8, signed=False, converted=11), [-1, 5, -128], ["255", "5", "128"],
        ["255", "-1", "128"], "77"),
    "uint16": (pa.int32(), _int(16, signed=False, converted=12), [-1, 5, 70_000],
        ["65535", "5", "4464"], ["-1", "65535"], "77"),
    "int8": (pa.int32(), _int(8, signed=True, converted=15), [255, 5, 300], ["-1", "5", "44"],
        ["-1", "255", "44"], "77"),
    "int16": (pa.int32(), _int(16, signed=True, converted=16), [65_535, 5], ["-1", "5"],
        ["-1", "65535"], "77"),
    "time-millis": (
        *(pa.int32(), _time(TimeUnit(MILLIS=MilliSeconds()), 7),
            [-13_899_000, 5 * HOUR, 25 * HOUR, 49 * HOUR]),
        *(["20:08:21+00", "05:00:00+00", "01:00:00+00"],
            ["20:08:21", "-03:51:39", "25:00:00", "49:00:00", "0x08eb2bff"], "11:11:11"),
    ),
    "time-micros": (
        *(pa.int64(), _time(TimeUnit(MICROS=MicroSeconds()), 8),
            [-13_899_000_000, 25 * HOUR * 1000]),
        *(["20:08:21+00", "01:00:00+00"], ["20:08:21", "-03:51:39", "01:00:00", "25:00:00"],
            "11:11:11"),
    ),
    "decimal": (pa.int32(), decimal(5, 2), [1_234_567, 999], ["12345.67", "9.99"],
        ["12345.67", "9.99"], "1.23"),
    "date": (
        *(pa.int32(), DATE, [10_000_000, -735_160, 2**31 - 1],
            ["29349-01-26", "0044-03-15 (BC)", "infinity"]),
        *(["29349-01-26", "+29349-01-26", "-0043-03-15", "0044-03-15 (BC)", "infinity"],
            "2020-01-01"),
    ),
}  # fmt: skip


def _write(
    path: Path, kind: pa.DataType, annotation: dict[str, Any], stored: list[int], **options: Any
) -> Path:
    pq.write_table(pa.table({"t": pa.array(stored, kind)}), path, store_schema=False, **options)
    return annotate(path, {"t": annotation})


@each(
    "options",
    {
        "plain": {"use_dictionary": False, "write_statistics": False},
        "dictionary": {"use_dictionary": True},
    },
)
@each("case", list(CASES))
def test_what_readers_show_is_found_with_filters_of_ours(
    tmp_path: Path, case: str, options: dict[str, Any]
) -> None:
    kind, annotation, stored, found, queried, absent = CASES[case]
    path = _write(tmp_path / "a.parquet", kind, annotation, stored, **options)

    def rows_of_duckdb() -> list[int]:
        ((type_name,),) = duckdb.sql(f"SELECT any_value(typeof(t)) FROM '{path}'").fetchall()
        values = [text if "DECIMAL" in type_name else f"'{text}'::{type_name}" for text in found]
        return [
            duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE t = {value}").fetchall()[0][0]
            for value in values
        ]

    without_filters = rows_of_duckdb()
    assert all(without_filters)
    add_filters(path, ["t"], in_place=True)
    assert rows_of_duckdb() == without_filters
    texts = [text.removesuffix("+00") for text in (*found, *queried)]
    assert [value.value for value in probe(path, "t", texts).values if value.is_absent] == []
    for text in texts:
        assert not explain(path, "t", text).absent, text
        assert prune(path, "t", text).files, text
    assert probe(path, "t", absent).is_absent or "write_statistics" not in options
    assert all(result.is_verified for result in verify(path).filters)
