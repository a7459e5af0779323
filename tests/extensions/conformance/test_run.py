"""`run_conformance`: readers and writers that conform, lose values, crash, hang, or do not use filters."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from sbbf_tool import UsageError, run_conformance
from sbbf_tool.cli import run
from support.tables import each

pytestmark = pytest.mark.slow

SBBF = f"{sys.executable} -m sbbf_tool"
SINGLE = "{file} {column} {value}"
WRITES = "{in} {out} {column}"


@pytest.fixture
def program(tmp_path: Path):
    """`program(code)`: the words of a command that runs this code; its arguments are in `args`."""

    def write(code: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(f"import json, os, shutil, sys, time\nargs = sys.argv[1:]\n{code}\n")
        return f"{sys.executable} {path}"

    return write


@pytest.mark.heavy
def test_sbbf_probe_is_a_reader_that_conforms(corpus_folder: Path) -> None:
    only = ["types/uint8*", "damaged/2-gib*", "nested/dotted*", "encrypted/column-key*"]
    report = run_conformance(str(corpus_folder), reader=f"{SBBF} probe {SINGLE} --keys {{keys}}", only=only, exact=True)
    assert report.passed, report.problems
    assert report.calls == report.count("correct") > 20


@pytest.mark.nightly(8)
def test_sbbf_probe_conforms_with_every_file(corpus_folder: Path) -> None:
    report = run_conformance(str(corpus_folder), reader=f"{SBBF} probe {SINGLE} --keys {{keys}}", exact=True)
    assert report.passed, report.problems
    assert report.calls == report.count("correct") > 1000
    report = run_conformance(str(corpus_folder), paimon_reader=f"{SBBF} paimon probe {SINGLE}", exact=True)
    assert report.passed, report.problems
    assert report.calls == report.count("correct") > 150


def test_a_reader_without_keys_must_not_take_ciphertext_for_a_filter(corpus_folder: Path) -> None:
    report = run_conformance(str(corpus_folder), reader=f"{SBBF} probe {SINGLE}", only=["encrypted/signed-footer.parquet"], exact=True)
    assert report.passed, report.problems
    assert report.count("correct") == report.calls


def test_a_reader_that_loses_rows_is_caught(program, corpus_folder: Path) -> None:
    """It answers that everything is absent: right for values that are not stored, and fatal for the others."""
    command = program("print('absent'); sys.exit(1)")
    report = run_conformance(str(corpus_folder), reader=f"{command} {SINGLE}", only=["types/int8.parquet"])
    assert not report.passed
    assert (report.count("wrong"), report.count("correct")) == (6, 3)
    assert {problem.message for problem in report.problems} == {"absent, but the value is stored"}


def test_a_reader_that_trusts_damaged_filters_is_caught(program, corpus_folder: Path) -> None:
    command = program("for line in open(args[0]): print('absent')")
    only = ["damaged/*", "drafts/*", "unusable/*", "booleans/*"]
    report = run_conformance(str(corpus_folder), reader=f"{command} {{questions}}", only=only)
    assert all(result.wrong for result in report.results)
    assert report.calls == 1


def test_an_answer_that_loses_an_equal_value_is_noted(program, corpus_folder: Path) -> None:
    """The format does not say that -0 equals +0: the answer is no failure unless the run is exact."""
    code = "for line in open(args[0]): q = json.loads(line); print('absent' if q['value'] == '-0.0' else 'maybe')"
    command, only = f"{program(code)} {{questions}}", ["floats/double-positive-zero.parquet"]
    report = run_conformance(str(corpus_folder), reader=command, only=only)
    assert (report.passed, report.count("noted"), report.count("wrong")) == (True, 1, 0)
    assert not run_conformance(str(corpus_folder), reader=command, only=only, exact=True).passed
    both = run_conformance(str(corpus_folder), reader=command, only=["floats/double-both-zeros.parquet"])
    assert (both.passed, both.count("wrong")) == (False, 1)


def test_a_reader_that_uses_no_filter_passes_unless_the_run_is_exact(program, corpus_folder: Path) -> None:
    command, only = f"{program('sys.exit(0)')} {SINGLE}", ["types/int8.parquet"]
    report = run_conformance(str(corpus_folder), reader=command, only=only)
    assert (report.passed, report.count("unused")) == (True, 3)
    exact = run_conformance(str(corpus_folder), reader=command, only=only, exact=True)
    assert not exact.passed
    assert [problem.verdict for problem in exact.problems] == ["unused"] * 3


def test_a_crash_is_no_answer(program, corpus_folder: Path) -> None:
    """Interpreters end a program that raises with 1, which also means absent: an absence must be printed."""
    report = run_conformance(str(corpus_folder), reader=f"{program('raise ValueError(7)')} {SINGLE}", only=["types/int8.parquet"])
    assert report.count("failed") == report.calls == 9
    assert "exit code 1: ValueError: 7; an answer of absent is printed too" in report.problems[0].message
    command = program("os.abort()")
    report = run_conformance(str(corpus_folder), reader=f"{command} {SINGLE}", only=["types/int8.parquet"])
    assert {problem.message for problem in report.problems} == {"ended with signal 6"}


def test_a_reader_that_hangs_is_ended(program, corpus_folder: Path) -> None:
    command = program("time.sleep(600)")
    report = run_conformance(str(corpus_folder), reader=f"{command} {SINGLE}", only=["booleans/empty.parquet"], timeout=0.5)
    assert [problem.message for problem in report.problems] == ["the time limit was exceeded"] * 2


@each("placeholders", [SINGLE, "{questions}"])
def test_a_reader_that_prints_without_end_is_ended(program, corpus_folder: Path, placeholders: str) -> None:
    command = program("while True: os.write(1, b'absent\\n' * 100_000)")
    report = run_conformance(str(corpus_folder), reader=f"{command} {placeholders}", only=["booleans/empty.parquet"])
    assert [problem.message for problem in report.problems] == ["it printed more than 16 MiB"] * 2


def test_one_question_that_crashes_costs_no_other_answer(program, corpus_folder: Path) -> None:
    code = "for line in open(args[0]):\n q = json.loads(line)\n if q['value'] == '127': os.abort()\n print('maybe', flush=True)"
    report = run_conformance(str(corpus_folder), reader=f"{program(code)} {{questions}}", only=["types/int8.parquet"])
    assert [(problem.value, problem.verdict) for problem in report.problems] == [("127", "failed")]
    assert (report.count("correct"), report.count("unused")) == (5, 3)


def test_add_filter_is_a_writer_that_conforms(corpus_folder: Path) -> None:
    command, only = f"{SBBF} add-filter {{in}} -c {{column}} --output {{out}}", ["inputs/boolean*", "inputs/uint8*", "inputs/double-zero*"]
    report = run_conformance(str(corpus_folder), writer=command, only=only, exact=True)
    assert report.passed, report.problems
    assert report.count("correct") == report.calls == 3


@pytest.mark.nightly(3)
def test_add_filter_conforms_with_every_input(corpus_folder: Path) -> None:
    report = run_conformance(str(corpus_folder), writer=f"{SBBF} add-filter {{in}} -c {{column}} --output {{out}}", exact=True)
    assert report.passed, report.problems
    assert report.count("correct") == report.calls == 47


REWRITE = """
import pyarrow.parquet as pq
table = pq.read_table(args[0])
"""


@each(
    "code, verdict, message",
    [
        ("shutil.copy(args[0], args[1])", "unused", "the file has no filter"),
        ("pass", "failed", "ended with exit code 0, but wrote no file"),
        ("open(args[1], 'w').write('x' * 100)", "wrong", "not a Parquet file"),
        ("sys.exit('no filters here')", "failed", "ended with exit code 1: no filters here"),
        ("print('INT32 is not supported', file=sys.stderr); sys.exit(3)", "cannot say", "INT32 is not supported"),
        (f"{REWRITE}pq.write_table(table.slice(1), args[1])", "wrong", "the value '-20000000' of the input is not in the file"),
        (
            f"{REWRITE}pq.write_table(__import__('pyarrow').concat_tables([table, table.slice(0, 1)]), args[1])",
            "wrong",
            "the file has 53 values, the input 52",
        ),
    ],
)
def test_writers_that_do_less(program, corpus_folder: Path, code: str, verdict: str, message: str) -> None:
    command = f"{program(code)} {WRITES}"
    report = run_conformance(str(corpus_folder), writer=command, only=["inputs/int32.parquet"], exact=True)
    (problem,) = report.problems
    assert (problem.verdict, report.passed) == (verdict, False)
    assert message in problem.message


FILTER = """
from sbbf_tool.extensions.conformance.corpus_file import FileMaker
from sbbf_tool.extensions.conformance.kinds import BY_NAME
from sbbf_tool.extensions.conformance.parquet_writer import StoredBytes, build_filter
maker = FileMaker(BY_NAME["int32"])
values = maker.stored()
def write(filters): open(args[1], "wb").write(FileMaker(BY_NAME["int32"], filters=filters).build())
"""


@each(
    "code, verdict, message",
    [
        (
            "write({0: StoredBytes(build_filter(values[0][1:], 256)), 1: StoredBytes(build_filter(values[1], 256))})",
            "wrong",
            "the filter of row group 0 excludes the stored value '-20000000'",
        ),
        ("write({at: StoredBytes(build_filter([], 256, b'\\x15\\x80\\x04\\x00') ) for at in (0, 1)})", "wrong", "row group 0: its header"),
        (
            "write({at: StoredBytes(build_filter([], 64)[:-64] + b'\\xff' * 64) for at in (0, 1)})",
            "unused",
            "the filters exclude none of 6 absent values",
        ),
        ("write({0: maker.sound_filters()[0]})", "noted", "1 of 2 row groups have no filter"),
        ("write({at: StoredBytes(stored.data, has_length=False) for at, stored in maker.sound_filters().items()})", "noted", "is missing"),
    ],
)
def test_filters_that_a_writer_must_not_write(program, corpus_folder: Path, code: str, verdict: str, message: str) -> None:
    """A writer that loses a value is caught, and a filter that readers reject is noted."""
    report = run_conformance(str(corpus_folder), writer=f"{program(FILTER + code)} {WRITES}", only=["inputs/int32.parquet"], exact=True)
    (problem,) = report.problems
    assert (problem.verdict, report.passed) == (verdict, False)
    assert message in problem.message


@each(
    "options, message",
    [
        ({}, "one command is needed; give the command of a reader, of a writer, or of a reader of Paimon's indexes"),
        ({"reader": "true {questions}", "writer": "true {in} {out}"}, "one command is needed"),
        ({"reader": "probe {file} {column}"}, r"the command 'probe \{file\} \{column\}' lacks \{value\}"),
        ({"reader": "probe {file} {column} {value} {size}"}, r"has the unknown placeholder \{size\}; the placeholders are \{file\}"),
        ({"reader": "probe '{file}"}, "cannot be split into words"),
        ({"reader": "/no/such/program {questions}"}, "the command '/no/such/program' cannot be run: no such file or directory"),
        ({"reader": "true {questions}", "timeout": math.nan}, r"the time limit must be above 0, and at most .* days\), not nan"),
        ({"reader": "true {questions}", "only": ["nothing"]}, "no file of the corpus matches 'nothing'"),
        ({"reader": "true {questions}", "only": ["paimon/*"]}, "no file of the corpus is for readers of Parquet"),
        ({"paimon_reader": "true {questions}", "only": ["types/int*"]}, "no file of the corpus is for readers of Paimon"),
    ],
)
def test_wrong_requests(corpus_folder: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_conformance(str(corpus_folder), **options)  # type: ignore[arg-type]


def test_no_shell_sees_the_command(program, corpus_folder: Path, tmp_path: Path) -> None:
    """A value is one argument, whatever is in it, and braces in it are no placeholders."""
    (tmp_path / "seen").mkdir()
    command = program(f"open(os.path.join({str(tmp_path / 'seen')!r}, str(os.getpid())), 'w').write(json.dumps(args))")
    run_conformance(str(corpus_folder), reader=f"{command} {{file}} {{column}} {{value}} ';' '$HOME'", only=["types/json.parquet"])
    calls = [json.loads(path.read_text()) for path in (tmp_path / "seen").iterdir()]
    assert {call[2] for call in calls} >= {"{}", "null", '{"n": 0}'}
    assert {tuple(call[3:]) for call in calls} == {(";", "$HOME")}


def test_the_command_line(program, corpus_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = program("for line in open(args[0]): print('absent')")
    words = ["conformance", "run", str(corpus_folder), "--only", "types/int8.parquet", "--reader"]
    assert run([*words, f"{command} {{questions}}"]) == 1
    out = capsys.readouterr().out
    assert "wrong: types/int8.parquet: column v, value -128 and 5 more: absent, but the value is stored" in out
    assert out.splitlines()[-1].endswith("3 correct, 0 unused, 0 cannot say, 0 noted, 6 wrong, 0 failed: failed")
    assert run([*words, f"{SBBF} probe {SINGLE}", "--exact", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["passed"], document["results"][0]["correct"]) == ("sbbf.conformance-run", True, 9)
