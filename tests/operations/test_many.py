"""Many files by many processes: every answer, in order, and an error is an answer."""

from __future__ import annotations

import os
import time

import pytest

from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.runner.many import over_files

COUNT = 731


def length(path: str) -> int:
    number = int(path)
    if number % 100 == 42:
        raise UnreadableError("no such number", file=path, place="here", hint="count on")
    time.sleep(0.002 if number % 50 == 0 else 0)  # so that a later batch is ready first
    return number * number


@pytest.mark.parametrize("jobs", [1, 3, None])
def test_answers_come_in_order(jobs):
    found = list(over_files((str(number) for number in range(COUNT)), length, jobs))
    assert [path for path, _ in found] == [str(number) for number in range(COUNT)]
    for number, (path, answer) in enumerate(found):
        if number % 100 == 42:
            assert isinstance(answer, SbbfError)
            assert str(answer) == f"{path}: here: no such number; count on"
        else:
            assert answer == number * number


def test_files_are_listed_no_faster_than_they_are_answered():
    listed = 0

    def paths():
        nonlocal listed
        for number in range(100_000):
            listed += 1
            yield str(number)

    answers = over_files(paths(), length, 2)
    for _ in range(COUNT):
        next(answers)
    assert listed < 5000
    answers.close()


def process(path: str) -> int:
    return os.getpid()


def test_several_processes_do_it():
    found = {pid for _, pid in over_files((str(number) for number in range(2000)), process, 3)}
    assert len(found) > 2


def test_few_files_are_done_here():
    assert {pid for _, pid in over_files(("1", "2"), process)} == {os.getpid()}
