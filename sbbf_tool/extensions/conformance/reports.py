"""Results of `make_corpus` and `run_conformance`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sbbf_tool.display import redact_text
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import FAILED
from sbbf_tool.reports.tabular import Tabular

CORRECT = "correct"
UNUSED = "unused"
CANNOT_SAY = "cannot say"
NOTED = "noted"
WRONG = "wrong"
VERDICTS = (CORRECT, UNUSED, CANNOT_SAY, NOTED, WRONG, FAILED)


class MadeCorpus(Tabular):
    """A corpus that was written."""

    folder: str
    corpus_version: int
    files: int
    """Files of Parquet, tables of Paimon, and inputs for writers."""
    questions: int
    inputs: int
    """Files without filters, for writers."""
    bytes: int
    sha256: str
    """Checksum of the manifest, which has those of all files."""

    def _summary(self) -> str:
        return (
            f"{self.folder}: {format_count(self.files, 'file')}, "
            f"{format_count(self.questions, 'question')}"
        )


class ConformanceResult(Frozen):
    """The verdicts on the answers about one file or, of a writer, on one file that it wrote."""

    file: str
    type: str
    """Type of the column; of several columns, that of the first. Then a count for each of
    `VERDICTS`."""
    correct: int
    """The answer is the one that the format requires, or was not made from the filter but agrees
    with what is stored."""
    unused: int
    """The value may be stored by the answer, although the filter excludes it; of a writer, a file
    without a filter."""
    cannot_say: int
    """The reader does not use a filter that it could use; the writer writes no filter for the
    type."""
    noted: int
    """The format leaves the answer open, but queries lose rows by it; of a writer, some reader
    rejects or misreads the filter."""
    wrong: int
    """A stored value is absent by the answer; of a writer, a value is lost or is excluded by its
    filter."""
    failed: int
    """The command crashed, exceeded the time limit, or ended without an answer."""


class ConformanceProblem(Frozen):
    """An answer that is noted, wrong or failed."""

    file: str
    column: str
    value: str | None
    """None for a file that a writer wrote."""
    verdict: str
    expected: str
    message: str


class ConformanceReport(Tabular):
    """The verdicts on a reader or a writer."""

    _row = ConformanceResult

    kind: str
    """`reader`, `writer` or `paimon reader`."""
    command: str
    corpus_version: int
    passed: bool
    """Whether no answer is wrong or failed and, if `exact`, none is unused, noted or `cannot
    say`."""
    exact: bool
    calls: int
    """Processes that were started."""
    results: tuple[ConformanceResult, ...]
    problems: tuple[ConformanceProblem, ...]

    def count(self, verdict: str) -> int:
        """Count the answers with this verdict."""
        return sum(getattr(result, verdict.replace(" ", "_")) for result in self.results)

    def _summary(self) -> str:
        counts = []
        for verdict in VERDICTS:
            count = self.count(verdict)
            if count:
                counts.append(f"{count:,} {verdict}")
        return f"{self.kind}: {', '.join(counts) or 'no answers'}"


class Judgement(NamedTuple):
    """The verdict on one answer of a reader, or on one file of a writer."""

    file: str
    type: str
    column: str
    value: str | None
    verdict: str
    expected: str
    message: str


def build_report(
    kind: str,
    command: str,
    version: int,
    judgements: Sequence[Judgement],
    *,
    exact: bool,
    calls: int,
) -> ConformanceReport:
    """Add up the verdicts; list those that are noted, wrong or failed."""
    refused = {WRONG, FAILED}
    if exact:
        refused |= {NOTED, UNUSED, CANNOT_SAY}
    counts: dict[str, Counter[str]] = {}
    types: dict[str, str] = {}
    problems = []
    passed = True
    for judgement in judgements:
        counts.setdefault(judgement.file, Counter())[judgement.verdict] += 1
        types.setdefault(judgement.file, judgement.type)
        is_refused = judgement.verdict in refused
        if is_refused:
            passed = False
        if is_refused or judgement.verdict == NOTED:
            problems.append(_describe_problem(judgement))
    results = []
    for file, count in counts.items():
        results.append(ConformanceResult(file, types[file], *map(count.__getitem__, VERDICTS)))
    return ConformanceReport(
        kind=kind,
        command=redact_text(command),
        corpus_version=version,
        passed=passed,
        exact=exact,
        calls=calls,
        results=tuple(results),
        problems=tuple(problems),
    )


def _describe_problem(judgement: Judgement) -> ConformanceProblem:
    return ConformanceProblem(
        judgement.file,
        judgement.column,
        judgement.value,
        judgement.verdict,
        judgement.expected,
        redact_text(judgement.message),
    )
