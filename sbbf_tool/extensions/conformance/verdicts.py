"""The verdicts on single answers, added up by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sbbf_tool.display import redact_text
from sbbf_tool.extensions.conformance.reports import (
    CANNOT_SAY,
    CORRECT,
    FAILED,
    NOTED,
    UNUSED,
    WRONG,
    ConformanceProblem,
    ConformanceReport,
    ConformanceResult,
)


class Judgement(NamedTuple):
    """The verdict on one answer of a reader, or on one file of a writer."""

    file: str
    type: str
    column: str
    value: str | None
    verdict: str
    expected: str
    message: str


def build_report(kind: str, command: str, version: int, judgements: Sequence[Judgement], *, exact: bool, calls: int) -> ConformanceReport:
    """Add up the verdicts; list those that are noted, wrong or failed."""
    counts: dict[str, Counter[str]] = {}
    types: dict[str, str] = {}
    for judgement in judgements:
        counts.setdefault(judgement.file, Counter())[judgement.verdict] += 1
        types.setdefault(judgement.file, judgement.type)
    verdicts = {judgement.verdict for judgement in judgements}
    refused = {WRONG, FAILED, *((NOTED, UNUSED, CANNOT_SAY) if exact else ())}
    return ConformanceReport(
        kind=kind,
        command=redact_text(command),
        corpus_version=version,
        passed=not verdicts & refused,
        exact=exact,
        calls=calls,
        results=tuple(_add_up(file, types[file], count) for file, count in counts.items()),
        problems=tuple(
            ConformanceProblem(each.file, each.column, each.value, each.verdict, each.expected, redact_text(each.message))
            for each in judgements
            if each.verdict in (NOTED, WRONG, FAILED) or each.verdict in refused
        ),
    )


def _add_up(file: str, type_name: str, count: Counter[str]) -> ConformanceResult:
    return ConformanceResult(
        file=file,
        type=type_name,
        correct=count[CORRECT],
        unused=count[UNUSED],
        cannot_say=count[CANNOT_SAY],
        noted=count[NOTED],
        wrong=count[WRONG],
        failed=count[FAILED],
    )
