"""The stages by themselves: listing, packing, rows as Arrow has them, splits that are built
separately and published together."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
import time
from dataclasses import replace

import pytest

from sbbf_tool.editing.edit import Edit
from sbbf_tool.file.context import Context
from sbbf_tool.reports.plain import from_batch, from_plain, schema_of, to_batch, to_plain
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.discover import OPENING_COST, pack, path_of
from sbbf_tool.running.work import Work
from sbbf_tool.storage.journal import journal_of
from sbbf_tool.storage.local import sole_writer
from sbbf_tool.storage.source import LocalSource, blocks_of
from sbbf_tool.verbs.add_filter import AddFilter, add_filters
from sbbf_tool.verbs.advise import Advise
from sbbf_tool.verbs.apply import Apply
from sbbf_tool.verbs.check import Check
from sbbf_tool.verbs.explain import Explain
from sbbf_tool.verbs.inspect import Inspect
from sbbf_tool.verbs.probe import Probe
from sbbf_tool.verbs.remove_filter import RemoveFilter
from sbbf_tool.verbs.repair import Repair
from sbbf_tool.verbs.resize import Resize
from sbbf_tool.verbs.verify import Verify
from support.lakes import large_file, small_files
from support.tables import each

EDIT = Edit(in_place=True, jobs=1)
SPEC = FilterSpec(("id",))


@pytest.fixture
def large(tmp_path):
    return large_file(tmp_path / "large.parquet", row_groups=6)


def add(path):
    return Work(AddFilter(SPEC), Context(), EDIT)(str(path))


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


def test_every_row_goes_to_arrow_and_comes_back(tmp_path):
    path = str(small_files(tmp_path, 1) / "part-00000.parquet")
    add_filters(path, ["id"], in_place=True)
    name = FilterSpec(("name",))
    in_place = Edit(in_place=True)
    works = [
        *(
            Work(verb, Context())
            for verb in (
                Inspect(),
                Probe("id", ["1", None, "nonsense"]),
                Explain("id", "1"),
                Verify(),
            )
        ),
        *(Work(verb, Context()) for verb in (Check(), Check(brief=True), Advise())),
        *(Work(verb, Context(), EDIT) for verb in (AddFilter(name), Apply([FilterSpec("x")]))),
        *(
            Work(verb, Context(), in_place)
            for verb in (Repair(), Resize(max_bytes=64), RemoveFilter())
        ),
    ]
    for work in works:
        rows = [work(path), work(f"{path}.gone")]
        assert rows[1].exit_code == 3
        batch = to_batch(work.row, rows)
        assert batch.schema == schema_of(work.row)
        assert list(from_batch(work.row, batch)) == rows, work.verb
        assert pickle.loads(pickle.dumps(rows)) == rows
        assert [from_plain(work.row, to_plain(each)) for each in rows] == rows
    odd = ListedFile("/lake/\udcff.parquet")
    assert to_batch(ListedFile, [odd]).to_pylist()[0]["path"] == "/lake/\\udcff.parquet"


# --- add filters ---


def test_a_bitset_without_one_of_its_bits_is_not_published(large, monkeypatch):
    """Verification of a chunk covers its bits only: the written bits must be the verified ones."""
    import sbbf_tool.editing.open_edit as edit

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
    """A speculative task, or another pipeline, meets a file that is being written: it looks again
    until that is done."""
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
    assert [(row.status, row.reason) for row in answers] == [
        ("skipped", "the file has every filter")
    ]


def test_a_twin_waits_for_an_append_that_goes_on(large, monkeypatch):
    """It meets the journal of the other one before it has opened the file."""
    append = Work(AddFilter(SPEC), Context(), replace(EDIT, append=True))
    syncs, goes_on = threading.Event(), threading.Event()
    fsync = os.fsync

    def wait_in_sync(fd):
        if threading.current_thread() is first and os.path.exists(journal_of(str(large))):
            syncs.set()
            assert goes_on.wait(30)
        fsync(fd)

    answers = {}

    def add_as(name):
        answers[name] = append(str(large))

    first, twin = (threading.Thread(target=add_as, args=(name,)) for name in ("first", "twin"))
    monkeypatch.setattr(os, "fsync", wait_in_sync)
    first.start()
    assert syncs.wait(30)
    twin.start()
    twin.join(0.4)
    was_waiting = twin.is_alive()
    goes_on.set()
    first.join(30)
    twin.join(30)
    assert was_waiting, answers
    assert {name: row.status for name, row in answers.items()} == {"first": "ok", "twin": "skipped"}
