"""What the page reader reads is compared with statistics and with pyarrow, by every operation that
builds a filter."""

from __future__ import annotations

import datetime
import decimal
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import Edit, FilterSpec, add_filters, check, explain, probe, repair, verify
from sbbf_tool.cli import run
from sbbf_tool.parquet import page_runs, plain_pages
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.verbs import AddFilter
from support.corpus_edits import edit_footer
from support.samples import write_column
from support.tables import each
from verbs.bad_files import assert_refused

UNKNOWN = "a writer version 1.2.3"
NUMBERS = pa.array(range(1000, 2000), pa.int64())


def rename_writer(path: Path, created_by: str | None = UNKNOWN) -> Path:
    def change(metadata: FileMetaData) -> None:
        metadata.created_by = created_by

    return edit_footer(path, change)


def state(path: Path, **statistics: Any) -> Path:
    """The same file, whose footer states other statistics of every chunk."""

    def change(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            for chunk in group.columns:
                for name, value in statistics.items():
                    setattr(chunk.meta_data.statistics, name, value)

    return edit_footer(path, change)


def messages_of(report: Any) -> list[str]:
    """The warnings about statistics."""
    return [warning for warning in report.warnings if "statistics are wrong" in warning]


# Which chunks are cross-checked


@each("created_by", [UNKNOWN, "parquet-cpp-arrow version 1.2.3", "no version", None])
def test_one_chunk_of_each_kind_of_an_unknown_writer(tmp_path, created_by):
    path = tmp_path / "f.parquet"
    table = pa.table(
        {
            "a": NUMBERS,
            "b": NUMBERS,
            "s": NUMBERS.cast(pa.string()),
            "l": [[number] for number in range(1000)],
        }
    )
    pq.write_table(table, path, row_group_size=100, use_dictionary=["s"], compression="zstd")
    rename_writer(path, created_by)
    verb, of_a_run = AddFilter(FilterSpec(["a", "b", "s", "l"])), Edit(in_place=True)
    report, again = (
        verb(shutil.copy(path, tmp_path / name), of_a_run) for name in ("g.parquet", "h.parquet")
    )
    # Two columns are of one kind; each of the others is of its own.
    assert (report.cross_checked, report.not_cross_checked, len(report.filters)) == (3, 0, 40)
    assert (again.cross_checked, again.not_cross_checked) == (0, 0)
    assert add_filters(path, ["a"], output=tmp_path / "i.parquet").cross_checked == 1


def test_a_chunk_that_pyarrow_cannot_decode(tmp_path, capsys):
    """All values are in the dictionary, and pages that refer to it are not read: that one of them
    is damaged shows in pyarrow alone."""
    path = write_column(
        tmp_path / "f.parquet",
        pa.array([f"name {number % 40}" for number in range(1000)]),
        compression="none",
    )
    rename_writer(path)
    meta = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    end = meta.dictionary_page_offset + meta.total_compressed_size
    data[end - 600 : end] = b"\xff" * 600
    path.write_bytes(data)
    report = add_filters(path, ["v"], output=tmp_path / "g.parquet")
    assert (report.cross_checked, report.not_cross_checked, len(report.filters)) == (0, 1, 1)
    assert run(["add-filter", str(path), "-c", "v", "-o", str(tmp_path / "h.parquet")]) == 0
    output = capsys.readouterr().out
    assert "1 column chunk not cross-checked: pyarrow cannot decode it" in output
    assert "All values verified" not in output


# Statistics

COLUMNS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "int64": (NUMBERS, {"max_value": (1500).to_bytes(8, "little")}),
    "uint32": (
        pa.array([1, 2**31, 2**32 - 1], pa.uint32()),
        {"max_value": (2**31).to_bytes(4, "little")},
    ),
    "text-beyond-ascii": (pa.array(["a", "é"]), {"max_value": b"z"}),
    "date": (
        pa.array([datetime.date(1969, 1, 1), datetime.date(2000, 1, 1)]),
        {"min_value": bytes(4)},
    ),
    "decimal": (
        pa.array([decimal.Decimal("-1.00"), decimal.Decimal("3.00")], pa.decimal128(20, 2)),
        {"min_value": bytes(9)},
    ),
    "float": (pa.array([1.5, float("nan"), -7.0], pa.float64()), {"min_value": bytes(8)}),
    "null-count": (pa.array([1, None, 2, None], pa.int32()), {"null_count": 1}),
    "null-count-of-all": (pa.array([1, 2, 3], pa.int32()), {"null_count": 3}),
    "null-count-above-all": (pa.array([1, 2, 3], pa.int32()), {"null_count": 4}),
    "nulls-only": (pa.array([None, None], pa.int32()), {"null_count": 0}),
    "older": (
        NUMBERS,
        {
            "min_value": None,
            "max_value": None,
            "min": bytes(8),
            "max": (1500).to_bytes(8, "little"),
        },
    ),
    "older-uint32": (
        pa.array([1, 5], pa.uint32()),
        {
            "min_value": None,
            "max_value": None,
            "min": (2).to_bytes(4, "little"),
            "max": (9).to_bytes(4, "little"),
        },
    ),
    "older-in-signed-order": (
        pa.array(["a", "k", "é"]),
        {"min_value": None, "max_value": None, "min": "é".encode(), "max": b"k"},
    ),
    "older-of-reused-buffers": (
        pa.array(["a", "k", "z"]),
        {"min_value": None, "max_value": None, "min": b"z", "max": b"z"},
    ),
}
HARMLESS = ("null-count", "null-count-above-all")


