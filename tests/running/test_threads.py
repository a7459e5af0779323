"""Work in threads that wait: the order of answers, the bounds of work that is open, and the end of
a run that stops early.

Threads that look up different values in one process do not get each other's answers.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, probe
from sbbf_tool.file.partitions import Predicate
from sbbf_tool.running.local import MOST_BYTES, MOST_OPEN, map_in_order
from sbbf_tool.storage.places import TableFinder
from sbbf_tool.storage.threads import waiting
from support.tables import each


class Gauge:
    """The highest number of threads that were in a block at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *exc_info: object) -> None:
        with self._lock:
            self.now -= 1


def test_answers_are_in_order_and_threads_wait_together_but_compute_in_turn():
    together, computing = threading.Barrier(MOST_OPEN), Gauge()

    def work(number: int) -> int:
        with waiting():
            together.wait(60)
        with computing:
            time.sleep(0)
        return number

    numbers = range(2 * MOST_OPEN)
    assert list(map_in_order(work, numbers, lambda number: 0, 2)) == list(numbers)
    assert computing.most <= 2


def test_units_that_hold_much_memory_are_not_in_work_together():
    working = Gauge()

    def work(number: int) -> None:
        with working, waiting():
            time.sleep(0.01)

    list(map_in_order(work, range(20), lambda number: MOST_BYTES // 4, 8))
    assert working.most <= 4
    working.most = 0
    list(map_in_order(work, range(3), lambda number: 2 * MOST_BYTES, 8))
    assert working.most == 1


def test_units_are_num_units_as_they_are_needed():
    num_units = 0

    def units():
        nonlocal num_units
        for number in range(100_000):
            num_units += 1
            yield number

    with closing(map_in_order(str, units(), lambda number: 0, 2)) as answers:
        assert next(answers) == "0"
    assert num_units <= 5 * MOST_OPEN


def test_an_error_ends_the_run_without_waiting_for_the_others():
    def work(number: int) -> None:
        if number == 0:
            raise KeyError(number)
        with waiting():
            hang.wait(60)

    hang = threading.Event()
    with pytest.raises(KeyError):
        list(map_in_order(work, range(MOST_OPEN), lambda number: 0, 2))
    assert not hang.is_set()
    hang.set()


CACHES = {
    "partitions": (
        "sbbf_tool.file.partitions._FOLDERS_REMEMBERED",
        lambda: Predicate("k >= 0").accepts,
        True,
    ),
    "tables": (
        "sbbf_tool.storage.places._MOST_FOLDERS",
        lambda: TableFinder().managing_table,
        None,
    ),
}


@pytest.mark.slow
@each("limit, make, expected", CACHES)
def test_threads_share_what_is_remembered_of_folders(limit, make, expected, monkeypatch, tmp_path):
    """Each thread empties what the others look at."""
    monkeypatch.setattr(limit, 1)
    answer_of = make()
    paths = [str(tmp_path / f"k={number}" / "a.parquet") for number in range(3)] * 300
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: {answer_of(path) for path in paths}.pop(), range(8))) == {
                expected
            }
    finally:
        sys.setswitchinterval(interval)


STORED, ABSENT = ("1", "2", "3"), ("-1", "-2", "-3")


def test_each_thread_gets_its_own_answer(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": np.arange(1000)}), path)
    add_filters(path, ["n"], in_place=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            reports = pool.map(
                lambda values: probe(path, "n", values, filters_only=True), [STORED, ABSENT] * 40
            )
            hits = [
                tuple(value.value for value in report.values if not value.is_absent)
                for report in reports
            ]
    finally:
        sys.setswitchinterval(interval)
    assert hits == [STORED, ()] * 40
