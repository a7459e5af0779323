"""One operation over many files at a time: answers come in the files' order, as they are ready, in constant memory.

Local files are worked on by a few processes. Those of other places are waited for by threads: a process that is forked must not use the
connections of its parent, and to wait takes no core.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from typing import TypeVar

from sbbf_tool.errors import SbbfError
from sbbf_tool.storage.places import is_url

Report = TypeVar("Report")

# To start processes takes as long as some hundred small files.
_FILES_WITHOUT_PROCESSES = 200
_FILES_A_TASK = 50
_TASKS_AHEAD = 4
_FILES_IN_FLIGHT = 16


def over_files(paths: Iterable[str], work: Callable[[str], Report], jobs: int | None = None) -> Iterator[tuple[str, Report | SbbfError]]:
    """Each path with what `work` answers, or with the error of this package that it raised; in order, `jobs` files at a time.

    `work` and its answers travel between processes: a module's function, or a `partial` of one. `jobs` is the cores where None.
    """
    for remote, group in groupby(paths, is_url):
        run = _by_threads if remote else partial(_locally, jobs=jobs)
        yield from run(work, group)


def _by_threads(work: Callable[[str], Report], paths: Iterator[str]) -> Iterator[tuple[str, Report | SbbfError]]:
    from concurrent.futures import Future, ThreadPoolExecutor

    with ThreadPoolExecutor(_FILES_IN_FLIGHT, thread_name_prefix="sbbf-file") as pool:
        try:
            ahead: deque[tuple[str, Future[Report | SbbfError]]] = deque()
            for path in paths:
                ahead.append((path, pool.submit(_answer, work, path)))
                if len(ahead) >= _FILES_IN_FLIGHT:
                    path, answer = ahead.popleft()
                    yield path, answer.result()
            for path, answer in ahead:
                yield path, answer.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _locally(work: Callable[[str], Report], paths: Iterator[str], jobs: int | None) -> Iterator[tuple[str, Report | SbbfError]]:
    remaining = paths
    for path in islice(remaining, _FILES_WITHOUT_PROCESSES):
        yield path, _answer(work, path)
    workers = jobs if jobs is not None else os.cpu_count() or 1
    batches = iter(lambda: list(islice(remaining, _FILES_A_TASK)), [])
    first = next(batches, None)
    if first is None:
        return
    if workers <= 1:
        yield from _answers(work, first)
        for batch in batches:
            yield from _answers(work, batch)
        return
    yield from _by_processes(work, first, batches, workers)


def _by_processes(
    work: Callable[[str], Report], first: list[str], batches: Iterator[list[str]], workers: int
) -> Iterator[tuple[str, Report | SbbfError]]:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing import get_context

    # A forked process has everything imported already; elsewhere than on Linux, forking is not safe.
    context = get_context("fork" if sys.platform == "linux" else None)
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            ahead: deque[Future[list[tuple[str, Report | SbbfError]]]] = deque([pool.submit(_answers, work, first)])
            while ahead:
                for batch in islice(batches, workers * _TASKS_AHEAD - len(ahead)):
                    ahead.append(pool.submit(_answers, work, batch))
                yield from ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _answers(work: Callable[[str], Report], batch: list[str]) -> list[tuple[str, Report | SbbfError]]:
    return [(path, _answer(work, path)) for path in batch]


def _answer(work: Callable[[str], Report], path: str) -> Report | SbbfError:
    try:
        return work(path)
    except SbbfError as error:
        return error