@pytest.mark.slow
@each("use_dictionary", [False, True])
@each("case", list(COLUMNS), every=3)
def test_wrong_statistics_are_reported_and_the_filter_is_written(tmp_path, case, use_dictionary):
    values, statistics = COLUMNS[case]
    path = write_column(
        tmp_path / "f.parquet", values, use_dictionary=use_dictionary, data_page_version="2.0"
    )
    is_sound = add_filters(path, ["v"], output=tmp_path / "sound.parquet")
    assert messages_of(is_sound) == []
    state(path, **statistics)
    report = add_filters(path, ["v"], in_place=True)
    assert all(
        not probe(path, "v", [value], filters_only=True).is_absent
        for value in values.drop_null().to_pylist()
    )
    if case.startswith("null-count"):
        assert not explain(path, "v", 1).absent
    (finding,) = (
        finding
        for finding in check(path).findings
        if finding.rule in ("wrong-statistics", "wrong-null-count")
    )
    severity = "info" if case in HARMLESS else "error"
    assert (finding.rule, finding.severity, finding.column) == (
        "wrong-null-count" if case in HARMLESS else "wrong-statistics",
        severity,
        "v",
    )
    if case in HARMLESS:
        assert verify(path).is_sound
        assert messages_of(report) == []
        return
    if use_dictionary and "null_count" in statistics and case != "nulls-only":
        # pages that refer to a dictionary are not read, and where the nulls are decides on no value
        return
    (warning,) = messages_of(report)
    assert warning.startswith("column v, row group 0: its statistics are wrong (")


@each(
    "values, statistics",
    {
        "zeros": (pa.array([0.0, -0.0]), {"min_value": bytes(8), "max_value": bytes(8)}),
        "negative zeros": (
            pa.array([0.0, -0.0]),
            {"min_value": bytes(7) + b"\x80", "max_value": bytes(7) + b"\x80"},
        ),
        "nan": (pa.array([1.0, float("nan")]), {}),
        "bounds of nan": (
            pa.array([1.0, 2.0]),
            {"min_value": b"\0\0\0\0\0\0\xf8\x7f", "max_value": b"\0\0\0\0\0\0\xf8\x7f"},
        ),
        "shortened": (pa.array(["abcdef", "xyz"]), {"min_value": b"abc", "max_value": b"y"}),
        "an empty list is no null": (
            pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())),
            {"null_count": 2},
        ),
        "older bounds": (pa.array([b"2"]), {"min": b"3", "max": b"1"}),
    },
)
def test_statistics_that_enclose_the_values_are_right(tmp_path, values, statistics):
    path = state(write_column(tmp_path / "f.parquet", values, use_dictionary=False), **statistics)
    assert messages_of(add_filters(path, ["v"], in_place=True)) == []
    assert "wrong-statistics" not in {finding.rule for finding in check(path).findings}


# Wrongly read pages


def add(path: Path) -> None:
    add_filters(path, ["v"], in_place=True, rebuild="all")


def rebuild_bad(path: Path) -> None:
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(0)
    middle = chunk.bloom_filter_offset + chunk.bloom_filter_length // 2
    data[middle : middle + 256] = bytes(256)
    path.write_bytes(data)
    assert_refused(lambda: repair(path, in_place=True), path.parent, message="", hint="")


@pytest.fixture
def misread(monkeypatch) -> Callable[[], None]:
    """The page reader from now on takes the bytes of PLAIN pages for others, as one did that took
    values for levels."""

    def start() -> None:
        split = plain_pages.PlainChunk._split

        def shifted(self: Any, *arguments: Any) -> Any:
            parts = split(self, *arguments)
            return parts._replace(values=memoryview(bytes(parts.values[8:]) + b"\7\0\0\0\0\0\0\0"))

        monkeypatch.setattr(page_runs, "is_built", False)
        monkeypatch.setattr(plain_pages.PlainChunk, "_split", shifted)

    return start


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("operation", [add, rebuild_bad])
def test_misread_pages_are_refused(tmp_path, misread, operation, is_known):
    """With the writer known, statistics show it; else pyarrow does."""
    path = write_column(tmp_path / "f.parquet", NUMBERS, use_dictionary=False)
    if not is_known:
        rename_writer(state(path, min_value=None, max_value=None))
    add_filters(path, ["v"], in_place=True)
    misread()
    if operation is rebuild_bad:
        operation(path)
    else:
        message = "its values cannot be read with certainty: pyarrow decodes 1 values"
        assert_refused(
            lambda: operation(path),
            tmp_path,
            message=message,
            hint="report",
            place="column v, row group 0",
        )


def test_contradictions_that_pyarrow_cannot_decide_are_refused(tmp_path):
    """Entries outside the bounds, and pages that only pyarrow could read."""
    path = write_column(
        tmp_path / "f.parquet",
        pa.array([f"name {number % 40}" for number in range(1000)]),
        compression="none",
    )
    state(path, max_value=b"name 1")
    meta = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    end = meta.dictionary_page_offset + meta.total_compressed_size
    data[end - 600 : end] = b"\xff" * 600
    path.write_bytes(data)
    message = "a value is above max_value, and pyarrow cannot decode it"
    assert_refused(
        lambda: add_filters(path, ["v"], in_place=True), tmp_path, message=message, hint=""
    )
