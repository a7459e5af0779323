"""`run_writer`: let a writer add filters to the inputs of the corpus, and judge the files that it writes.

A writer is a command with {in} and {out}. It reads a file without filters and writes one with the same values and a filter, of which
{column} is the name. Exit code 0: the file is written; 3 or 4: the writer does not write filters of this type.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sbbf_tool.bloom import spec
from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.extensions.conformance.corpus import Corpus, WriterInput
from sbbf_tool.extensions.conformance.programs import CommandLine
from sbbf_tool.extensions.conformance.reports import (
    CANNOT_SAY,
    CORRECT,
    FAILED,
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
from sbbf_tool.parquet.values import read_chunk

_REFUSALS = (3, 4)
_EXPECTED = "the same values, and a filter that holds them"
Verdict = tuple[str, str]


def run_writer(corpus: Corpus, command: str, *, timeout: float = 60, exact: bool = False, jobs: int | None = None) -> ConformanceReport:
    """Let a writer write every input of the corpus with filters; see `run_reader`. Raises UsageError for a command without placeholders."""
    line = CommandLine.parse(command, timeout, ("in", "out"), ("column", "type"))
    inputs = corpus.inputs()
    if not inputs:
        raise UsageError("no file of the corpus is an input for writers", hint="names of inputs are such as inputs/int32.parquet")
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        judgements = list(pool.map(lambda row: _write(corpus, line, row), inputs))
    return build_report("writer", command, corpus.manifest.version, judgements, exact=exact, calls=len(inputs))


def _write(corpus: Corpus, line: CommandLine, row: WriterInput) -> Judgement:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.parquet"
        values = {"in": corpus.path_of(row.file), "out": str(output), "column": row.column, "type": row.type}
        completion = line.run(values)
        if completion.exit_code in _REFUSALS:
            verdict, message = (CORRECT, "") if row.type == "BOOLEAN" else (CANNOT_SAY, completion.errors)
        elif completion.exit_code != 0:
            verdict, message = FAILED, completion.failure
        elif not output.is_file():
            verdict, message = FAILED, "ended with exit code 0, but wrote no file"
        else:
            verdict, message = judge_file(output, row)
    return Judgement(row.file, row.type, row.column, None, verdict, _EXPECTED, message)


def judge_file(path: Path, row: WriterInput) -> Verdict:
    """Judge a file that a writer wrote from an input."""
    try:
        with ParquetFile.open(path) as file:
            column = find_column(file.footer.columns, row.column)
            values = [_read_values(file, row_group, column) for row_group in range(file.footer.num_row_groups)]
            return _compare_values(column, values, row) or _judge_filters(file, column, values, row)
    except SbbfError as error:
        error.file = None
        return WRONG, str(error)


def _read_values(file: ParquetFile, row_group: int, column: Column) -> list[bytes]:
    pages = file.pages(row_group, column)
    runs = read_chunk(file.footer, row_group, column, pages)
    return [run[at] for run in runs for at in range(len(run))]


def _compare_values(column: Column, values: Sequence[Sequence[bytes]], row: WriterInput) -> Verdict | None:
    """Return the verdict on values that differ from the input's; None if they are the same, in whichever type."""
    count = sum(map(len, values))
    stored = {plain for plains in values for plain in plains}
    column = replace(column, reading=AS_STORED)  # the texts are all that is stored, whatever readers show of it
    for text in row.values if column.physical != "BOOLEAN" else ():
        if not stored.intersection(parse(column, text).forms):
            return WRONG, f"the value {text!r} of the input is not in the file"
    if count != len(row.values):
        return WRONG, f"the file has {count:,} values, the input {len(row.values):,}"
    return None


def _judge_filters(file: ParquetFile, column: Column, values: Sequence[Sequence[bytes]], row: WriterInput) -> Verdict:
    notes: list[str] = []
    missing = excluded = 0
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
            if any(bitset):
                return NOTED, "the format does not define the hash of a BOOLEAN, and parquet-java's filters of them are empty"
            return WRONG, f"the filter of row group {number} has no bit, although the column has values"
        for plain in values[number]:
            if not spec.filter_check(bitset, stored.num_blocks, spec.xxh64(plain)):
                return WRONG, f"the filter of row group {number} excludes the stored value {format_plain(column, plain)!r}"
        excluded += sum(not spec.filter_check(bitset, stored.num_blocks, spec.xxh64(bytes.fromhex(plain))) for plain in row.absent)
        equal = [plain for plain in map(bytes.fromhex, row.equal) if len(plain) == column.width]
        if any(not spec.filter_check(bitset, stored.num_blocks, spec.xxh64(plain)) for plain in equal):
            notes.append(f"the filter of row group {number} excludes a value that equals a stored one: the other zero")
        notes += stored.warnings()
    if missing == len(row_groups):
        return (CORRECT, "") if column.physical == "BOOLEAN" else (UNUSED, "the file has no filter")
    if not excluded:
        return UNUSED, f"the filters exclude none of {len(row.absent)} absent values"
    if missing:
        notes.append(f"{missing} of {len(row_groups)} row groups have no filter")
    return (NOTED, notes[0]) if notes else (CORRECT, "")
