"""The runner on this machine: it yields rows as they are ready, in the order of the files. Memory
does not grow with their number.

A verb may answer for many local files at once; threads scan them, and what the scan leaves is
processed as follows. A few small files are processed in this process. More files are packed into
tasks for processes, one per core. A file that is large enough to give every worker a task is
processed alone, and its column chunks keep all cores busy. Threads process objects in stores: a
forked process must not use the connections of its parent, and threads that wait use no core: up to
32 objects are in work, whatever the number of workers is, which bounds how many threads compute at
the same time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sbbf_tool.errors import INTERNAL_ERROR, SbbfError
from sbbf_tool.frozen import replace
from sbbf_tool.reports.rows import FAILED, ListedFile, Row
from sbbf_tool.running.discover import TASK_COST, pack, skip
from sbbf_tool.running.work import Scan, Work
from sbbf_tool.storage.interrupts import ensure_uninterrupted
from sbbf_tool.storage.leftovers import share_listings
from sbbf_tool.storage.places import is_url
from sbbf_tool.storage.threads import STOP_SECONDS, DaemonThreads, Stop, Turns, result_of, stoppable

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sbbf_tool.file.parallel import Progress
    from sbbf_tool.file.table_file import TableFiles
    from sbbf_tool.running.processes import Task, WorkerContext
    from sbbf_tool.running.progress import RunProgress
    from sbbf_tool.running.selection import Selection

Report = TypeVar("Report")
_Scanned: TypeAlias = "tuple[ListedFile, Row[Report] | None]"
"""A file with its row, or with None if it must be opened."""

_FILES_WITHOUT_PROCESSES = 50
"""Number of small files that take as long to process as starting processes does."""
FILES_WITHOUT_SCAN = 32
"""Number of files that take as long to open one by one as the modules of a scan take to load."""
FILES_PER_SCAN = 256
_FILES_OF_TRIAL = 1024
"""Files that take about as long to scan as threads do to start."""
LEAST_SHARE_OF_SCAN = 16
"""If a scan answers for fewer than one in so many files, the others are not scanned."""
_FILES_PER_SEGMENT = 10_000
"""Files whose rows are in memory while those that a scan left are processed."""
_FILES_WITH_DATA_PER_SEGMENT = 2048
"""The same, if rows may contain filters."""
_TASKS_AHEAD = 2
_FILES_PER_TASK = 100
_CHANGES_AHEAD = 4
"""Files of a task that are in work at the same time, if they are changed: one is built while the
others are synced to the disk."""
_DATA_MEMORY = 128 << 20
"""Number of bytes that work holds of an object at most, if it reads its data; a quarter if the size
of the object is unknown."""
_FOOTER_MEMORY = 4 << 20
"""Number of bytes that work holds of an object at most, if it reads only footer and filters."""


class LocalRunner:
    """Processes and threads on this machine: `jobs` workers in total, one per core if None."""

    on_cluster = False
    most_files: int | None = 10_000

    def __init__(self, jobs: int | None) -> None:
        self.jobs = jobs
        self.workers = jobs if jobs is not None else os.cpu_count() or 1
        self.progress: RunProgress | None = None
        """Set as files are listed and done, and by the work on a file in this process."""
        self.rest: list[Any] = []

    @property
    def _advance(self) -> Progress | None:
        return None if self.progress is None else self.progress.advance

    def __enter__(self) -> LocalRunner:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def list_files(self, selection: Selection, *, links: bool) -> Iterator[ListedFile]:
        """List the files of a run; see `Selection.files`."""
        return selection.files(links=links)

    def run(self, selection: Selection, work: Work[Report]) -> Generator[Row[Report], None, None]:
        """Work on each file; see `Runner.run`."""
        work = work.on(selection)
        skipped: list[ListedFile] = []
        files = _without_skipped(selection.files(links=work.changes), skipped)
        if self.progress is not None:
            files = self.progress.count(files)
        folder_listings: dict[str, list[str]] = {}
        for is_remote, group in groupby(files, lambda file: is_url(file.path)):
            by_place = self._by_threads if is_remote else self._scanned
            rows = by_place(group, work)
            while True:
                ensure_uninterrupted()
                # Processes are forked in this block, so they also list each folder once. The
                # caller's code runs outside of it.
                with share_listings(folder_listings):
                    row = next(rows, None)
                if row is None:
                    break
                if self.progress is not None:
                    self.progress.finish_file()
                yield row
        yield from map(skip, chain(skipped, selection.other_rows(work.needs)))

    def _scanned(self, files: Iterator[ListedFile], work: Work[Report]) -> Iterator[Row[Report]]:
        """Return the rows of these files, of which the first ones are listed now."""
        first = list(islice(files, FILES_WITHOUT_SCAN))
        files = chain(first, files)
        if len(first) == FILES_WITHOUT_SCAN:
            scan = work.scanner()
            if scan is not None:
                return self._by_scan(scan, files, work)
        return self._locally(files, work)

    def _by_scan(
        self, scan: Scan[Report], files: Iterator[ListedFile], work: Work[Report]
    ) -> Iterator[Row[Report]]:
        """Yield the rows of these files: those of a scan, and those of the files that it leaves."""

        def scan_batch(batch: Sequence[ListedFile]) -> list[_Scanned[Report]]:
            return list(zip(batch, scan([file.path for file in batch]), strict=True))

        segment = _FILES_OF_TRIAL
        while True:
            num_files = 0
            left: list[_Scanned[Report]] = []
            batches = _batches(islice(files, segment))
            scanned: Iterator[list[_Scanned[Report]]]
            if segment == _FILES_OF_TRIAL:
                scanned = map(scan_batch, batches)
            else:
                # Threads have ended when processes are forked for what is left.
                scanned = map_in_order(scan_batch, batches, len, self.workers)
            for rows in scanned:
                num_files += len(rows)
                for file, row in rows:
                    if row is None or left:
                        left.append((file, row))
                    else:
                        yield row
            missing = [file for file, row in left if row is None]
            others = self._locally(iter(missing), work)
            for _, row in left:
                yield row or next(others)
            if num_files < segment:
                return
            if num_files - len(missing) < num_files // LEAST_SHARE_OF_SCAN:
                yield from self._locally(files, work)
                return
            segment = _FILES_PER_SEGMENT
            if work.reads_data:
                segment = _FILES_WITH_DATA_PER_SEGMENT

    def _locally(self, files: Iterator[ListedFile], work: Work[Report]) -> Iterator[Row[Report]]:
        """Return the rows of these files, of which the first ones are listed now."""
        first = []
        size = 0
        for file in files:
            first.append(file)
            size += _cost(file, work)
            gives_each_a_task = size > TASK_COST and len(first) >= max(2, self.workers)
            if len(first) > _FILES_WITHOUT_PROCESSES or gives_each_a_task:
                break
        are_few_and_small = len(first) <= _FILES_WITHOUT_PROCESSES and size <= TASK_COST
        if len(first) == 1 or self.workers == 1 or are_few_and_small:
            paths = (file.path for file in chain(first, files))
            return map(partial(work, jobs=self.workers, progress=self._advance), paths)
        # If there are fewer files than workers, the other workers are threads that process the
        # chunks of each file.
        workers = min(len(first), self.workers)
        return self._by_processes(chain(first, files), work, workers)

    def _by_processes(
        self, files: Iterable[ListedFile], work: Work[Report], workers: int
    ) -> Iterator[Row[Report]]:
        """Yield the rows in the order of the files; submit only a few tasks in advance. If the
        iteration ends early, `rest` gets the others."""
        from sbbf_tool.running.processes import Processes, Task, WorkerContext

        ahead: deque[Task[str, Row[Report]]] = deque()
        ready: deque[Row[Report]] = deque()

        def rows_of_first() -> Iterator[Row[Report]]:
            ready.extend(processes.rows(ahead[0], attrgetter("path"), _build_lost_row))
            ahead.popleft()
            while ready:
                yield ready[0]
                ready.popleft()

        context = WorkerContext(work.of_table(None))
        with Processes(workers, context) as processes:
            try:
                for files_of_task in pack(
                    files, partial(_cost, work=work), TASK_COST, _FILES_PER_TASK
                ):
                    ensure_uninterrupted()
                    is_large = (
                        work.needs.threads
                        and _cost(files_of_task[0], work) > TASK_COST * self.workers
                    )
                    # A large file is processed alone: its chunks use all workers.
                    while ahead and (is_large or len(ahead) >= workers * _TASKS_AHEAD):
                        yield from rows_of_first()
                    paths = [file.path for file in files_of_task]
                    table_files = work.table_files and work.table_files.only(paths)
                    jobs = self.workers if is_large else self.workers // workers
                    rows = partial(_rows, context, table_files, jobs)
                    again = partial(_rows_again, rows, context, table_files, files_of_task)
                    task = Task(paths, rows, again)
                    ahead.append(processes.submit(task))
                    if is_large:
                        yield from rows_of_first()
                while ahead:
                    yield from rows_of_first()
            except BaseException:
                self.rest += [*ready, *processes.interrupt(ahead)]
                raise

    def _by_threads(self, files: Iterator[ListedFile], work: Work[Report]) -> Iterator[Row[Report]]:
        """Return the rows of these objects, of which the first ones are listed now."""
        head = list(islice(files, max(2, self.workers)))
        if len(head) == 1:
            return map(partial(work, jobs=self.workers, progress=self._advance), [head[0].path])
        # If there are fewer files than workers, the other workers are threads that process the
        # chunks of each file.
        jobs = max(1, self.workers // len(head))
        memory_of = partial(_memory_of, work=work)
        return map_in_order(
            lambda file: work(file.path, jobs),
            chain(head, files),
            memory_of,
            self.workers,
            self.rest,
        )


def _batches(files: Iterator[ListedFile]) -> Iterator[list[ListedFile]]:
    """Yield the files of each scan."""
    while batch := list(islice(files, FILES_PER_SCAN)):
        yield batch


def _without_skipped(
    files: Iterable[ListedFile], skipped: list[ListedFile]
) -> Iterator[ListedFile]:
    """Yield the files to work on; add the others to `skipped`."""
    for file in files:
        if file.skipped:
            skipped.append(file)
        else:
            yield file


def _cost(file: ListedFile, work: Work[object]) -> int:
    """Return the cost of a file in bytes, for packing files into tasks."""
    return (file.bytes or 0) if work.reads_data else 0


def _memory_of(file: ListedFile, work: Work[object]) -> int:
    """Return how many bytes of an object its work may keep in memory: of one that is read, what its
    source keeps."""
    if file.bytes is None:
        return _DATA_MEMORY // 4
    return min(file.bytes, _DATA_MEMORY if work.reads_data else _FOOTER_MEMORY)


def _rows(
    context: WorkerContext[Work[Report]],
    table_files: TableFiles | None,
    jobs: int,
    paths: Sequence[str],
) -> list[Row[Report]]:
    """Work on files in a worker; return the rows of those that are done, also if the worker is
    interrupted."""
    from sbbf_tool.running.processes import InterruptError

    work = context.value.of_table(table_files)
    carry = partial(work, jobs=jobs)
    edit = work.edit
    rows: list[Row[Report]] = []
    # An append, or a file alone, must stop at once if it is interrupted.
    overlaps = edit is not None and not edit.append and len(paths) > 1
    with suppress(InterruptError):
        if overlaps:
            # By this memory of each, only a few are changed at the same time.
            share = MOST_BYTES // _CHANGES_AHEAD
            rows.extend(map_in_order(carry, paths, lambda path: share, 1, rows))
        else:
            rows.extend(map(carry, paths))
    # After an interrupt, one row may be there twice.
    rows_by_path = {row.path: row for row in rows}
    return list(map(without_unexpected, rows_by_path.values()))


def _rows_again(
    rows: Callable[[Sequence[str]], list[Row[Report]]],
    context: WorkerContext[Work[Report]],
    table_files: TableFiles | None,
    files: Sequence[ListedFile],
    paths: Sequence[str],
) -> list[Row[Report]]:
    """Return the rows of files of which a worker that ended early may have changed some."""
    from sbbf_tool.running.lost_rows import restore_row

    work = context.value.of_table(table_files)
    listed = {file.path: file for file in files}
    return [restore_row(row, listed[row.path], work) for row in rows(paths)]


def without_unexpected(row: Row[Report]) -> Row[Report]:
    """Drop an exception that is none of this package: it may contain values that cannot be pickled;
    the row has the reason."""
    if row.error is None or isinstance(row.error, SbbfError):
        return row
    return replace(row, error=None)


def _build_lost_row(path: str) -> Row[Any]:
    reason = "the process that worked on the file was killed, perhaps for lack of memory"
    return Row(path, FAILED, reason, INTERNAL_ERROR)


Unit = TypeVar("Unit")
Answer = TypeVar("Answer")

MOST_OPEN = 32
"""Maximum number of units in work at the same time."""
MOST_BYTES = 512 << 20
"""Maximum number of bytes that the units in work hold together, except that one unit may hold
more."""
_MOST_AHEAD = 4 * MOST_OPEN
"""Maximum number of units after the first unfinished one; the answers of those that are done
wait."""


def map_in_order(
    function: Callable[[Unit], Answer],
    units: Iterable[Unit],
    memory_of: Callable[[Unit], int],
    workers: int,
    rest: list[Answer] | None = None,
) -> Generator[Answer, None, None]:
    """Call a function for each unit in threads, of which at most `workers` compute at the same
    time; yield the answers in order.

    If the caller ends the iteration early or is interrupted, no new request is sent, and threads
    whose request does not return soon are abandoned; `rest` receives the answer that was yielded
    last, and those that were not yielded.
    """
    turns = Turns(workers)

    def call(unit: Unit) -> Answer:
        with turns.turn():
            return function(unit)

    ahead: deque[tuple[Future[Answer], int]] = deque()

    def first_answer() -> Iterator[Answer]:
        yield result_of(ahead[0][0], ensure_uninterrupted)
        ahead.popleft()

    pool = DaemonThreads(MOST_OPEN, "sbbf-file")
    stop: Stop | None = None
    try:
        with stoppable() as stop:
            for unit in units:
                size = memory_of(unit)
                while ahead:
                    open_bytes = sum(held for future, held in ahead if not future.done())
                    has_room = size + open_bytes <= MOST_BYTES
                    if has_room and len(ahead) < _MOST_AHEAD:
                        break
                    yield from first_answer()
                ahead.append((pool.submit(call, unit), size))
                while ahead and ahead[0][0].done():
                    yield from first_answer()
            while ahead:
                yield from first_answer()
    finally:
        for future, _ in ahead:
            future.cancel()
        is_ended = stop is not None and stop.is_set
        pool.close(STOP_SECONDS if is_ended else None)
        if stop is not None and is_ended:
            stop.clean_up()
        if rest is not None:
            rest += [future.result() for future, _ in ahead if _has_answer(future)]


def _has_answer(future: Future[Answer]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
