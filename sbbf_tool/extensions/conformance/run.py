"""`run_conformance`: put every question of the corpus to a reader, or let a writer add filters to
its inputs, and judge what they do.

docs/reference/conformance.md is the specification. A reader is a command. Called with {file},
{column} and {value}, it ends with an exit code:

    0    the value may be stored
    1    the value is absent; the reader prints something, because many programs also end with 1
         when they crash
    3    the reader cannot say

Called with {questions}, the path of a file with one JSON object per line, it prints one answer per
line: maybe, absent or cannot say.

A writer is a command with {in} and {out}. It reads a file without filters and writes one with the
same values and a filter, of which {column} is the name. Exit code 0: the file is written; 3 or 4:
the writer does not write filters of this type.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from sbbf_tool.arguments import as_names, check_time_limit
from sbbf_tool.bloom import spec
from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.extensions.conformance.corpus import (
    ABSENT,
    CANNOT_SAY,
    COMPARISON,
    MAYBE,
    Corpus,
    Expectation,
    WriterInput,
)
from sbbf_tool.extensions.conformance.corpus_writer import make_corpus
from sbbf_tool.extensions.conformance.programs import CommandLine, Completion
from sbbf_tool.extensions.conformance.reader_process import ReaderAnswer, ReaderProcess
from sbbf_tool.extensions.conformance.reports import (
    CORRECT,
    NOTED,
    UNUSED,
    WRONG,
    ConformanceReport,
    Judgement,
    build_report,
)
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.literals import format_plain, parse
from sbbf_tool.parquet.logical import AS_STORED
from sbbf_tool.reports.rows import FAILED

# Placeholders of the command of a reader: of one question, and of all.
_SINGLE = ("file", "column", "value")
_TOGETHER = ("questions",)
_OPTIONAL = ("path", "type", "plain", "keys")

Verdict = tuple[str, str]
"""A verdict of `reports`, and the reason."""


def run_conformance(
    folder: str | os.PathLike[str] | None = None,
    *,
    reader: str | None = None,
    writer: str | None = None,
    paimon_reader: str | None = None,
    only: str | Iterable[str] = (),
    exact: bool = False,
    timeout: float = 60.0,
    jobs: int | None = None,
) -> ConformanceReport:
    """Judge a reader, a writer or a reader of Paimon's tables by the corpus in `folder`, or by one
    that is made for the run.

    reader, paimon_reader   a command with {file}, {column} and {value}, or with {questions}
    writer                  a command with {in} and {out}
    only                    patterns of names of files, such as types/*
    exact                   whether filters that are not used count as errors
    timeout                 seconds that a call may take
    jobs                    calls at the same time; one per core if None

    A command is split into words once, and run without a shell. Raises UsageError unless one
    command is given.
    """
    if sum(command is not None for command in (reader, writer, paimon_reader)) != 1:
        raise UsageError(
            "one command is needed",
            hint="give the command of a reader, of a writer, or of a reader of Paimon's indexes",
        )
    check_time_limit(timeout)
    patterns = as_names(only, "file")
    with _folder_or_new(folder, patterns) as path:
        corpus = Corpus.open(path, patterns)
        if writer is not None:
            kind = "writer"
            command = writer
            judgements, calls = _run_writer(corpus, command, timeout, jobs)
        elif reader is not None:
            kind = "reader"
            command = reader
            judgements, calls = _run_reader(corpus, command, "parquet", timeout, jobs)
        else:
            kind = "paimon reader"
            command = paimon_reader or ""
            judgements, calls = _run_reader(corpus, command, "paimon", timeout, jobs)
        version = corpus.manifest.version
        return build_report(kind, command, version, judgements, exact=exact, calls=calls)


@contextmanager
def _folder_or_new(folder: str | os.PathLike[str] | None, only: tuple[str, ...]) -> Iterator[str]:
    """Yield the folder of the corpus; without one, make a corpus that is deleted at the end."""
    if folder is not None:
        yield os.fspath(folder)
        return
    with tempfile.TemporaryDirectory(prefix="sbbf-conformance-") as temporary:
        path = str(Path(temporary) / "corpus")
        make_corpus(path, only=only)
        yield path


def _run_reader(
    corpus: Corpus, command: str, file_format: str, timeout: float, jobs: int | None
) -> tuple[list[Judgement], int]:
    """Put the questions about files of a format to a reader; return also the number of calls.
    Raises UsageError for the command."""
    names = (_TOGETHER,) if "{questions}" in command else (_SINGLE, _OPTIONAL)
    line = CommandLine.parse(command, timeout, *names)
    reader = ReaderProcess(corpus, line)
    questions = corpus.questions(file_format)
    if not questions:
        name = "paimon/bigint" if file_format == "paimon" else "types/int32.parquet"
        raise UsageError(
            f"no file of the corpus is for readers of {file_format.capitalize()}",
            hint=f"names are such as {name}",
        )
    if line.has("questions"):
        answers = reader.ask_together(questions)
    else:
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            answers = list(pool.map(reader.ask, questions))
        reader.calls = len(questions)
    judgements = [
        judge(reader.expect(question), answer)
        for question, answer in zip(questions, answers, strict=True)
    ]
    return judgements, reader.calls


def judge(question: Expectation, answer: ReaderAnswer) -> Judgement:
    """Compare the answer of a reader with the one that the format requires."""
    expected = question.answer
    if expected == CANNOT_SAY:
        expected = f"{CANNOT_SAY} or {MAYBE}"
    verdict, message = _compare_answer(question, answer)
    return Judgement(
        question.file, question.type, question.column, question.value, verdict, expected, message
    )


def _compare_answer(question: Expectation, answer: ReaderAnswer) -> Verdict:
    if answer.answer is None:
        return FAILED, answer.message
    if answer.answer == ABSENT and question.stored:
        if question.basis == COMPARISON:
            return NOTED, "absent, but a stored value equals it"
        return WRONG, "absent, but the value is stored"
    if answer.answer == CANNOT_SAY and question.answer != CANNOT_SAY:
        return CANNOT_SAY, CANNOT_SAY
    if answer.answer == MAYBE and question.answer == ABSENT:
        return UNUSED, "maybe, but the filters exclude the value"
    return CORRECT, ""


_REFUSALS = (3, 4)
_EXPECTED = "the same values, and a filter that holds them"


def _run_writer(
    corpus: Corpus, command: str, timeout: float, jobs: int | None
) -> tuple[list[Judgement], int]:
    """Let a writer write every input of the corpus with filters; see `_run_reader`."""
    line = CommandLine.parse(command, timeout, ("in", "out"), ("column", "type"))
    inputs = corpus.inputs()
    if not inputs:
        raise UsageError(
            "no file of the corpus is an input for writers",
            hint="names of inputs are such as inputs/int32.parquet",
        )
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        judgements = list(pool.map(lambda row: _write(corpus, line, row), inputs))
    return judgements, len(inputs)


def _write(corpus: Corpus, line: CommandLine, row: WriterInput) -> Judgement:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.parquet"
        values = {
            "in": corpus.path_of(row.file),
            "out": str(output),
            "column": row.column,
            "type": row.type,
        }
        completion = line.run(values)
        verdict, message = _judge_written(completion, output, row)
    return Judgement(row.file, row.type, row.column, None, verdict, _EXPECTED, message)


def _judge_written(completion: Completion, output: Path, row: WriterInput) -> Verdict:
    if completion.exit_code in _REFUSALS:
        return (CORRECT, "") if row.type == "BOOLEAN" else (CANNOT_SAY, completion.errors)
    if completion.exit_code != 0:
        return FAILED, completion.failure
    if not output.is_file():
        return FAILED, "ended with exit code 0, but wrote no file"
    return judge_file(output, row)


def judge_file(path: Path, row: WriterInput) -> Verdict:
    """Judge a file that a writer wrote from an input."""
    try:
        with ParquetFile.open(path) as file:
            column = find_column(file.footer.columns, row.column)
            values = [
                _read_values(file, row_group, column)
                for row_group in range(file.footer.num_row_groups)
            ]
            return _compare_values(column, values, row) or _judge_filters(file, column, values, row)
    except SbbfError as error:
        error.file = None
        return WRONG, str(error)


def _read_values(file: ParquetFile, row_group: int, column: Column) -> list[bytes]:
    values: list[bytes] = []
    for run in file.values(row_group, column):
        values += (run[at] for at in range(len(run)))
    return values


def _compare_values(
    column: Column, values: Sequence[Sequence[bytes]], row: WriterInput
) -> Verdict | None:
    """Return the verdict on values that differ from the input's; None if they are the same, in
    whichever type."""
    if column.physical != "BOOLEAN":
        stored: set[bytes] = set().union(*values)
        # The texts are all that is stored, whatever readers show of it.
        column = replace(column, reading=AS_STORED)
        for text in row.values:
            if not stored.intersection(parse(column, text).forms):
                return WRONG, f"the value {text!r} of the input is not in the file"
    count = sum(map(len, values))
    if count != len(row.values):
        return WRONG, f"the file has {count:,} values, the input {len(row.values):,}"
    return None


def _judge_filters(
    file: ParquetFile, column: Column, values: Sequence[Sequence[bytes]], row: WriterInput
) -> Verdict:
    notes = []
    missing = 0
    excluded = 0
    row_groups = [number for number, plains in enumerate(values) if plains]
    for number in row_groups:
        stored = file.stored_filter(number, column)
        if stored is None:
            missing += 1
            continue
        if stored.header.unsupported_reason is not None:
            return WRONG, f"row group {number}: {stored.header.unsupported_reason}"
        bitset = file.read_bitset(stored)
        if column.physical == "BOOLEAN":
            return _judge_boolean(number, bitset)
        lost = _find_excluded(bitset, values[number])
        if lost is not None:
            value = format_plain(column, lost)
            return WRONG, f"the filter of row group {number} excludes the stored value {value!r}"
        excluded += sum(_excludes(bitset, bytes.fromhex(plain)) for plain in row.absent)
        equal = [plain for plain in map(bytes.fromhex, row.equal) if len(plain) == column.width]
        if _find_excluded(bitset, equal) is not None:
            notes.append(
                f"the filter of row group {number} excludes a value that equals a stored one: "
                "the other zero"
            )
        notes += stored.warnings()
    if missing == len(row_groups):
        return (CORRECT, "") if column.physical == "BOOLEAN" else (UNUSED, "the file has no filter")
    if not excluded:
        return UNUSED, f"the filters exclude none of {len(row.absent)} absent values"
    if missing:
        notes.append(f"{missing} of {len(row_groups)} row groups have no filter")
    return (NOTED, notes[0]) if notes else (CORRECT, "")


def _judge_boolean(number: int, bitset: bytes) -> Verdict:
    if any(bitset):
        return (
            NOTED,
            "the format does not define the hash of a BOOLEAN, and parquet-java's filters of them "
            "are empty",
        )
    return WRONG, f"the filter of row group {number} has no bit, although the column has values"


def _excludes(bitset: bytes, plain: bytes) -> bool:
    blocks = len(bitset) // spec.BLOCK_BYTES
    return not spec.filter_check(bitset, blocks, spec.xxh64(plain))


def _find_excluded(bitset: bytes, values: Iterable[bytes]) -> bytes | None:
    """Return the first value that a filter excludes; None if it excludes none."""
    for plain in values:
        if _excludes(bitset, plain):
            return plain
    return None
