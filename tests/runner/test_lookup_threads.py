"""Threads that look up different values in one process do not get each other's answers."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from sbbf_tool.operations import probe as operation
from support.tables import each

STORED = ("1", "2", "3")
ABSENT = ("-1", "-2", "-3")


@pytest.fixture
def path(tmp_path: Path) -> str:
    target = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": np.arange(1000)}), target)
    add_filters(target, ["n"], in_place=True)
    return str(target)


class _Turns:
    """Two threads that change places after every line of the operation."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._turn = 0
        self._done: set[int] = set()

    def trace(self, number: int):
        def local(frame, event, argument):
            if event == "line":
                self.switch(number)
            return local

        return lambda frame, event, argument: local if frame.f_code.co_filename == operation.__file__ else None

    def switch(self, number: int) -> None:
        with self._condition:
            self._turn = 1 - number
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._turn == number or 1 - number in self._done, timeout=30)

    def end(self, number: int) -> None:
        with self._condition:
            self._done.add(number)
            self._condition.notify_all()


def both(path: str, *, lead: int) -> list[tuple[str, ...]]:
    """The values that each of two threads finds; the first begins `lead` lines ahead of the other."""
    turns, answers = _Turns(), [(), ()]
    started = threading.Event()

    def run(number: int, values: tuple[str, ...]) -> None:
        lines = 0
        switching = turns.trace(number)

        def trace(frame, event, argument):
            nonlocal lines
            local = switching(frame, event, argument)
            if local is None or number:
                return local

            def ahead(frame, event, argument):
                nonlocal lines
                lines += event == "line"
                if lines > lead:
                    started.set()
                    local(frame, event, argument)
                return ahead

            return ahead

        if number:
            started.wait(30)
        sys.settrace(trace)
        try:
            answers[number] = tuple(hit.value for hit in operation.probe(path, "n", values).hits)
        finally:
            sys.settrace(None)
            started.set()
            turns.end(number)

    threads = [threading.Thread(target=run, args=(number, values)) for number, values in enumerate((STORED, ABSENT))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@each("lead", range(25))
def test_each_thread_gets_its_own_answer(path, lead):
    assert both(path, lead=lead) == [STORED, ()]
