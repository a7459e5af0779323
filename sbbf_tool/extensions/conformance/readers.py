"""`run_reader`: put every question of the corpus to a reader, and judge its answers.

A reader is a command. Called with {file}, {column} and {value}, it ends with an exit code:

    0    the value may be stored
    1    the value is absent; the reader prints something, because many programs also end with 1 when they crash
    3    the reader cannot say

Called with {questions}, the path of a file with one JSON object per line, it prints one answer per line: maybe, absent or cannot say.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.conformance.corpus import ABSENT, CANNOT_SAY, COMPARISON, MAYBE, Corpus, Expectation
from sbbf_tool.extensions.conformance.programs import CommandLine, Completion
from sbbf_tool.extensions.conformance.reports import CANNOT_SAY as CANNOT_SAY_VERDICT
from sbbf_tool.extensions.conformance.reports import CORRECT, FAILED, NOTED, UNUSED, WRONG, ConformanceReport, Judgement, build_report
from sbbf_tool.frozen import Frozen, replace

_EXIT_CODES = {0: MAYBE, 1: ABSENT, 3: CANNOT_SAY}
_LINES = {MAYBE, ABSENT, CANNOT_SAY}
_SINGLE, _TOGETHER = ("file", "column", "value"), ("questions",)
_OPTIONAL = ("path", "type", "plain", "keys")


class ReaderAnswer(Frozen):
    """What a reader answered; None with the reason if it did not."""

    answer: str | None
    message: str = ""


def run_reader(
    corpus: Corpus, command: str, *, paimon: bool = False, timeout: float = 60, exact: bool = False, jobs: int | None = None
) -> ConformanceReport:
    """Put the questions of the corpus to a reader of Parquet or, if `paimon`, of Paimon's tables.

    Each call may take `timeout` seconds. If `exact`, the reader must use every filter. `jobs` calls run at the same time.
    Raises UsageError for a command without the placeholders.
    """
    names = (_TOGETHER,) if "{questions}" in command else (_SINGLE, _OPTIONAL)
    line = CommandLine.parse(command, timeout, *names)
    reader = _ReaderProcess(corpus, line)
    questions = corpus.questions("paimon" if paimon else "parquet")
    if not questions:
        reader_of, name = ("Paimon", "paimon/bigint") if paimon else ("Parquet", "types/int32.parquet")
        raise UsageError(f"no file of the corpus is for readers of {reader_of}", hint=f"names are such as {name}")
    if line.has("questions"):
        answers = reader.ask_together(questions)
    else:
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            answers = list(pool.map(reader.ask, questions))
        reader.calls = len(questions)
    judgements = [judge(reader.expect(question), answer) for question, answer in zip(questions, answers, strict=True)]
    kind = "paimon reader" if paimon else "reader"
    return build_report(kind, command, corpus.manifest.version, judgements, exact=exact, calls=reader.calls)


def judge(question: Expectation, answer: ReaderAnswer) -> Judgement:
    """Compare the answer of a reader with the one that the format requires."""
    expected = question.answer if question.answer != CANNOT_SAY else f"{CANNOT_SAY} or {MAYBE}"
    if answer.answer is None:
        verdict, message = FAILED, answer.message
    elif answer.answer == ABSENT and question.stored:
        verdict = NOTED if question.basis == COMPARISON else WRONG
        message = "absent, but a stored value equals it" if verdict == NOTED else "absent, but the value is stored"
    elif answer.answer == CANNOT_SAY and question.answer != CANNOT_SAY:
        verdict, message = CANNOT_SAY_VERDICT, CANNOT_SAY
    elif answer.answer == MAYBE and question.answer == ABSENT:
        verdict, message = UNUSED, "maybe, but the filters exclude the value"
    else:
        verdict, message = CORRECT, ""
    return Judgement(question.file, question.type, question.column, question.value, verdict, expected, message)


class _ReaderProcess:
    def __init__(self, corpus: Corpus, line: CommandLine) -> None:
        self._corpus = corpus
        self._line = line
        # A reader gets the keys for every file: they are the same, and a file without encryption needs none.
        keys = next((file.keys for file in corpus.manifest.files if file.keys is not None), None)
        self._keys = corpus.path_of(keys) if keys is not None else os.devnull
        self.calls = 0

    def expect(self, question: Expectation) -> Expectation:
        """Return the question with the answer that is due from this reader: without keys, it cannot say what encrypted filters hold."""
        gets_keys = self._line.has("keys") or self._line.has("questions")
        is_locked = self._corpus.files[question.file].keys is not None and not gets_keys
        return replace(question, answer=CANNOT_SAY) if is_locked else question

    def ask(self, question: Expectation) -> ReaderAnswer:
        completion = self._line.run(self._fields(question))
        answer = _EXIT_CODES.get(completion.exit_code if completion.exit_code is not None else -1)
        if answer is None:
            return ReaderAnswer(None, completion.failure)
        if answer == ABSENT and not completion.output.strip():
            return ReaderAnswer(None, f"{completion.failure}; an answer of absent is printed too")
        return ReaderAnswer(answer)

    def ask_together(self, questions: Sequence[Expectation]) -> list[ReaderAnswer]:
        """Put all questions to one process. If it fails, put each half to a process of its own, until one question fails alone."""
        if not questions:
            return []
        self.calls += 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "questions.jsonl"
            documents = ({**self._fields(question), "path": list(question.path)} for question in questions)
            path.write_text("".join(json.dumps(document) + "\n" for document in documents))
            completion = self._line.run({"questions": str(path)})
        answers = _parse_lines(completion, len(questions))
        if answers is not None:
            return answers
        if len(questions) == 1:
            return [ReaderAnswer(None, completion.failure if completion.exit_code != 0 else "no line with an answer")]
        half = len(questions) // 2
        return self.ask_together(questions[:half]) + self.ask_together(questions[half:])

    def _fields(self, question: Expectation) -> dict[str, str]:
        return {
            "file": self._corpus.path_of(question.file),
            "column": question.column,
            "path": json.dumps(question.path),
            "type": question.type,
            "value": question.value,
            "plain": question.plain,
            "keys": self._keys,
        }


def _parse_lines(completion: Completion, count: int) -> list[ReaderAnswer] | None:
    """Return the printed answers; None unless there is one for each question."""
    lines = completion.output.decode(errors="replace").splitlines()
    if completion.exit_code != 0 or len(lines) != count or not set(lines) <= _LINES:
        return None
    return [ReaderAnswer(line) for line in lines]
