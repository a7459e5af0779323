"""The work of a run as many small jobs: the rows of each job reach the driver when it ends, while
others run, so an interrupted run knows what is done.

A job has no shuffle. If an executor is lost, Spark runs its unfinished tasks again, and no others.
Enough jobs are at work to keep all cores busy; the rows come in the order of the files.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from sbbf_tool.errors import SbbfError
from sbbf_tool.reports.plain import from_batch
from sbbf_tool.reports.rows import OK, ListedFile, Row
from sbbf_tool.running.discover import OPENING_COST, pack
from sbbf_tool.running.local import without_unexpected
from sbbf_tool.running.work import Work
from sbbf_tool.spark import rows as packed
from sbbf_tool.spark.bundles import BUNDLE_COST, TASKS_PER_CORE, Listing, cores_of
from sbbf_tool.spark.causes import cancel_jobs, convert_errors, start
from sbbf_tool.spark.listing import GivenNames
from sbbf_tool.spark.pipeline import carrier
from sbbf_tool.storage.interrupts import ensure_uninterrupted

if TYPE_CHECKING:
    from sbbf_tool.running.progress import RunProgress

Report = TypeVar("Report")

_JOBS_AT_WORK = 8
"""Jobs that together have a task for each core; with few cores, each job has one task."""
_JOBS_WAITING = 2
"""Jobs whose tasks begin as soon as a core is free."""
_FILES_AHEAD = 100_000
"""Files that are at work, or whose rows wait until an earlier job has ended, if each job has one
task."""
_CHANGES_PER_TASK = 250
"""Files that a task changes at most: if a task is cancelled, it is unknown which of its files are
changed."""
_SECONDS_PER_TASK = 1
"""Tasks that take less get more files: each costs Spark a tenth of a second."""
_MOST_PER_TASK = 10_000
"""Files of a task that only reads."""
_ROWS_PER_PACK = 250
_POLL_SECONDS = 0.2
_SECONDS_TO_CANCEL = 5


class Jobs:
    """The jobs of a run that have begun and whose rows the caller does not have yet."""

    def __init__(self, listing: Listing, work: Work[Any], names: GivenNames) -> None:
        self._listing = listing
        self._work = work
        self._names = names
        self._spark = listing.spark
        cores = cores_of(self._spark)
        self._tasks_per_job = max(1, cores // _JOBS_AT_WORK)
        self._most_at_work = -(-cores // self._tasks_per_job) + _JOBS_WAITING
        self._task_cost = self._cost_per_task(cores)
        carry = partial(_carry, carrier(listing, work))
        self._function = packed.shipped(carry, self._spark)
        self._least_per_task = packed.FILES_PER_TASK
        self._most_per_task = _MOST_PER_TASK
        if work.changes:
            self._least_per_task = min(packed.FILES_PER_TASK, _CHANGES_PER_TASK)
            self._most_per_task = packed.FILES_PER_TASK
        self._files_per_task = self._least_per_task
        self._tag = f"sbbf-{uuid4().hex}"
        self._ahead: deque[Future[list[Row[Any]]]] = deque()
        self._files_ahead = 0
        self._ready: deque[Row[Any]] = deque()
        self._received = 0

    def rows(self, progress: RunProgress | None, rest: list[Any]) -> Iterator[Row[Any]]:
        """Yield the row of each file that is not skipped. If the iteration ends early, the jobs are
        cancelled, and `rest` gets the rows of those that are done. Raises SbbfError if not all rows
        arrive."""
        tasks = self._tasks(progress)
        try:
            while job := list(islice(tasks, self._tasks_per_job)):
                self._files_ahead += sum(task.num_rows for task in job)
                self._ahead.append(start(self._spark, partial(self._run, job), self._tag))
                yield from self._done_rows(self._most_at_work)
            yield from self._done_rows(0)
            self._ensure_all_arrived()
        except BaseException:
            cancel_jobs(self._spark, self._tag)
            wait(self._ahead, _SECONDS_TO_CANCEL)
            rest += self._ready
            for future in self._ahead:
                if future.done() and future.exception() is None:
                    rest += future.result()
            raise

    def _ensure_all_arrived(self) -> None:
        count = self._listing.size.files
        if self._received != count:
            raise SbbfError(
                f"Spark returned only {self._received:,} of {count:,} results",
                hint="files that are published stay changed; run the command again",
            )

    def _done_rows(self, most_at_work: int) -> Iterator[Row[Any]]:
        """Yield the rows of the first jobs, until fewer jobs are at work and not too many wait."""
        while self._ahead:
            if self._ahead[0].done():
                with convert_errors():
                    rows = self._ahead[0].result()
                self._ready.extend(rows)
                self._received += len(rows)
                self._files_ahead -= len(rows)
                self._ahead.popleft()
                self._fit_tasks(rows)
                while self._ready:
                    yield self._ready[0]
                    self._ready.popleft()
                continue
            at_work = [future for future in self._ahead if not future.done()]
            has_room = self._files_ahead < _FILES_AHEAD * self._tasks_per_job
            if len(at_work) < most_at_work and has_room:
                return
            wait(at_work, _POLL_SECONDS, FIRST_COMPLETED)
            ensure_uninterrupted()

    def _tasks(self, progress: RunProgress | None) -> Iterator[pa.RecordBatch]:
        """Yield the files of each task."""
        for table in self._listing.tables():
            files = table.filter(pc.is_null(table["skipped"])).combine_chunks()
            sizes = [size or 0 for size in files["bytes"].to_pylist()]
            if progress is not None:
                progress.expect(sizes)
            costs = sizes
            if not self._work.reads_data:
                costs = [0] * len(sizes)
            first = 0
            while first < len(costs):
                most = self._files_per_task
                task = next(pack(costs[first : first + most], int, self._task_cost, most))
                (batch,) = files.slice(first, len(task)).to_batches()
                yield batch
                first += len(task)

    def _fit_tasks(self, rows: Sequence[Row[Any]]) -> None:
        """Give the next tasks as many files as take some time, judged by these rows."""
        self._files_per_task = self._least_per_task
        if self._work.changes and any(row.status == OK for row in rows):
            return
        seconds = sum(row.seconds for row in rows)
        fitting = self._most_per_task
        if seconds:
            fitting = int(_SECONDS_PER_TASK * len(rows) / seconds)
        self._files_per_task = max(self._least_per_task, min(fitting, self._most_per_task))
        self._task_cost = max(self._task_cost, self._files_per_task * OPENING_COST)

    def _cost_per_task(self, cores: int) -> int:
        """Return the cost of a task, so that each core gets some tasks."""
        size = self._listing.size
        cost = size.files * OPENING_COST
        if self._work.reads_data:
            cost += size.bytes
        return max(BUNDLE_COST, cost // (TASKS_PER_CORE * cores))

    def _run(self, tasks: Sequence[pa.RecordBatch]) -> list[Row[Any]]:
        """Run a job, and return the rows of its files."""
        frame = packed.frame_of_packs(self._spark, map(packed.pack, tasks)).coalesce(len(tasks))
        outcomes = packed.map_shipped(frame, self._function, packed.PACKED).collect()
        rows: list[Row[Any]] = []
        for (data,) in outcomes:
            for batch in packed.unpack(data):
                for part in batch.column("rows"):
                    rows.extend(map(self._names.name_row, pickle.loads(part.as_buffer())))
        return rows


def _carry(
    rows_of_files: Callable[[Sequence[ListedFile]], Iterable[Row[Any]]],
    batches: packed.Batches,
) -> packed.Batches:
    """Work on the files of a task. Rows are pickled, as those of local processes are: to convert
    them to Arrow takes longer than to scan the files."""
    for batch in batches:
        for data in batch.column("rows").to_pylist():
            files: list[ListedFile] = []
            for part in packed.unpack(data):
                files.extend(from_batch(ListedFile, part))
            rows = map(without_unexpected, rows_of_files(files))
            while part := list(islice(rows, _ROWS_PER_PACK)):
                pickled = pa.RecordBatch.from_pydict({"rows": [pickle.dumps(part)]})
                yield pa.RecordBatch.from_pydict({"rows": [packed.pack(pickled)]})
