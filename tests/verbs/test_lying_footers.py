"""Footers and headers that lead elsewhere, or claim what is not there: a broken filter is shown as
one, and pages are not read past."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sbbf_tool import SbbfError, add_filters, check, explain, inspect, probe
from sbbf_tool.cli import run
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from support.corpus_edits import edit_footer
from support.samples import footer_start, places, write_events
from support.tables import each
from verbs.bad_files import ask_everything


@pytest.fixture
def filtered(tmp_path):
    path = write_events(tmp_path / "events.parquet")
    add_filters(path, ["id", "name"], in_place=True)
    return path


# Filters that are not where the footer says, or not what they should be


def move_filter(
    path: Path, offset: int | None = None, length: int | None = None, row_group: int = 1
) -> None:
    def change(metadata: FileMetaData) -> None:
        meta = metadata.row_groups[row_group].columns[0].meta_data
        meta.bloom_filter_offset = meta.bloom_filter_offset if offset is None else offset
        meta.bloom_filter_length = meta.bloom_filter_length if length is None else length

    edit_footer(path, change)


def overwrite_filter(path: Path, raw: bytes) -> None:
    with open(path, "r+b") as stream:
        stream.seek(places(path)[1, "id"].offset)
        stream.write(raw)


def assert_unreadable(path: Path, reason: str) -> None:
    """inspect shows the filter as broken, probe answers from the others only, and it can be
    replaced or taken away."""
    (row,) = inspect(path).unreadable_filters
    assert (row.row_group, row.column) == (1, "id")
    assert reason in row.unreadable
    assert len(inspect(path).filters) == 6
    answers_of_probe = probe(path, "id", [7, -1], filters_only=True)
    (place,) = answers_of_probe.unreadable
    assert place.startswith("column id, row group 1")
    assert all(value.row_groups[1].answer == "cannot say" for value in answers_of_probe.values)
    assert [
        answer.answer for answer in answers_of_probe.values[1].row_groups if answer.row_group != 1
    ] == ["absent"] * 2
    assert not answers_of_probe.is_absent
    explanation = explain(path, "id", -1)
    assert explanation.unreadable == (place,)
    assert explanation.row_groups[1].filter == "cannot say"
    assert [row_groups.row_groups for row_groups in answers_of_probe.inconclusive] == [(1,)]
    assert probe(path, "name", ["name 1"]).values
    answers = ask_everything(path, "id", 7)
    assert not any(isinstance(answers[name], SbbfError) for name in ("add", "remove"))


OUTSIDE = {
    "at the end of the file": lambda data: len(data),
    "far behind the end": lambda data: 2**62,
    "the largest": lambda data: 2**63 - 1,
    "in the footer": lambda data: footer_start(data) + 1,
    "in the last magic": lambda data: len(data) - 4,
    "in the pages": lambda data: 200,
}


@each("offset", OUTSIDE)
def test_an_offset_that_leads_elsewhere_is_a_broken_filter(filtered, offset):
    move_filter(filtered, offset(filtered.read_bytes()))
    assert_unreadable(filtered, "")


@each("num_bytes", [0, 8, 31, -1, -63, -64])
def test_a_bitset_smaller_than_a_block_is_a_broken_filter(filtered, num_bytes):
    overwrite_filter(filtered, build_header(num_bytes))
    assert_unreadable(filtered, "one block has 32")


@each(
    "num_bytes, into",
    [(2**31 - 1, "the end of the file"), (1 << 20, "the end of the file"), (4096, "the footer")],
)
def test_a_bitset_larger_than_its_place_is_a_broken_filter(filtered, num_bytes, into):
    overwrite_filter(filtered, build_header(num_bytes))
    assert_unreadable(filtered, f"{num_bytes:,} bytes runs into {into}")


@each(
    "raw",
    {
        "zeros": bytes(20),
        "ones": b"\xff" * 20,
        "magic": b"PAR1PAR1PAR1",
        "a size of 64 bits": b"\x16",
    },
)
def test_an_invalid_header_makes_a_broken_filter(filtered, raw):
    overwrite_filter(filtered, raw)
    assert_unreadable(filtered, "")
    assert "footer byte" not in inspect(filtered).unreadable_filters[0].unreadable


@each("values", [10, 0])
def test_pages_of_unknown_length_leave_unreferenced_bytes_unknown(filtered, values):
    def change(metadata: FileMetaData) -> None:
        meta = metadata.row_groups[0].columns[0].meta_data
        meta.total_compressed_size, meta.num_values = 0, values

    edit_footer(filtered, change)
    (rule,) = [rule for rule in check(filtered).rules if rule.rule == "unreferenced-bytes"]
    assert (rule.outcome == "not run") == bool(values)


def test_commands_answer_for_the_other_row_groups_and_end_with_3(filtered, tmp_path, capsys):
    sound = str(shutil.copy(filtered, tmp_path / "sound.parquet"))
    overwrite_filter(filtered, bytes(20))
    for words in (
        ["probe", str(filtered), "id", "-1", "--filters-only"],
        ["explain", str(filtered), "id", "-1"],
    ):
        assert run(words) == 3
        out, err = capsys.readouterr()
        assert (out.count("cannot say"), err.count("\n")) == (1, 1)
        assert "absent" in out if words[0] == "explain" else "row group 1 (" in out
    for name in ("probe", "explain"):
        assert run([name, str(filtered), sound, "-c", "id", "--value", "701"]) == 3
        assert f"sbbf: {filtered}: column id, row group 1" in capsys.readouterr().err


@each("length", [-1, 0, 1, 79, 10**6, 2**31 - 1])
def test_a_length_that_contradicts_the_header_causes_a_warning(filtered, length):
    expected = probe(filtered, "id", [7 * 150, 3], filters_only=True).values
    move_filter(filtered, length=length)
    (odd,) = [row for row in inspect(filtered).filters if row.warnings]
    assert f"bloom_filter_length is {length}" in odd.warnings[0]
    for value, before in zip(
        probe(filtered, "id", [7 * 150, 3], filters_only=True).values, expected, strict=True
    ):
        assert value.row_groups[1].answer == "cannot say"
        assert all(
            now == then or now.answer == "cannot say"
            for now, then in zip(value.row_groups, before.row_groups, strict=True)
        )
    answers = ask_everything(filtered, "id", 7)
    assert not any(isinstance(answer, SbbfError) for answer in answers.values())
