"""The exit code of `probe` and `explain` over many files is one answer: 1 only where each was read,
and none can hold the value."""

from __future__ import annotations

import pytest

from sbbf_tool.cli import run
from support.tables import each
from support.three_files import CASES, FEW, FORMS, VALUE, WITH, WITHOUT, words, write


@pytest.mark.slow
@each("jobs", ["1", "2"])
@each("case", list(CASES))
def test_in_this_process(case, jobs, tmp_path):
    files = write(tmp_path, case)
    for form in FORMS:
        assert run([*words(form, str(tmp_path), files), "--jobs", jobs]) == CASES[case].code, form


@pytest.mark.heavy
@pytest.mark.engines
@each("form", list(FORMS)[::2])
def test_on_spark(form, tmp_path, spark):
    for number, case in enumerate(FEW[form][:1]):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = write(folder, case)
        assert run([*words(form, str(folder), files), "--on", "spark"]) == CASES[case].code, case


SOME_READER_TAKES_IT = {
    "000000_0": True,
    "part-00000-1a2b-c000": True,
    "b.parq": True,
    "C.PARQUET": True,
    "d.parquet.bak": True,
    "day=1/000000_0": True,
    "_day=1/e.pq": True,
    "f.parquet._COPYING_": True,
    "_g.parquet": False,
    ".h.parquet": False,
    ".day=1/h.parquet": False,
    "_temporary/0/i.parquet": False,
    "_metadata": False,
}


@each("name, is_taken", SOME_READER_TAKES_IT.items())
@each("command", ["probe", "explain"])
def test_a_value_is_in_no_file_only_if_each_that_a_reader_takes_was_queried(
    command, name, is_taken, tmp_path, capfd
):
    (tmp_path / "a.parquet").write_bytes(WITHOUT)
    (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / name).write_bytes(WITH)
    assert run([command, str(tmp_path), "-c", "id", "--value", str(VALUE)]) == (
        0 if is_taken else 1
    )


def test_nothing_is_said_of_values_if_no_file_was_queried(tmp_path, capfd):
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_bytes(WITH[:-8] + bytes(4) + b"PAR1")
    assert run(["probe", str(tmp_path), "id", str(VALUE)]) == 3
    assert capfd.readouterr().out == "Queried 1 value in 0 files: 2 files could not be queried\n"
    (tmp_path / "a.parquet").write_bytes(WITHOUT)
    assert run(["probe", str(tmp_path), "id", str(VALUE)]) == 3
    assert (
        capfd.readouterr().out
        == "Queried 1 value in 1 file: all of them are excluded; 1 more file could not be queried\n"
    )


@each(
    "content, code",
    [(b"", 1), (b"PAR", 1), (b"a,b\n1,2\n" * 9, 1), (WITH[:-1], 0), (b"PAR1" + bytes(99), 0)],
)
def test_files_that_are_no_parquet_hold_no_rows(content, code, tmp_path, capfd):
    (tmp_path / "a.parquet").write_bytes(WITHOUT)
    (tmp_path / "notes").write_bytes(content)
    assert run(["probe", str(tmp_path), "id", str(VALUE)]) == code
    assert ("unfinished" in capfd.readouterr().out) == (code == 0)


def test_unusual_names_are_changed_only_if_they_are_named(tmp_path, capfd):
    names = ("a.parquet", "000000_0", "b.parq", "c.parquet.bak", "d.tmp", "e.inprogress")
    for name in names:
        (tmp_path / name).write_bytes(WITHOUT)
    assert run(["remove-filter", str(tmp_path), "--in-place"]) == 0
    assert [(tmp_path / name).read_bytes() == WITHOUT for name in names] == [False] * 3 + [True] * 3
    assert "3 left out" in capfd.readouterr().out
    assert run(["inspect", str(tmp_path)]) == 0
    assert "6 files" in capfd.readouterr().out
    assert run(["remove-filter", str(tmp_path / "d.tmp"), "--in-place"]) == 0
    assert (tmp_path / "d.tmp").read_bytes() != WITHOUT
