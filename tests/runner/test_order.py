"""Many files by many processes: a row for each, in order, and an error is a row."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.reports.rows import FileRow, ListedFile
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.selection import Selection
from sbbf_tool.runner.works import Work

COUNT = 731


@dataclass(frozen=True)
class NumberRow(FileRow):
    report: int | None = None


class Numbers(Selection):
    """Names that are numbers, which need no files; `listed_count` counts those that were consumed."""

    def __init__(self, count: int) -> None:
        super().__init__(())
        self.count, self.listed_count = count, 0

    def files(self, *, links: bool = False) -> Iterator[ListedFile]:
        for number in range(self.count):
            self.listed_count += 1
            yield ListedFile(str(number), 1000)


def square(path: str) -> dict[str, object]:
    number = int(path)
    if number % 100 == 42:
        raise UnreadableError("no such number", file=path, place="here", hint="count on")
    time.sleep(0.002 if number % 50 == 0 else 0)  # so that a later task is ready first
    return {"report": number * number}


@pytest.mark.parametrize("jobs", [1, 3, None])
def test_rows_come_in_order(jobs):
    rows = list(LocalRunner(jobs).run(Numbers(COUNT), Work(NumberRow, square)))
    assert [row.path for row in rows] == [str(number) for number in range(COUNT)]
    for number, row in enumerate(rows):
        if number % 100 == 42:
            assert (row.status, row.exit_code, row.report) == ("failed", UnreadableError.exit_code, None)
            assert row.reason == "here: no such number; count on"
        else:
            assert (row.status, row.exit_code, row.report) == ("ok", 0, number * number)


def test_files_are_listed_no_faster_than_they_are_worked_on():
    numbers = Numbers(100_000)
    rows = LocalRunner(2).run(numbers, Work(NumberRow, square))
    for _ in range(COUNT):
        next(rows)
    assert numbers.listed_count < 5000
    rows.close()


def process(path: str) -> dict[str, object]:
    return {"report": os.getpid()}


def test_many_files_are_processed_by_several_processes():
    assert len({row.report for row in LocalRunner(3).run(Numbers(2000), Work(NumberRow, process))}) > 2


def test_few_files_are_done_here():
    assert {row.report for row in LocalRunner().run(Numbers(2), Work(NumberRow, process))} == {os.getpid()}
