"""The corpus, and readers and writers that conform, lose values, crash, hang, or do not use
filters."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import RefusedError, SbbfError, UnreadableError, UsageError, add_filters, probe
from sbbf_tool.cli import run
from sbbf_tool.extensions.conformance import make_corpus, run_conformance
from sbbf_tool.extensions.conformance.corpus import Corpus
from sbbf_tool.extensions.conformance.kinds import BY_NAME, KINDS
from sbbf_tool.extensions.conformance.run import ReaderAnswer, judge, judge_file
from sbbf_tool.extensions.paimon import probe_paimon
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import PHYSICAL_TYPES
from sbbf_tool.parquet.idl.ttypes import LogicalType
from sbbf_tool.parquet.values import read_chunk
from support.tables import each

SHA256_OF_VERSION_1 = "b6d946921b8d8cbf3f4b4496fd4b289b7e8ca8ca04c5a7e3d347523ca5544e2f"
"""Of the manifest, which has the checksums of all files. If it changes, so does the version of the
corpus, once that is released."""


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def test_the_bytes_of_a_version_do_not_change(corpus_folder: Path) -> None:
    assert (
        hashlib.sha256((corpus_folder / "manifest.json").read_bytes()).hexdigest()
        == SHA256_OF_VERSION_1
    )


def test_the_manifest_has_the_checksum_of_each_file(corpus: Corpus) -> None:
    for file in corpus.manifest.files:
        path = corpus.folder / file.file
        paths = [path] if path.is_file() else list(files_below(path))
        data = b"".join(each.read_bytes() for each in paths)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256), file.file


def test_every_type_of_the_format_has_a_file() -> None:
    physical = {kind.physical for kind in KINDS}
    assert physical == {*PHYSICAL_TYPES} - {"BOOLEAN"}
    logical = {
        name
        for kind in KINDS
        if kind.logical is not None
        for name, member in vars(kind.logical).items()
        if member is not None
    }
    # LIST, MAP and VARIANT are groups; a column of UNKNOWN has nulls alone; the format has not
    # released FILE.
    assert logical == {*vars(LogicalType())} - {"LIST", "MAP", "VARIANT", "UNKNOWN", "FILE"}


@each("name", sorted(BY_NAME))
def test_another_reader_reads_the_values(corpus: Corpus, name: str) -> None:
    """Pages are decoded by pyarrow."""
    kind = BY_NAME[name]
    for folder in ("types", "inputs"):
        with ParquetFile.open(corpus.folder / folder / f"{name}.parquet") as file:
            (column,) = file.footer.columns
            for row_group in (0, 1):
                runs = read_chunk(file.footer, row_group, column, file.pages(row_group, column))
                assert [run[at] for run in runs for at in range(len(run))] == kind.stored(row_group)


def test_another_reader_reads_nested_values(corpus: Corpus) -> None:
    def read(name: str) -> pa.Table:
        return pq.read_table(corpus.folder / "nested" / f"{name}.parquet")

    assert read("struct")["point"].to_pylist()[:3] == [None, {"x": None}, {"x": -20_000_000}]
    assert read("list")["words"].to_pylist()[:4] == [
        None,
        [],
        [None],
        ["text 0", "text 4", "text 8"],
    ]
    assert [len(entries or ()) for entries in read("map")["ages"].to_pylist()[:4]] == [0, 0, 4, 4]
    assert read("dotted-name").column_names == ["a.b", "a"]


def test_another_reader_reads_encrypted_files(corpus: Corpus) -> None:
    encryption = pytest.importorskip("pyarrow.parquet.encryption")
    for name in ("footer-key", "ctr", "aad-prefix", "signed-footer"):
        path = corpus.folder / "encrypted" / f"{name}.parquet"
        keys = encryption.create_decryption_properties(b"0123456789012345")
        values = pq.read_table(path, decryption_properties=keys)["v"].to_pylist()
        assert values[:3] == ["text 0", None, "text 4"], name


def ask_sbbf(corpus: Corpus, file: str, column: str, value: str) -> ReaderAnswer:
    keys = json.loads((corpus.folder / "encrypted" / "keys.json").read_text())
    try:
        report = probe(corpus.path_of(file), column, [value], filters_only=True, keys=keys)
    except UnreadableError:
        return ReaderAnswer("cannot say")
    (answer,) = report.values
    if answer.is_absent:
        return ReaderAnswer("absent")
    return ReaderAnswer(
        "cannot say" if {each.answer for each in answer.row_groups} == {"cannot say"} else "maybe"
    )


CAUTIOUS = {
    "nested/variant.parquet": "other parts of the VARIANT may hold the value",
    "types/int96.parquet": "readers may show fewer digits than are stored",
    **dict.fromkeys(
        [f"lengths/{name}.parquet" for name in ("bitset-only", "long", "short")],
        "header and footer state other lengths",
    ),
}
"""Files whose filters a reader may use by the format, and why sbbf does not."""


@pytest.mark.slow
def test_probe_answers_as_the_format_requires(corpus: Corpus) -> None:
    verdicts: Counter[str] = Counter()
    for question in corpus.questions("parquet"):
        answer = ask_sbbf(corpus, question.file, question.column, question.value)
        if question.file in CAUTIOUS and answer == ReaderAnswer("cannot say"):
            continue
        judgement = judge(question, answer)
        assert judgement.verdict == "correct", judgement
        verdicts[question.answer] += 1
    assert verdicts["absent"] > 200
    assert verdicts["maybe"] > 400
    assert verdicts["cannot say"] > 200


@pytest.mark.slow
def test_paimon_probe_answers_as_paimon_does(corpus: Corpus) -> None:
    questions = corpus.questions("paimon")
    for question in questions:
        report = probe_paimon(corpus.path_of(question.file), question.column, [question.value])
        judgement = judge(question, ReaderAnswer("maybe" if report.remaining else "absent"))
        assert judgement.verdict == "correct", judgement
    assert len({question.file for question in questions}) == 20


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("")
    with pytest.raises(
        RefusedError, match="the folder has files, but no corpus; name a new folder"
    ):
        make_corpus(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_part_of_the_corpus(tmp_path: Path) -> None:
    report = make_corpus(str(tmp_path / "part"), only=["types/int8.parquet", "inputs/uuid*"])
    assert (report.files, report.inputs) == (2, 1)
    again = make_corpus(str(tmp_path / "part"), only=["types/int8.parquet", "inputs/uuid*"])
    assert again == report
    with pytest.raises(UsageError, match=r"no file of the corpus matches 'nothing/\*'"):
        make_corpus(str(tmp_path / "part"), only=["types/int8.parquet", "nothing/*"])
    assert len(Corpus.open(str(tmp_path / "part")).manifest.files) == 1


@each(
    "change, message",
    [
        ({"corpus": "another"}, "not the manifest of a conformance corpus"),
        ({"version": 2}, "the corpus has version 2; this is the tool of version 1"),
        ({"files": [{}]}, "the manifest lacks a field"),
        ({"files": 7}, "the manifest lacks a field"),
        (
            {"files": [{"file": 1, "format": "parquet", "about": "", "bytes": 1, "sha256": ""}]},
            "1 is not of the type <class 'str'>",
        ),
    ],
)
def test_other_manifests_are_refused(
    corpus: Corpus, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    document = json.loads((corpus.folder / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(document | change))
    with pytest.raises(SbbfError, match=message):
        Corpus.open(str(tmp_path))


def test_a_manifest_cannot_name_files_outside_its_folder(corpus: Corpus) -> None:
    with pytest.raises(UnreadableError, match="which is not in the folder"):
        corpus.path_of("../../etc/passwd")


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
    report = run_conformance(
        str(corpus_folder), reader=f"{SBBF} probe {SINGLE} --keys {{keys}}", only=only, exact=True
    )
    assert report.passed, report.problems
    assert report.calls == report.count("correct") > 20


def test_a_reader_that_loses_rows_is_caught(program, corpus_folder: Path) -> None:
    """It answers that everything is absent: right for values that are not stored, and fatal for the
    others."""
    command = program("print('absent'); sys.exit(1)")
    report = run_conformance(
        str(corpus_folder), reader=f"{command} {SINGLE}", only=["types/int8.parquet"]
    )
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
    """The format does not say that -0 equals +0: the answer is no failure unless the run is
    exact."""
    code = (
        "for line in open(args[0]): q = json.loads(line); print('absent' if q['value'] == "
        "'-0.0' else 'maybe')"
    )
    command, only = f"{program(code)} {{questions}}", ["floats/double-positive-zero.parquet"]
    report = run_conformance(str(corpus_folder), reader=command, only=only)
    assert (report.passed, report.count("noted"), report.count("wrong")) == (True, 1, 0)
    assert not run_conformance(str(corpus_folder), reader=command, only=only, exact=True).passed
    both = run_conformance(
        str(corpus_folder), reader=command, only=["floats/double-both-zeros.parquet"]
    )
    assert (both.passed, both.count("wrong")) == (False, 1)


def test_a_crash_is_no_answer(program, corpus_folder: Path) -> None:
    """Interpreters end a program that raises with 1, which also means absent: an absence must be
    printed."""
    report = run_conformance(
        str(corpus_folder),
        reader=f"{program('raise ValueError(7)')} {SINGLE}",
        only=["types/int8.parquet"],
    )
    assert report.count("failed") == report.calls == 9
    assert (
        "exit code 1: ValueError: 7; an answer of absent is printed too"
        in report.problems[0].message
    )
    command = program("os.abort()")
    report = run_conformance(
        str(corpus_folder), reader=f"{command} {SINGLE}", only=["types/int8.parquet"]
    )
    assert {problem.message for problem in report.problems} == {"ended with signal 6"}


def test_a_reader_that_hangs_is_ended(program, corpus_folder: Path) -> None:
    command = program("time.sleep(600)")
    report = run_conformance(
        str(corpus_folder),
        reader=f"{command} {SINGLE}",
        only=["booleans/empty.parquet"],
        timeout=0.5,
    )
    assert [problem.message for problem in report.problems] == ["the time limit was exceeded"] * 2


@each("placeholders", [SINGLE, "{questions}"])
def test_a_reader_that_prints_without_end_is_ended(
    program, corpus_folder: Path, placeholders: str
) -> None:
    command = program("while True: os.write(1, b'absent\\n' * 100_000)")
    report = run_conformance(
        str(corpus_folder), reader=f"{command} {placeholders}", only=["booleans/empty.parquet"]
    )
    assert [problem.message for problem in report.problems] == ["it printed more than 16 MiB"] * 2


def test_one_question_that_crashes_costs_no_other_answer(program, corpus_folder: Path) -> None:
    code = (
        "for line in open(args[0]):\n q = json.loads(line)\n if q['value'] == '127': "
        "os.abort()\n print('maybe', flush=True)"
    )
    report = run_conformance(
        str(corpus_folder), reader=f"{program(code)} {{questions}}", only=["types/int8.parquet"]
    )
    assert [(problem.value, problem.verdict) for problem in report.problems] == [("127", "failed")]
    assert (report.count("correct"), report.count("unused")) == (5, 3)


@pytest.mark.slow
def test_filters_of_every_input_conform(corpus: Corpus, tmp_path: Path) -> None:
    for number, row in enumerate(corpus.inputs()):
        output = tmp_path / f"{number}.parquet"
        try:
            add_filters(corpus.path_of(row.file), [row.column], output=output)
        except RefusedError:
            assert row.type == "BOOLEAN"
        else:
            assert judge_file(output, row) == ("correct", ""), row.file


def test_a_row_group_of_nulls_needs_no_filter(corpus: Corpus, tmp_path: Path) -> None:
    (row,) = (each for each in corpus.inputs() if each.file == "inputs/int32.parquet")
    table = pq.read_table(corpus.path_of(row.file))
    output = tmp_path / "out.parquet"
    with pq.ParquetWriter(output, table.schema) as writer:
        writer.write_table(table)
        writer.write_table(pa.table([pa.nulls(9, table.schema.types[0])], schema=table.schema))
    add_filters(output, [row.column], in_place=True)
    with ParquetFile.open(output) as file:
        places = file.footer.filter_places()
    assert {row_group for row_group, _ in places} == {0}
    assert judge_file(output, row) == ("correct", "")


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
        (
            "print('INT32 is not supported', file=sys.stderr); sys.exit(3)",
            "cannot say",
            "INT32 is not supported",
        ),
        (
            f"{REWRITE}pq.write_table(table.slice(1), args[1])",
            "wrong",
            "the value '-20000000' of the input is not in the file",
        ),
        (
            f"{REWRITE}pq.write_table(__import__('pyarrow').concat_tables([table, table.slice(0, "
            "1)]), args[1])",
            "wrong",
            "the file has 53 values, the input 52",
        ),
    ],
)
def test_writers_that_do_less(
    program, corpus_folder: Path, code: str, verdict: str, message: str
) -> None:
    command = f"{program(code)} {WRITES}"
    report = run_conformance(
        str(corpus_folder), writer=command, only=["inputs/int32.parquet"], exact=True
    )
    (problem,) = report.problems
    assert (problem.verdict, report.passed) == (verdict, False)
    assert message in problem.message


FILTER = """
from sbbf_tool.extensions.conformance.corpus_file import FileMaker
from sbbf_tool.extensions.conformance.kinds import BY_NAME
from sbbf_tool.extensions.conformance.parquet_writer import StoredBytes, build_bitset, build_filter
maker = FileMaker(BY_NAME["int32"])
values = maker.stored()
def write(filters): open(args[1], "wb").write(FileMaker(BY_NAME["int32"], filters=filters).build())
"""


@each(
    "code, verdict, message",
    [
        (
            "write({0: StoredBytes(build_filter(values[0][1:], 256)), 1: "
            "StoredBytes(build_filter(values[1], 256))})",
            "wrong",
            "the filter of row group 0 excludes the stored value '-20000000'",
        ),
        (
            "write({at: StoredBytes(b'\\x15\\x80\\x04\\x00' + build_bitset([], 256)) for at in "
            "(0, 1)})",
            "wrong",
            "row group 0: its header",
        ),
        (
            "write({at: StoredBytes(build_filter([], 64)[:-64] + b'\\xff' * 64) for at in (0, 1)})",
            "unused",
            "the filters exclude none of 6 absent values",
        ),
        ("write({0: maker.sound_filters()[0]})", "noted", "1 of 2 row groups have no filter"),
        (
            "write({at: StoredBytes(stored.data, has_length=False) for at, stored in "
            "maker.sound_filters().items()})",
            "noted",
            "is missing",
        ),
    ],
)
def test_filters_that_a_writer_must_not_write(
    program, corpus_folder: Path, code: str, verdict: str, message: str
) -> None:
    """A writer that loses a value is caught, and a filter that readers reject is noted."""
    report = run_conformance(
        str(corpus_folder),
        writer=f"{program(FILTER + code)} {WRITES}",
        only=["inputs/int32.parquet"],
        exact=True,
    )
    (problem,) = report.problems
    assert (problem.verdict, report.passed) == (verdict, False)
    assert message in problem.message


def test_no_shell_sees_the_command(program, corpus_folder: Path, tmp_path: Path) -> None:
    """A value is one argument, whatever is in it, and braces in it are no placeholders."""
    (tmp_path / "seen").mkdir()
    command = program(
        f"open(os.path.join({str(tmp_path / 'seen')!r}, str(os.getpid())), "
        "'w').write(json.dumps(args))"
    )
    run_conformance(
        str(corpus_folder),
        reader=f"{command} {{file}} {{column}} {{value}} ';' '$HOME'",
        only=["types/json.parquet"],
    )
    calls = [json.loads(path.read_text()) for path in (tmp_path / "seen").iterdir()]
    assert {call[2] for call in calls} >= {"{}", "null", '{"n": 0}'}
    assert {tuple(call[3:]) for call in calls} == {(";", "$HOME")}


def test_the_command_line(program, corpus_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = program("for line in open(args[0]): print('absent')")
    words = ["conformance", "run", str(corpus_folder), "--select", "types/int8.parquet", "--reader"]
    assert run([*words, f"{command} {{questions}}"]) == 1
    out = capsys.readouterr().out
    assert (
        "wrong: types/int8.parquet: column v, value -128 and 5 more: absent, but the value is "
        "stored" in out
    )
    assert out.splitlines()[-1].endswith(
        "3 correct, 0 unused, 0 cannot say, 0 noted, 6 wrong, 0 failed: failed"
    )
    assert run([*words, f"{SBBF} probe {SINGLE}", "--strict", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["passed"], document["results"][0]["correct"]) == (
        "sbbf.conformance-run",
        True,
        9,
    )
