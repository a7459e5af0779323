"""INT96 in every form, queried in every way: a value that pyarrow or DuckDB finds is never reported
as absent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, check, explain, probe, prune, verify
from sbbf_tool.parquet.iso8601 import format_timestamp
from support.defects import Edit, bloom_of
from support.tables import each
from verbs.instants import DAY, day_early, day_late, rounded_down, towards_zero, write_int96

FORMS = (rounded_down, towards_zero, day_early, day_late)
KNOWN_FORMS = FORMS[:2]
ACME = "acme 1.0"

_NEAR = [
    sign * (days * DAY + rest)
    for days in (0, 1, 2, 25_567)
    for rest in (0, 1, 1_000, 999_999_999, DAY - 1, 3_723 * 10**9)
    for sign in (1, -1)
]
_FAR = [-(2**63) + 1, -(2**63) + DAY, 2**63 - 1, -6_847_804_800 * 10**9, 951_782_400 * 10**9]
INSTANTS = sorted({*_NEAR, *_FAR})
ABSENT = [instant + 7 for instant in _NEAR if instant + 7 not in INSTANTS]

PAGES = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "plain-v2": {
        "use_dictionary": False,
        "compression": "zstd",
        "data_page_version": "2.0",
        "data_page_size": 64,
        "write_batch_size": 4,
    },
    "dictionary": {"use_dictionary": True},
    "dictionary-given-up": {
        "use_dictionary": True,
        "dictionary_pagesize_limit": 64,
        "data_page_size": 64,
        "write_batch_size": 4,
    },
    "lz4": {"use_dictionary": False, "compression": "lz4"},
}


def text_of(instant: int) -> str:
    return format_timestamp(instant, "NANOS", utc=True)


def row_groups(form: Callable[[int], bytes]) -> list[list[bytes | None]]:
    """Three row groups, with nulls and repeated values; no instant is in two of them."""
    return [
        [value for instant in INSTANTS[group::3] for value in (form(instant), None, form(instant))]
        for group in range(3)
    ]


def found_by_pyarrow(path: Path) -> dict[int, set[int]]:
    """The row groups in which pyarrow reads each instant."""
    groups: dict[int, set[int]] = {}
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        for value in file.read_row_group(group)["at"].cast(pa.int64()).to_pylist():
            if value is not None:
                groups.setdefault(value, set()).add(group)
    return groups


def row_groups_of_pyarrow(path: Path, instant: int) -> set[int]:
    """The row groups that `prune` leaves."""
    return {
        group for file in prune(path, "at", [text_of(instant)]).files for group in file.row_groups
    }


@each("pages", list(PAGES))
@each("form", list(FORMS), every=2)
def test_what_is_stored_is_found_whatever_its_form(
    tmp_path: Path, form: Callable[[int], bytes], pages: str
) -> None:
    path = write_int96(tmp_path / "a.parquet", row_groups(form), **PAGES[pages])
    expected = found_by_pyarrow(path)
    assert sorted(expected) == INSTANTS
    add_filters(path, ["at"], in_place=True)
    output = probe(path, "at", [text_of(instant) for instant in INSTANTS])
    for instant, value in zip(INSTANTS, output.values, strict=True):
        answers = {answer.row_group for answer in value.row_groups if answer.answer != "absent"}
        assert expected[instant] <= answers, text_of(instant)
    for instant in INSTANTS[::7]:
        assert expected[instant] <= row_groups_of_pyarrow(path, instant)
        report = explain(path, "at", text_of(instant))
        assert not any(report.row_groups[group].is_absent for group in expected[instant])
    assert all(
        result.is_verified and not result.excluded_instants for result in verify(path).filters
    )
    assert not {finding.rule for finding in check(path).findings} & {
        "false-negatives",
        "int96-form-missing",
    }
    # A filter says something, too: nearly all that is not stored is absent.
    absent = [text_of(instant) for instant in ABSENT]
    answers = [
        answer.answer
        for value in probe(path, "at", absent, filters_only=True).values
        for answer in value.row_groups
    ]
    assert answers.count("absent") > 0.9 * len(answers)


def with_stored_forms_alone(path: Path) -> Path:
    """Filters as a writer makes them that hashes what it stores."""
    edit = Edit(path)
    edit.append_everywhere("at", lambda values: bloom_of(values, 2048))
    edit.write(path)
    return path


@pytest.mark.slow
@each("pages", ["plain", "dictionary"])
@each("form", list(FORMS))
@each("created_by", [ACME, None, "parquet-mr version 1.17.0 (build x)"])
def test_filters_of_an_unknown_writer_exclude_nothing(
    tmp_path: Path, created_by: str | None, form: Callable[[int], bytes], pages: str
) -> None:
    path = with_stored_forms_alone(
        write_int96(tmp_path / "a.parquet", row_groups(form), created_by, **PAGES[pages])
    )
    expected = found_by_pyarrow(path)
    texts = [text_of(instant) for instant in (*INSTANTS, *ABSENT)]
    report = probe(path, "at", texts, filters_only=True)
    for value in report.values:
        assert {answer.answer for answer in value.row_groups} <= {"maybe", "cannot say"}
        assert all(answer.reason for answer in value.row_groups if answer.answer == "cannot say")
    assert [inconclusive.row_groups for inconclusive in report.inconclusive] == [(0, 1, 2)]
    for instant in INSTANTS[::9]:
        assert row_groups_of_pyarrow(path, instant) == (
            {0, 1, 2} if pages == "plain" else expected[instant]
        )
        report = explain(path, "at", text_of(instant))
        assert not any(report.row_groups[group].is_absent for group in expected[instant])
    # A dictionary is compared by what its bytes mean.
    for instant in ABSENT[::9]:
        answers = {row.dictionary for row in explain(path, "at", text_of(instant)).row_groups}
        assert answers == ({None} if pages == "plain" else {"absent"})


@each("form", KNOWN_FORMS)
@each("ndv", [None, 20_000])
def test_two_forms_a_value_keep_the_fpp(
    tmp_path: Path, form: Callable[[int], bytes], ndv: int | None
) -> None:
    values = [form(-n * 3_600_000_000_123) for n in range(1, 20_001)]
    path = write_int96(tmp_path / "a.parquet", [values])
    report = add_filters(path, ["at"], fpp=0.01, ndv=ndv, in_place=True)
    assert report.filters[0].fpp <= 0.0101


def test_a_file_of_pyarrow_21(fixtures: Path, tmp_path: Path) -> None:
    """Not made by us: its instants before 1970 have negative times of day."""
    path = Path(shutil.copy(fixtures / "pyarrow-21-int96.parquet", tmp_path))
    expected = found_by_pyarrow(path)
    assert sum(instant < 0 and bool(instant % DAY) for instant in expected) > 10
    for step in range(2):
        for instant, groups in expected.items():
            answers = probe(path, "at", [text_of(instant)]).values[0].row_groups
            assert groups <= {answer.row_group for answer in answers if answer.answer != "absent"}
            assert groups <= row_groups_of_pyarrow(path, instant)
            assert all(
                explain(path, "at", text_of(instant)).row_groups[group].dictionary != "absent"
                for group in groups
            )
        if not step:
            add_filters(path, ["at"], in_place=True)
