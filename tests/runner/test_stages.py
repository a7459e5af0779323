"""The stages by themselves: listing, packing, rows as Arrow has them, splits that are built separately and published together."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import shutil
import threading
import time
from dataclasses import replace

import pytest

from sbbf_tool import reports
from sbbf_tool.editing.edit import Edit
from sbbf_tool.operations.add import add_filters
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.apply import ApplyRow
from sbbf_tool.reports.arrow import from_batch, schema_of, to_batch
from sbbf_tool.reports.explain import ExplainRow
from sbbf_tool.reports.findings import BriefCheckRow, CheckRow
from sbbf_tool.reports.inspect import InspectRow
from sbbf_tool.reports.lake import SurveyRow
from sbbf_tool.reports.plain import from_plain, to_plain
from sbbf_tool.reports.probe import ProbeRow
from sbbf_tool.reports.remove import RemoveRow
from sbbf_tool.reports.repair import RepairRow
from sbbf_tool.reports.resize import ResizeRow
from sbbf_tool.reports.rows import FileRow, ListedFile
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.runner import works
from sbbf_tool.runner.discover import path_of
from sbbf_tool.runner.pack import OPENING_COST, pack
from sbbf_tool.storage.local import LocalSource, sole_writer
from sbbf_tool.storage.source import blocks_of
from support.lakes import large_file, small_files
from support.tables import each

EDIT = Edit(in_place=True, jobs=1)
SPEC = FilterSpec(("id",))


@pytest.fixture
def large(tmp_path):
    return large_file(tmp_path / "large.parquet", row_groups=6)


def add(path):
    return works.add(SPEC, EDIT)(str(path))


# --- discover ---


@each(
    "address, path",
    [
        ("/lake/a%20b.parquet", "/lake/a%20b.parquet"),
        ("file:/lake/a b%20.parquet", "/lake/a b%20.parquet"),
        ("file:///lake/a%20b%2520.parquet", "/lake/a b%20.parquet"),
        ("s3a://bucket/a b.parquet", "s3://bucket/a b.parquet"),
        ("s3n://bucket/a", "s3://bucket/a"),
        ("gs://bucket/a", "gs://bucket/a"),
    ],
)
def test_addresses_of_other_listings(address, path):
    assert path_of(address) == path


# --- pack ---


def test_units_are_packed_by_bytes_and_number():
    sizes = [10, 10, 10, 95, 200, 1, 1, 1, 1]
    packed = list(pack(sizes, lambda size: size - OPENING_COST, task_cost=100, most=3))
    assert packed == [[10, 10, 10], [95], [200], [1, 1, 1], [1]]
    assert list(pack([], lambda size: size)) == []
    assert [len(task) for task in pack(range(1000), lambda _: 0)] == [256, 256, 256, 232]


# --- rows ---


def rows_with_reports() -> set[type[FileRow]]:
    """The kinds of row that the verbs have, as the modules of `reports` declare them."""
    modules = [importlib.import_module(f"sbbf_tool.reports.{info.name}") for info in pkgutil.iter_modules(reports.__path__)]
    types = {member for module in modules for member in vars(module).values() if isinstance(member, type)}
    return {row_type for row_type in types if issubclass(row_type, FileRow) and "report" in row_type.__dataclass_fields__}


def test_every_row_goes_to_arrow_and_comes_back(tmp_path):
    path = str(small_files(tmp_path, 1) / "part-00000.parquet")
    add_filters(path, ["id"], in_place=True)
    name = FilterSpec(("name",))
    work_by_row = {
        InspectRow: works.inspect(),
        ProbeRow: works.probe("id", ["1", None, "nonsense"]),
        ExplainRow: works.explain("id", "1"),
        VerifyRow: works.verify(),
        CheckRow: works.check(Policy()),
        BriefCheckRow: works.check(Policy(), brief=True),
        SurveyRow: works.survey(),
        AddRow: works.add(name, EDIT),
        ApplyRow: works.apply([FilterSpec("x")], EDIT),
        RepairRow: works.repair(in_place=True),
        ResizeRow: works.resize(num_bytes=64, in_place=True),
        RemoveRow: works.remove(in_place=True),
    }
    for row, work in work_by_row.items():
        rows = [work(path), work(f"{path}.gone")]
        assert rows[1].exit_code == 3
        batch = to_batch(row, rows)
        assert batch.schema == schema_of(row)
        assert list(from_batch(row, batch)) == rows, row
        assert pickle.loads(pickle.dumps(rows)) == rows
        assert [from_plain(row, to_plain(each)) for each in rows] == rows
    assert {row for row in work_by_row if "report" in row.__dataclass_fields__} == rows_with_reports()
    odd = ListedFile("/lake/\udcff.parquet")
    assert to_batch(ListedFile, [odd]).to_pylist()[0]["path"] == "/lake/\\udcff.parquet"


# --- add filters ---


def test_a_bitset_without_one_of_its_bits_is_not_published(large, monkeypatch):
    """Verification of a chunk covers its bits only: the written bits must be the verified ones."""
    import sbbf_tool.editing.edit as edit

    before = large.read_bytes()
    really = edit.publish

    def tampering(file, target, patch, compare, **options):
        pieces = list(map(bytearray, blocks_of(patch.pieces)))
        pieces[1][0] ^= 1
        return really(file, target, replace(patch, pieces=tuple(pieces)), compare, **options)

    monkeypatch.setattr(edit, "publish", tampering)
    outcome = add(large)
    assert outcome.status == "failed"
    assert "is not the one that was built" in outcome.reason
    assert large.read_bytes() == before


def test_a_twin_waits_for_the_one_who_holds_the_file(large, tmp_path):
    """A speculative task, or another pipeline, meets a file that is being written: it looks again until that is done."""
    answers = []
    with LocalSource(str(large)) as source, sole_writer(source):
        twin = threading.Thread(target=lambda: answers.append(add(large)))
        twin.start()
        time.sleep(0.4)
        assert twin.is_alive()
        copy = tmp_path / "finished.parquet"
        add_filters(large, ["id"], output=copy)
        shutil.move(copy, large)
    twin.join(30)
    assert [(row.status, row.reason) for row in answers] == [("skipped", "the file has every filter")]
