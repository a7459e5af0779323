"""`repair`: what a footer can put right is put right, nothing else is touched, and rebuilding
leaves sound filters."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import (
    Policy,
    RefusedError,
    SbbfError,
    add_filters,
    check,
    inspect,
    remove_filters,
    repair,
    resize_filters,
    verify,
)
from sbbf_tool.file.own_tail import find_own_tail
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import patch
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.rules.catalog import RULES
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.rules.rule import Limits
from sbbf_tool.storage.append import journal_of
from support.calls import call
from support.corpus_edits import edit_footer
from support.defects import DEFECTS, SOUND
from support.samples import listing
from support.tables import each

# Takes a key: see test_encrypted_files.
UNDER_A_KEY = {"damaged-encrypted-filter"}
# For each defect that the footer alone can fix: the repair without rebuilding.
FIXES = {rule.name: rule.repairs for rule in RULES if rule.repairs is not None}
LIGHT = {
    name: light
    for name, (light, _) in FIXES.items()
    if light is not None and name not in UNDER_A_KEY
}
# These files have more than one thing wrong with them.
OTHERS_TOO = {"over-128-mib"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.parquet"


def list_rules(path: Path) -> set[str]:
    return {finding.rule for finding in verify(path).findings} & FIXES.keys()


@pytest.mark.slow
@each("rule", list(LIGHT))
def test_findings_that_the_footer_alone_fixes(rule, path):
    DEFECTS[rule].make(path)
    old, rows = (
        path.read_bytes(),
        pq.read_table(path) if rule != "interval-not-normalised" else None,
    )
    with ParquetFile.open(path) as file:
        kept_bytes = find_own_tail(file).start
    report = repair(path, drop=True, in_place=True)
    assert {(step.fix, True) for step in report.steps if rule in step.rules} == {
        (LIGHT[rule].words, True)
    }
    assert path.read_bytes().startswith(old[:kept_bytes])
    assert path.stat().st_size == report.new_bytes
    assert rule not in list_rules(path)
    assert all(result.is_verified for result in verify(path).filters)
    assert repair(path, drop=True, dry_run=True).is_clean
    if rows is not None:
        assert pq.read_table(path).equals(rows)


@pytest.mark.slow
@each("rule", sorted(FIXES.keys() - OTHERS_TOO - UNDER_A_KEY))
def test_findings_that_rebuilding_fixes(rule, path):
    DEFECTS[rule].make(path)
    had = {
        (row.row_group, row.column)
        for row in inspect(path).filters
        if row.has_filter and row.physical_type != "BOOLEAN"
    }
    report = repair(path, in_place=True)
    assert report.remaining == ()
    assert any(rule in step.rules for step in report.steps)
    assert list_rules(path) == set()
    results = verify(path).filters
    assert {(result.row_group, result.column) for result in results} == had
    assert all(result.is_verified for result in results)
    for step in report.steps:
        assert (step.new_filter is not None) == (step.fix == "rebuild")
    assert repair(path, dry_run=True).is_clean


def test_a_filter_that_overlaps_one_with_false_negatives_is_removed_too(path):
    DEFECTS["overlapping-filter"].make(path)
    # Without verification it is unknown which of the two is damaged.
    assert {
        finding.rule for finding in repair(path, drop=True, quick=True, dry_run=True).remaining
    } == {"overlapping-filter"}
    report = repair(path, drop=True, in_place=True)
    assert [(step.row_group, step.column, step.fix) for step in report.steps] == [
        (0, "name", "drop")
    ]
    assert (report.remaining, report.is_sound) == ((), True)
    assert "overlapping-filter" not in list_rules(path)


def test_a_filter_that_overlaps_a_page_index_too_is_not_repaired(path):
    DEFECTS["overlapping-filter"].make(path)
    (place,) = [row for row in inspect(path, ["id"]).filters if row.row_group == 0]

    def claim_filter(metadata: FileMetaData) -> None:
        chunk = metadata.row_groups[0].columns[0]
        chunk.column_index_offset = place.offset
        chunk.column_index_length = place.stated_length

    edit_footer(path, claim_filter)
    report = repair(path, drop=True, in_place=True)
    assert [finding.rule for finding in report.remaining] == ["overlapping-filter"]
    assert "overlapping-filter" in list_rules(path)


def test_an_append_that_was_interrupted_is_cut_back(path):
    shutil.copyfile(SOUND, path)
    old = path.read_bytes()
    journal = Path(journal_of(str(path)))
    entry = {
        "length": len(old),
        "ends_with": old[-64:].hex(),
        "new_length": len(old) + 5000,
        "new_ends_with": b"PAR1".hex(),
    }
    journal.write_text(json.dumps(entry))
    path.write_bytes(old + b"half of a filter")
    for change in (
        repair,
        partial(resize_filters, fpp=0.1),
        partial(add_filters, columns=["id"]),
        partial(remove_filters, columns=["id"]),
    ):
        with pytest.raises(RefusedError, match=r"interrupted.*repair the file in place first"):
            change(path, output=path.with_name("elsewhere"))
    assert path.read_bytes() == old + b"half of a filter"
    dry = repair(path, dry_run=True)
    assert (dry.truncated_to, dry.is_clean) == (len(old), False)
    assert journal.exists()
    report = repair(path, in_place=True)
    assert (report.truncated_to, report.steps) == (len(old), ())
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]


def test_filters_of_other_files_are_not_ours_to_drop(path):
    """As in the `_metadata` of a folder: offsets mean places in the files that it speaks of."""
    shutil.copyfile(SOUND, path)

    def elsewhere(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            for chunk in group.columns:
                chunk.file_path = "part-0.parquet"
                chunk.meta_data.bloom_filter_length = None

    edit_footer(path, elsewhere)
    content = path.read_bytes()
    assert repair(path, in_place=True).is_clean
    assert path.read_bytes() == content
    assert not check(
        path, Policy(limits=Limits(filters=FilterSpec(("id", "seq"), judge="existence")))
    ).findings


def test_where_pages_cannot_be_read_nothing_is_concluded(path):
    shutil.copyfile(SOUND, path)
    with path.open("r+b") as stream:
        stream.seek(4)
        stream.write(b"\xff" * 64)
    report = repair(path, in_place=True)
    assert [place.partition(":")[0] for place in report.unreadable] == ["column id, row group 0"]
    assert report.is_clean


def test_a_length_that_arrives_wrong_is_not_published(path, tmp_path, monkeypatch):
    DEFECTS["missing-length"].make(path)
    before, splice = listing(tmp_path), patch.set_filters

    def shift_offset(raw, changes, cipher, **options):
        return splice(
            raw,
            {
                key: place and place._replace(length=place.length + 1)
                for key, place in changes.items()
            },
            cipher,
        )

    monkeypatch.setattr(patch, "set_filters", shift_offset)
    with pytest.raises(SbbfError, match="nothing was changed"):
        repair(path, in_place=True)
    assert listing(tmp_path) == before


@each("options, expected, line", [
    (["--dry-run"], 1, "2 files: 2 done; 8 filters would be repaired, 0 findings remaining"),
    ([], 0, "2 files: 2 done; 8 filters repaired, 0 findings remaining"),
])  # fmt: skip
def test_a_run_says_whether_files_were_changed(options, expected, line, tmp_path, capsys):
    for name in ("a", "b"):
        DEFECTS["missing-length"].make(tmp_path / f"{name}.parquet")
    code, out, _ = call(capsys, "repair", tmp_path, "--in-place", *options)
    assert code == expected
    assert line in out.splitlines()
