"""Run the questions in one release of an engine, and judge its answers: what it does with filters
on each family of columns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine_matrix.questions import ABSENT, STORED, WITH, WITHOUT, Question
from sbbf_tool.query_engines.terms import CANNOT_COMPARE, FAILS, LOSES_ROWS, UNUSED, USED

PROGRAM = Path(__file__).with_name("program.py")
SECONDS = 60.0
"""The time of an engine for its start, and for each question."""
Answer = dict[str, Any]
Outcomes = dict[str, dict[str, str]]
"""For each predicate the outcome of each family."""
_WORST_FIRST = (LOSES_ROWS, FAILS, USED, UNUSED, CANNOT_COMPARE)


class EngineError(Exception):
    """The engine does not start, or answers nothing."""


def put_questions(
    engine: str, python: Path, questions: Sequence[Question], folder: Path
) -> tuple[str, list[Answer]]:
    """Put the questions to an engine in processes of its own; return its version and an answer per
    question. Raises EngineError.

    After a crash or a question without an answer, another process goes on. A question counts as
    failed if it is the first of a process.
    """
    answers: list[Answer] = []
    version = None
    while version is None or len(answers) < len(questions):
        lines, reason = _run_process(engine, python, questions[len(answers) :], folder)
        if not lines:
            raise EngineError(f"{engine} does not start: {reason}")
        version = lines[0]["version"]
        answers += lines[1:]
        if len(lines) == 1 and len(answers) < len(questions):
            answers.append({"error": reason})
    return version, answers


def _run_process(
    engine: str, python: Path, questions: Sequence[Question], folder: Path
) -> tuple[list[Answer], str]:
    """Return the lines that the program wrote, and why there is none for the last questions."""
    queries, output, log = (
        folder / name for name in ("questions.jsonl", "answers.jsonl", "log.txt")
    )
    queries.write_text("".join(f"{json.dumps(asdict(question))}\n" for question in questions))
    output.write_text("")
    with log.open("wb") as stream:
        command = [str(python), str(PROGRAM), engine, str(queries), str(output)]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=stream,
            stderr=stream,
            env=environment,
            start_new_session=True,
        )
        try:
            reason = _wait(process, output)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = [
        json.loads(line)
        for line in output.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    last = (log.read_text(errors="replace").strip().splitlines() or [""])[-1]
    return lines, reason or f"exit code {process.returncode}: {last[:200]}"


def _wait(process: subprocess.Popen[bytes], output: Path) -> str | None:
    """Wait for the end of the process, or until it writes nothing for too long; return the reason
    in that case."""
    size, deadline = 0, time.monotonic() + SECONDS
    while process.poll() is None:
        time.sleep(0.05)
        if (grown := output.stat().st_size) > size:
            size, deadline = grown, time.monotonic() + SECONDS
        elif time.monotonic() > deadline:
            return f"no answer within {SECONDS:g} seconds"
    return None


def judge(questions: Sequence[Question], answers: Sequence[Answer]) -> Outcomes:
    """Return the outcome for each predicate and family; of two types of a family the worse outcome.

    Raises EngineError if the engine answers nothing.
    """
    by_kind: dict[
        tuple[str, str, str], dict[tuple[str, str, tuple[str, ...]], tuple[Question, Answer]]
    ] = defaultdict(dict)
    for question, answer in zip(questions, answers, strict=True):
        place = question.predicate, question.family, question.kind
        by_kind[place][question.role, question.filters, tuple(question.texts)] = question, answer
    outcomes: Outcomes = defaultdict(dict)
    for (predicate, family, _), pairs in by_kind.items():
        outcome = _judge_kind(pairs)
        earlier_outcome = outcomes[predicate].get(family, outcome)
        outcomes[predicate][family] = min(outcome, earlier_outcome, key=_WORST_FIRST.index)
    if {outcome for by_family in outcomes.values() for outcome in by_family.values()} == {
        CANNOT_COMPARE
    }:
        raise EngineError(f"no comparison works: {answers[0]}")
    return dict(outcomes)


def _judge_kind(pairs: Mapping[tuple[str, str, tuple[str, ...]], tuple[Question, Answer]]) -> str:
    """Judge one predicate on one type.

    The engine uses filters if it answers from zeroed pages with filters, and does not without. It
    loses rows or fails if its answer about sound pages differs from that without filters.
    """
    outcome = CANNOT_COMPARE
    for (role, filters, texts), (question, without) in pairs.items():
        if filters != WITHOUT:
            continue
        _, with_filters = pairs[role, WITH, texts]
        if role == STORED:
            if without.get("rows") != question.rows:
                return CANNOT_COMPARE
            if with_filters != without:
                return FAILS if "error" in with_filters else LOSES_ROWS
        elif role == ABSENT and without.get("rows") != []:
            outcome = USED if with_filters.get("rows") == [] else UNUSED
    return outcome
