"""`run`: a row for each file has what the function of one path returns or raises; changes work when
called, and commit at the end."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import sbbf_tool
from running.calls import rows_of
from sbbf_tool import Edit, FilterSpec, RefusedError, SbbfError, UnreadableError, UsageError, run
from sbbf_tool.running import local
from sbbf_tool.verbs import (
    AddFilter,
    Apply,
    Check,
    Explain,
    Inspect,
    Probe,
    RemoveFilter,
    Repair,
    Resize,
    Verify,
)
from support.lakes import MIXED, digests, mixed, partitioned, small_files
from support.tables import each

IN_PLACE = Edit(in_place=True)
SPEC = FilterSpec(("id", "name"))
VERBS: list[tuple[Any, Edit | None, Callable[[str], object]]] = [
    (Inspect(), None, sbbf_tool.inspect),
    (Probe("id", [7, None]), None, partial(sbbf_tool.probe, column="id", values=[7, None])),
    (Explain("id", 7), None, partial(sbbf_tool.explain, column="id", values=7)),
    (Verify(), None, sbbf_tool.verify),
    (Check(), None, sbbf_tool.check),
    (
        AddFilter(SPEC),
        IN_PLACE,
        partial(sbbf_tool.add_filters, columns=["id", "name"], in_place=True),
    ),
    (
        Resize(max_bytes=64),
        replace(IN_PLACE, force=True),
        partial(sbbf_tool.resize_filters, max_bytes=64, in_place=True, force=True),
    ),
    (Repair(), IN_PLACE, partial(sbbf_tool.repair, in_place=True)),
    (RemoveFilter(), IN_PLACE, partial(sbbf_tool.remove_filters, in_place=True)),
]


@each("processes", [False, True])
@each("verb, edit, function", VERBS)
def test_each_file_has_its_report_or_its_error(
    tmp_path, monkeypatch, processes, verb, edit, function
):
    if processes:
        monkeypatch.setattr(local, "_FILES_WITHOUT_PROCESSES", 1)
    lake = mixed(tmp_path / "lake")
    original = shutil.copytree(lake, tmp_path / "original")
    expected = {}
    for path in (str(lake / f"{name}.parquet") for name in sorted(MIXED)):
        try:
            expected[path] = function(path)
        except SbbfError as error:
            expected[path] = error
    new_digests = digests(lake)
    shutil.rmtree(lake)
    shutil.copytree(original, lake)

    rows = rows_of(verb, lake, edit, jobs=2, strict=True)
    assert [row.path for row in rows] == list(expected)
    assert digests(lake) == new_digests
    for row in rows:
        outcome = expected[row.path]
        if isinstance(outcome, SbbfError):
            # A file that cannot be checked has a report too.
            assert (row.report is None) == (verb.name != "check"), row
            assert row.status == "skipped" or (row.exit_code, type(row.error)) == (
                outcome.exit_code,
                type(outcome),
            ), row
        else:
            assert row.report == outcome
    errors = {Path(row.path).stem: row.error for row in rows if row.status != "ok"}
    assert isinstance(errors["broken"], UnreadableError)
    assert isinstance(errors["encrypted"], RefusedError)


def test_a_verb_is_a_value():
    verb = Probe("id", [7], "draft1-raw")
    assert (
        verb
        == Probe(column="id", values=[7], dialect="draft1-raw")
        == pickle.loads(pickle.dumps(verb))
        == copy.copy(verb)
    )
    assert verb != Probe("id", [8], "draft1-raw")
    assert verb != Explain("id", [7], "duckdb")
    assert repr(verb) == "Probe(column='id', values=(7,), dialect='draft1-raw')"
    assert hash(Verify("id")) == hash(Verify(["id"]))
    assert str(inspect.signature(Verify)) == "(columns: 'Iterable[str]' = ())"
    assert list(inspect.signature(Probe).parameters)[:2] == ["column", "values"]
    with pytest.raises(AttributeError, match="immutable"):
        verb.column = "name"
    with pytest.raises(AttributeError, match="immutable"):
        del verb.column
    for wrong in (
        lambda: Probe(),
        lambda: Probe("id", 7, *[None] * 8),
        lambda: Probe("id", 7, column="id"),
        lambda: Verify(column="id"),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(UsageError, match="either a false-positive rate or a size"):
        Resize()


def test_values_are_hashed_once_for_all_files(tmp_path, monkeypatch):
    from sbbf_tool.file import question

    asked = []
    really = question.question_of
    monkeypatch.setattr(
        question,
        "question_of",
        lambda *args, **options: (asked.append(args), really(*args, **options))[1],
    )
    assert len(list(run(Probe("id", [7, 8]), small_files(tmp_path / "lake", 3), jobs=1))) == 3
    assert len(asked) == 1


def test_names_that_mean_no_file_are_an_error_of_the_run(tmp_path):
    with pytest.raises(UnreadableError, match="no Parquet file below"):
        next(run(Inspect(), tmp_path))
    with pytest.raises(UnreadableError, match="no file matches"):
        list(run(Verify(), str(tmp_path / "*.parquet")))
    good, vanished = (
        small_files(tmp_path / "lake", 1) / "part-00000.parquet",
        tmp_path / "gone.parquet",
    )
    rows = list(run(Inspect(), [vanished, good, str(vanished)]))
    assert [(row.status, row.reason) for row in rows] == [
        ("failed", "no such file or directory"),
        ("ok", None),
    ]


def test_partitions_are_chosen(tmp_path):
    lake = partitioned(tmp_path / "lake")
    rows = run(Inspect(), str(lake), where="dt >= '2026-01-02' and region = 'eu'")
    assert [row.path for row in rows] == [
        f"{lake}/dt=2026-01-0{day}/region=eu/part-00000.parquet" for day in (2, 3)
    ]
    with pytest.raises(UsageError, match="no partition column 'regoin'"):
        list(run(Inspect(), lake, where="regoin = 'eu'"))
    with pytest.raises(UsageError, match="cannot parse"):
        run(Inspect(), lake, where="dt >")


def test_files_are_read_as_rows_are_taken(tmp_path):
    """Nothing is done before, and little ahead, also of an iterator of paths."""
    path = small_files(tmp_path / "lake", 1) / "part-00000.parquet"
    rows = run(Inspect(), (path for _ in range(10_000)), jobs=1)
    assert next(rows).report == sbbf_tool.inspect(path)
    path.unlink()
    assert list(islice(rows, 100))[-1].status == "failed"


def test_a_change_works_when_called_and_says_what_it_did(tmp_path):
    lake = mixed(tmp_path / "lake")
    elsewhere = small_files(tmp_path / "elsewhere", 1)
    (lake / "link.parquet").symlink_to(elsewhere / "part-00000.parquet")
    before = digests(elsewhere)
    summary = run(AddFilter(SPEC), lake, edit=IN_PLACE)
    assert summary.files == {"ok": 3, "skipped": 4, "refused": 2, "failed": 3}
    assert len(summary.errors) == 5
    assert (summary.commits, digests(elsewhere)) == ((), before)
    assert run(AddFilter(SPEC), lake, edit=IN_PLACE).files == {
        "skipped": 7,
        "refused": 2,
        "failed": 3,
    }


@each("wrong, reason", [
        (lambda lake: run(AddFilter("id"), lake), "add-filter changes files: give edit"),
        (lambda lake: run(Verify(), lake, edit=IN_PLACE), "verify changes no file: leave out edit"),
        (lambda lake: run(Verify(), lake, errors="return"),
            "errors is for verbs that change files"),
        (lambda lake: run(AddFilter("id"), lake, edit=IN_PLACE, errors="ignore"), "errors must be"),
        (lambda lake: run(AddFilter("id"), lake, edit=Edit()), "no target is given"),
        (lambda lake: run(AddFilter("id"), lake, edit=Edit("out.parquet")),
            "an output names one file"),
        (lambda lake: run(Repair(), lake, edit=IN_PLACE, state="state.sqlite"),
            "a state holds no outcomes of repair"),
        (lambda lake: run(Verify, lake), "run takes a verb"),
        (lambda lake: run(Verify(), lake, jobs=0), "at least 1, not 0"),
        (lambda lake: Apply(["id"]), "a declaration is a FilterSpec"),
        (lambda lake: Probe(3, [1]), "the name of a column is text"),
    ])  # fmt: skip
def test_what_cannot_be_meant_is_refused_at_once(tmp_path, wrong, reason):
    lake = small_files(tmp_path / "lake", 2)
    before = digests(lake)
    with pytest.raises(UsageError, match=reason):
        wrong(lake)
    assert digests(lake) == before


@each(
    "verb",
    [
        Probe("idd", [1]),
        Explain("idd", 1),
        Verify("idd"),
        Inspect(["id", "idd"]),
        AddFilter(["id", "idd"]),
    ],
)
def test_a_column_that_no_file_has_ends_the_run(tmp_path, verb):
    lake = small_files(tmp_path / "lake", 2)
    with pytest.raises(UsageError, match=r"no file has the column: .*'idd'; did you mean id"):
        run(verb, lake, edit=IN_PLACE) if verb.changes else list(run(verb, lake))


def test_declared_filters(tmp_path):
    lake = small_files(tmp_path / "lake", 3)
    apply = Apply([FilterSpec("id", paths=f"{lake}/part-0000[01].parquet")])
    assert [
        (row.status, row.report and row.report.holds)
        for row in rows_of(apply, lake, Edit(dry_run=True))
    ] == [("ok", False)] * 2
    assert run(apply, lake, edit=IN_PLACE).files == {"ok": 2}
    assert run(apply, lake, edit=Edit(dry_run=True)).files == {"skipped": 2}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for part in range(2):
        rows = pa.table({"id": range(part * 100, part * 100 + 100), "day": [f"d{part}"] * 100})
        deltalake.write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["day"])
    return tmp_path / "t"


def test_a_table_commits_when_the_block_ends(table):
    with run(AddFilter(FilterSpec("id")), table, edit=IN_PLACE, errors="return") as rows:
        assert len(next(rows).report.filters) == 1
        assert deltalake.DeltaTable(table).version() == 1
    assert deltalake.DeltaTable(table).version() == 2
    assert (rows.summary.files, [commit.num_files for commit in rows.summary.commits]) == (
        {"ok": 2},
        [2],
    )
    assert [row.report.is_sound for row in run(Verify(), table, where="day = 'd1'")] == [True]
    assert len(sbbf_tool.advise(table).columns) >= 1
    summary = run(RemoveFilter(), table, edit=IN_PLACE)
    assert (summary.files, [commit.num_files for commit in summary.commits]) == ({"ok": 2}, [2])


def test_a_block_that_fails_commits_nothing(table):
    with (
        suppress(KeyError),
        run(AddFilter(FilterSpec("id")), table, edit=IN_PLACE, errors="return") as rows,
    ):
        next(rows)
        raise KeyError
    assert deltalake.DeltaTable(table).version() == 1
    assert not list(table.rglob("*sbbf*"))
    with pytest.raises(UsageError, match="the only path"):
        run(Verify(), [table, table])


@each(
    "options, text",
    [
        ({"where": 5}, "where must be a predicate as text, not 5"),
        ({"on": "spark"}, "on must be a runner, not 'spark'"),
        ({"index": 5}, "index must be the name of a file, not 5"),
    ],
)
def test_options_of_other_types(options, text, tmp_path):
    with pytest.raises(UsageError, match=re.escape(text)):
        run(Inspect(), tmp_path, **options)


@each(
    "options, text",
    [
        ({"max_bytes": "1MiB"}, "max bytes must be an integer, not '1MiB'"),
        ({"fpp": "1%"}, "fpp must be a number, not '1%'"),
        ({"ndv": 1.5}, "ndv must be an integer, not 1.5"),
    ],
)
def test_a_size_of_another_type(options, text):
    with pytest.raises(UsageError, match=re.escape(text)):
        FilterSpec("user_id", **options)
