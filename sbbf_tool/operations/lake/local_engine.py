"""The lake by a few processes of this machine: rows come in the files' order as they are ready, in memory that does not grow with them.

Small files are packed into tasks; a file too large for one is built in pieces by all processes, and published by one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from sbbf_tool.operations.lake.engine import Lake
from sbbf_tool.operations.lake.failures import INTERNAL_ERROR
from sbbf_tool.operations.lake.fill import build_piece, fill_file, publish_file
from sbbf_tool.operations.lake.pack import TASK_COST, pack
from sbbf_tool.operations.lake.plan import PIECE_BYTES, Wish, plan_file
from sbbf_tool.operations.lake.processes import Processes, Task
from sbbf_tool.reports.lake import FAILED, OK, BuiltChunk, FileOutcome, FileRow, LakeFile, PlannedFile, PlannedPiece

Row = TypeVar("Row", bound=FileRow)


class LocalEngine:
    """See `engine.Engine`. `jobs` processes, as many as there are cores where None."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def read(self, lake: Lake, work: Callable[[str], Row], row: type[Row], *, reads_data: bool = False) -> Iterator[Row]:
        return read_files(lake.files(), work, row, jobs=self.jobs, reads_data=reads_data)

    def plan(self, lake: Lake, wish: Wish) -> Iterator[PlannedFile]:
        return read_files(lake.files(), partial(plan_file, wish=wish), PlannedFile, jobs=self.jobs)

    def add_filters(self, lake: Lake, wish: Wish) -> Iterator[FileOutcome]:
        return add_filters(lake.files(), wish, jobs=self.jobs)


_FILES_WITHOUT_PROCESSES = 50
"""To start processes takes as long as so many small files."""
_TASKS_AHEAD = 2
_READING_TASK = 100
"""Files in a task that reads footers and filters."""


def read_files(
    files: Iterable[LakeFile], work: Callable[[str], Row], row: type[Row], *, jobs: int | None = None, reads_data: bool = False
) -> Iterator[Row]:
    """The row that `work` makes of each file, in order, `jobs` processes at a time (the cores, where None).

    `reads_data` says whether it takes a file's bytes to read or only footer and filters, by which files are packed into tasks.
    """
    remaining = iter(files)
    workers = _workers(jobs)
    first = list(islice(remaining, _FILES_WITHOUT_PROCESSES + 1))
    if workers == 1 or (len(first) <= _FILES_WITHOUT_PROCESSES and _bytes(first) * reads_data < TASK_COST):
        for found in (*first, *remaining):
            yield work(found.path)
        return
    tasks = (
        Task([found.path for found in packed], partial(_rows, work))
        for packed in pack(_chained(first, remaining), _size_if(reads_data), most=_READING_TASK)
    )
    with Processes(workers) as processes:
        ahead: deque[Task[str, Row]] = deque()
        while True:
            ahead += map(processes.submit, islice(tasks, workers * _TASKS_AHEAD - len(ahead)))
            if not ahead:
                return
            yield from processes.rows(ahead.popleft(), partial(_lost, row))


def add_filters(
    files: Iterable[LakeFile], wish: Wish, *, jobs: int | None = None, task_cost: int = TASK_COST, piece_bytes: int = PIECE_BYTES
) -> Iterator[FileOutcome]:
    """Give each file the filters that it lacks; the outcome of each, in order, `jobs` processes at a time.

    A file of more than `task_cost` bytes is built in pieces of about `piece_bytes` of data.
    """
    workers = _workers(jobs)
    if workers == 1:
        for found in files:
            yield fill_file(found.path, wish)
        return
    with Processes(workers) as processes:
        work = _work(files, wish, task_cost, piece_bytes)
        ahead: deque[_Packed | _Split] = deque()
        while True:
            while sum(one.tasks for one in ahead) < workers * _TASKS_AHEAD and (fresh := next(work, None)) is not None:
                fresh.submit(processes)
                ahead.append(fresh)
            if not ahead:
                return
            head = ahead.popleft()
            if isinstance(head, _Split):
                # While one process publishes, the others go on with what comes next.
                ahead.appendleft(head.built(processes))
            else:
                yield from processes.rows(head.task, partial(_lost, FileOutcome))


@dataclass
class _Packed:
    """Files whose outcomes come of one task."""

    task: Task[str, FileOutcome]
    tasks = 1

    def submit(self, processes: Processes) -> None:
        processes.submit(self.task)


@dataclass
class _Split:
    """A file whose pieces are built apart."""

    planned: PlannedFile
    wish: Wish
    pieces: list[Task[PlannedPiece, BuiltChunk]]

    @property
    def tasks(self) -> int:
        return len(self.pieces)

    def submit(self, processes: Processes) -> None:
        for piece in self.pieces:
            processes.submit(piece)

    def built(self, processes: Processes) -> _Packed:
        """Waits for the pieces; answers with the publishing of them, which has begun."""
        path = self.planned.path
        chunks = [chunk for piece in self.pieces for chunk in processes.rows(piece, lambda _: _lost(BuiltChunk, path))]
        return _Packed(processes.submit(Task([path], partial(_publish, chunks, self.wish))))


def _work(files: Iterable[LakeFile], wish: Wish, task_cost: int, piece_bytes: int) -> Iterator[_Packed | _Split]:
    """Units in the files' order: runs of small files, and each large one, planned, by itself."""
    fill = partial(_rows, partial(fill_file, wish=wish))
    for packed in pack(files, lambda found: found.bytes or 0, task_cost):
        (first, *others) = packed
        planned = plan_file(first.path, wish, piece_bytes) if not others and (first.bytes or 0) > task_cost else None
        if planned is not None and planned.status == OK and len(planned.pieces) > 1:
            build = partial(_build, planned.path, planned.fingerprint, wish)
            yield _Split(planned, wish, [Task([piece], build) for piece in planned.pieces])
        else:
            yield _Packed(Task([found.path for found in packed], fill))


def _rows(work: Callable[[str], Row], paths: Sequence[str]) -> list[Row]:
    return [work(path) for path in paths]


def _build(path: str, print_of_plan: str | None, wish: Wish, pieces: Sequence[PlannedPiece]) -> list[BuiltChunk]:
    return [chunk for piece in pieces for chunk in build_piece(path, print_of_plan, piece.row_groups, wish)]


def _publish(chunks: list[BuiltChunk], wish: Wish, paths: Sequence[str]) -> list[FileOutcome]:
    return [publish_file(path, chunks, wish) for path in paths]


def _lost(row: type[Row], path: str) -> Row:
    reason = "the process that worked on it was killed, perhaps for want of memory"
    return row(path=path, status=FAILED, reason=reason, exit_code=INTERNAL_ERROR, seconds=0.0)


def _workers(jobs: int | None) -> int:
    return jobs if jobs is not None else os.cpu_count() or 1


def _bytes(files: Iterable[LakeFile]) -> int:
    return sum(found.bytes or 0 for found in files)


def _size_if(reads_data: bool) -> Callable[[LakeFile], int]:
    return lambda found: (found.bytes or 0) if reads_data else 0


def _chained(first: list[LakeFile], remaining: Iterator[LakeFile]) -> Iterator[LakeFile]:
    yield from first
    yield from remaining
