"""The exit code of `probe` and `explain` over many files is one answer: 1 only where each was read, and none can hold the value."""

from __future__ import annotations

import json

import pytest

from sbbf_tool.cli import run
from support.three_files import CASES, FEW, FORMS, UNREADABLE, VALUE, WITH, WITHOUT, expected, words, write


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("case", CASES)
def test_in_this_process(case, jobs, tmp_path):
    files = write(tmp_path, case)
    for form in FORMS:
        assert run([*words(form, str(tmp_path), files), "--jobs", jobs]) == expected(case, form), form


@pytest.mark.parametrize("case", CASES)
def test_in_two_processes(case, tmp_path, monkeypatch):
    monkeypatch.setattr("sbbf_tool.runner.local._FILES_WITHOUT_PROCESSES", 0)
    files = write(tmp_path, case)
    for form in ("probe of a folder", "explain of files"):
        assert run([*words(form, str(tmp_path), files), "--jobs", "2"]) == expected(case, form), form


@pytest.mark.engines
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cases", [FEW, pytest.param(dict.fromkeys(FORMS, CASES), marks=pytest.mark.heavy)], ids=["few", "all"])
def test_on_spark(form, cases, tmp_path, spark):
    for number, case in enumerate(cases[form]):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = write(folder, case)
        assert run([*words(form, str(folder), files), "--runner", "spark"]) == expected(case, form), case


@pytest.mark.parametrize("command", ["probe", "explain"])
def test_each_file_has_its_document_and_the_summary_the_answer(command, tmp_path, capfd):
    for name, content in (("a", WITHOUT), ("b", UNREADABLE), ("c", WITH)):
        (tmp_path / f"{name}.parquet").write_bytes(content)
    assert run([command, str(tmp_path), "-c", "id", "--value", str(VALUE), "--json"]) == 3
    out, err = capfd.readouterr()
    first, unreadable, last, summary = map(json.loads, out.splitlines())
    schema = {"probe": "sbbf.lookup", "explain": "sbbf.explain"}[command]
    assert [document["schema"] for document in (first, unreadable, last, summary)] == [schema, "sbbf.file", schema, "sbbf.summary"]
    assert (unreadable["file"], unreadable["status"], unreadable["exit_code"]) == (f"{tmp_path}/b.parquet", "failed", 3)
    assert unreadable["reason"] in err
    assert summary["command"] == command
    assert (summary["files"], summary["done"], summary["failed"], summary["exit_code"]) == (3, 2, 1, 3)
    assert all(document["version"] == 0 for document in (first, unreadable, last, summary))


def test_null_beside_values_and_in_their_place(tmp_path):
    """A null is in no filter, so that no file excludes it."""
    write(tmp_path, "none has it")
    assert run(["probe", str(tmp_path), "id", str(VALUE)]) == 1
    assert run(["probe", str(tmp_path), "id", str(VALUE), "--null"]) == 0
    assert run(["probe", str(tmp_path), "id", "--null"]) == 0
    assert run(["probe", str(tmp_path), "-c", "id", "--null"]) == 0


def test_files_that_could_not_be_queried_are_counted_in_the_last_line(fixtures, tmp_path, capfd):
    for name in ("a", "c"):
        (tmp_path / f"{name}.parquet").write_bytes((fixtures / "pyarrow-filters.parquet").read_bytes())
    (tmp_path / "b.parquet").write_bytes(b"x")
    assert run(["probe", str(tmp_path), "-c", "id", "--value", "-5"]) == 3
    assert capfd.readouterr().out.splitlines()[-1].endswith("filters exclude all of them; 1 more file could not be queried")
