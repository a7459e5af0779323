"""A reader as a process: its command is called for each question, or once for all, and its answers
are read from exit codes or lines. See `run` for the form of the command."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sbbf_tool.extensions.conformance.corpus import ABSENT, CANNOT_SAY, MAYBE, Corpus, Expectation
from sbbf_tool.extensions.conformance.programs import CommandLine, Completion
from sbbf_tool.frozen import Frozen, replace

_EXIT_CODES = {0: MAYBE, 1: ABSENT, 3: CANNOT_SAY}
_LINES = {MAYBE, ABSENT, CANNOT_SAY}


class ReaderAnswer(Frozen):
    """What a reader answered; None with the reason if it did not."""

    answer: str | None
    message: str = ""


class ReaderProcess:
    """The command of a reader, which is called for each question or for many."""

    def __init__(self, corpus: Corpus, line: CommandLine) -> None:
        self._corpus = corpus
        self._line = line
        # A reader gets the keys for every file: they are the same, and a file without encryption
        # needs none.
        keys = next((file.keys for file in corpus.manifest.files if file.keys is not None), None)
        self._keys = corpus.path_of(keys) if keys is not None else os.devnull
        self.calls = 0

    def expect(self, question: Expectation) -> Expectation:
        """Return the question with the answer that is due from this reader: without keys, it cannot
        say what encrypted filters hold."""
        gets_keys = self._line.has("keys") or self._line.has("questions")
        if gets_keys or self._corpus.files[question.file].keys is None:
            return question
        return replace(question, answer=CANNOT_SAY)

    def ask(self, question: Expectation) -> ReaderAnswer:
        """Put a question to a process of its own; the caller counts the calls."""
        completion = self._line.run(self._fields(question))
        answer = None
        if completion.exit_code is not None:
            answer = _EXIT_CODES.get(completion.exit_code)
        if answer is None:
            return ReaderAnswer(None, completion.failure)
        if answer == ABSENT and not completion.output.strip():
            return ReaderAnswer(None, f"{completion.failure}; an answer of absent is printed too")
        return ReaderAnswer(answer)

    def ask_together(self, questions: Sequence[Expectation]) -> list[ReaderAnswer]:
        """Put all questions to one process. If it fails, put each half to a process of its own,
        until one question fails alone."""
        if not questions:
            return []
        self.calls += 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "questions.jsonl"
            with open(path, "w") as file:
                for question in questions:
                    document = {**self._fields(question), "path": list(question.path)}
                    file.write(json.dumps(document) + "\n")
            completion = self._line.run({"questions": str(path)})
        answers = _parse_lines(completion, len(questions))
        if answers is not None:
            return answers
        if len(questions) == 1:
            reason = "no line with an answer"
            if completion.exit_code != 0:
                reason = completion.failure
            return [ReaderAnswer(None, reason)]
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
