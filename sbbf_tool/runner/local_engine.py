"""The lake by a few processes of this machine: rows come in the files' order as they are ready, in memory that does not grow with them.

Small files are packed into tasks; a file too large for one is built, or proven, in pieces by all processes, and put
together by one; or built by one alone, on all cores, where its filters are too large to be handed from one to another.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, TypeVar

from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.lake import BuiltChunk, PlannedFile, PlannedPiece, ProvenPiece
from sbbf_tool.reports.rows import FAILED, OK, FileRow, FoundFile
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.runner.discover import skip_link
from sbbf_tool.runner.engine import Lake
from sbbf_tool.runner.failures import INTERNAL_ERROR
from sbbf_tool.runner.fill import build_piece, fill_file, publish_file
from sbbf_tool.runner.pack import TASK_COST, pack
from sbbf_tool.runner.plan import HANDED_BYTES, PIECE_BYTES, plan_file
from sbbf_tool.runner.processes import Processes, Task
from sbbf_tool.runner.prove import plan_proofs, prove_piece, report_proofs
from sbbf_tool.runner.read import verifying
from sbbf_tool.storage.temporary import listing_once

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven

Part = TypeVar("Part", bound=FileRow)
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

    def verify(self, lake: Lake, columns: tuple[str, ...] = ()) -> Iterator[VerifyRow]:
        return verify_files(lake.files(), columns, lake.keys, lake.limit, jobs=self.jobs)

    def plan(self, lake: Lake, spec: FilterSpec, edit: Edit) -> Iterator[PlannedFile]:
        plan = partial(read_files, work=partial(plan_file, spec=spec, edit=edit), row=PlannedFile, jobs=self.jobs)
        return _but_links(lake.files(links=True), plan, PlannedFile)

    def add_filters(self, lake: Lake, spec: FilterSpec, edit: Edit) -> Iterator[AddRow]:
        # Processes are forked in this block, and list each folder once too.
        with listing_once():
            yield from _but_links(lake.files(links=True), partial(add_filters, spec=spec, edit=edit, jobs=self.jobs), AddRow)


_FILES_WITHOUT_PROCESSES = 50
"""To start processes takes as long as so many small files."""
_TASKS_AHEAD = 2
_READING_TASK = 100
"""Files in a task that reads footers and filters."""


def read_files(
    files: Iterable[FoundFile], work: Callable[[str], Row], row: type[Row], *, jobs: int | None = None, reads_data: bool = False
) -> Iterator[Row]:
    """The row that `work` makes of each file, in order, `jobs` processes at a time (the cores, where None).

    `reads_data` says whether it takes a file's bytes to read or only footer and filters, by which files are packed into tasks.
    """
    workers = _workers(jobs)
    is_little, files = _look_ahead(files, _size_if(reads_data), TASK_COST)
    if workers == 1 or is_little:
        for found in files:
            yield work(found.path)
        return
    packs = pack(files, _size_if(reads_data), most=_READING_TASK)
    yield from _by_processes((_Packed(Task([found.path for found in packed], partial(_rows, work))) for packed in packs), workers, row)


def verify_files(
    files: Iterable[FoundFile],
    columns: tuple[str, ...] = (),
    keys: KeysGiven = None,
    limit: MaxPageBytes = None,
    *,
    jobs: int | None = None,
    task_cost: int = TASK_COST,
    piece_bytes: int = PIECE_BYTES,
) -> Iterator[VerifyRow]:
    """What `verify` says of each file, in order, `jobs` processes at a time.

    Of a file of more than `task_cost` bytes filters are proven in pieces of about `piece_bytes` of data.
    """
    workers, work = _workers(jobs), verifying(columns, keys, limit)
    is_little, files = _look_ahead(files, _size_if(True), task_cost)
    if workers == 1 or is_little:
        for found in files:
            yield work(found.path)
        return

    whole = partial(_rows, work)

    def split(path: str) -> _Packed[VerifyRow] | _Split[ProvenPiece, VerifyRow]:
        planned = plan_proofs(path, columns, keys, piece_bytes)
        prove = partial(_prove, path, planned.fingerprint, columns, keys, limit)
        return _split(planned, prove, partial(_report, columns, keys, limit), ProvenPiece) or _Packed(Task([path], whole))

    yield from _by_processes(_work(files, whole, split, task_cost), workers, VerifyRow)


def add_filters(
    files: Iterable[FoundFile],
    spec: FilterSpec,
    edit: Edit,
    *,
    jobs: int | None = None,
    task_cost: int = TASK_COST,
    piece_bytes: int = PIECE_BYTES,
) -> Iterator[AddRow]:
    """Give each file the filters that it lacks; the outcome of each, in order, `jobs` processes at a time.

    A file of more than `task_cost` bytes is built in pieces of about `piece_bytes` of data.
    """
    workers, edit = _workers(jobs), replace(edit, jobs=1)
    if workers == 1:
        for found in files:
            yield fill_file(found.path, spec, edit)
        return

    fill = partial(_rows, partial(fill_file, spec=spec, edit=edit))
    fill_on_all_cores = partial(_rows, partial(fill_file, spec=spec, edit=replace(edit, jobs=workers)))

    def split(path: str) -> _Packed[AddRow] | _Split[BuiltChunk, AddRow]:
        planned = plan_file(path, spec, edit, piece_bytes, HANDED_BYTES)
        pieces = _split(planned, partial(_build, path, planned.fingerprint, spec, edit), partial(_publish, spec, edit), BuiltChunk)
        # It counts as all the tasks that may be under way, so that no other one like it is.
        return pieces or _Packed(Task([path], fill_on_all_cores), workers * _TASKS_AHEAD)

    yield from _by_processes(_work(files, fill, split, task_cost), workers, AddRow)


def _but_links(files: Iterable[FoundFile], work: Callable[[Iterator[FoundFile]], Iterator[Row]], row: type[Row]) -> Iterator[Row]:
    """The rows of the files that are no links, and then those of links, which are skipped."""
    links: list[FoundFile] = []

    def others() -> Iterator[FoundFile]:
        for found in files:
            if found.is_link:
                links.append(found)
            else:
                yield found

    yield from work(others())
    yield from (skip_link(row, link.path) for link in links)


def _by_processes(work: Iterator[_Packed[Row] | _Split[Part, Row]], workers: int, row: type[Row]) -> Iterator[Row]:
    """The rows that come of the work, in its order, of which little is begun before it is asked for."""
    with Processes(workers) as processes:
        ahead: deque[_Packed[Row] | _Split[Part, Row]] = deque()
        while True:
            while sum(one.tasks for one in ahead) < workers * _TASKS_AHEAD and (fresh := next(work, None)) is not None:
                fresh.submit(processes)
                ahead.append(fresh)
            if not ahead:
                return
            head = ahead.popleft()
            if isinstance(head, _Split):
                # While one process puts the parts together, the others go on with what comes next.
                ahead.appendleft(head.joined(processes))
            else:
                yield from processes.rows(head.task, partial(_lost, row))


@dataclass
class _Packed(Generic[Row]):
    """Files whose rows come of one task."""

    task: Task[str, Row]
    tasks: int = 1

    def submit(self, processes: Processes) -> None:
        processes.submit(self.task)


@dataclass
class _Split(Generic[Part, Row]):
    """A file whose pieces are worked on apart."""

    path: str
    part: type[Part]
    pieces: list[Task[PlannedPiece, Part]]
    join: Callable[[list[Part], Sequence[str]], list[Row]]

    @property
    def tasks(self) -> int:
        return len(self.pieces)

    def submit(self, processes: Processes) -> None:
        for piece in self.pieces:
            processes.submit(piece)

    def joined(self, processes: Processes) -> _Packed[Row]:
        """Waits for the pieces; answers with what puts them together, which has begun."""
        parts = [part for piece in self.pieces for part in processes.rows(piece, lambda _: _lost(self.part, self.path))]
        return _Packed(processes.submit(Task([self.path], partial(self.join, parts))))


def _work(
    files: Iterable[FoundFile],
    whole: Callable[[Sequence[str]], list[Row]],
    split: Callable[[str], _Packed[Row] | _Split[Part, Row]],
    task_cost: int,
) -> Iterator[_Packed[Row] | _Split[Part, Row]]:
    """Units in the files' order: runs of small files, done `whole`, and each large one by itself, as `split` makes it one."""
    for packed in pack(files, lambda found: found.bytes or 0, task_cost):
        (first, *others) = packed
        is_large = not others and (first.bytes or 0) > task_cost
        yield split(first.path) if is_large else _Packed(Task([found.path for found in packed], whole))


def _split(
    planned: PlannedFile,
    work: Callable[[Sequence[PlannedPiece]], list[Part]],
    join: Callable[[list[Part], Sequence[str]], list[Row]],
    part: type[Part],
) -> _Split[Part, Row] | None:
    if planned.status != OK or len(planned.pieces) < 2:
        return None
    return _Split(planned.path, part, [Task([piece], work) for piece in planned.pieces], join)


def _rows(work: Callable[[str], Row], paths: Sequence[str]) -> list[Row]:
    return [work(path) for path in paths]


def _build(path: str, print_of_plan: str | None, spec: FilterSpec, edit: Edit, pieces: Sequence[PlannedPiece]) -> list[BuiltChunk]:
    return [chunk for piece in pieces for chunk in build_piece(path, print_of_plan, piece.row_groups, spec, edit)]


def _publish(spec: FilterSpec, edit: Edit, chunks: list[BuiltChunk], paths: Sequence[str]) -> list[AddRow]:
    return [publish_file(path, chunks, spec, edit) for path in paths]


def _prove(
    path: str, print_of_plan: str | None, columns: tuple[str, ...], keys: KeysGiven, limit: MaxPageBytes, pieces: Sequence[PlannedPiece]
) -> list[ProvenPiece]:
    return [prove_piece(path, print_of_plan, piece.row_groups, columns, keys, limit) for piece in pieces]


def _report(
    columns: tuple[str, ...], keys: KeysGiven, limit: MaxPageBytes, proven: list[ProvenPiece], paths: Sequence[str]
) -> list[VerifyRow]:
    return [report_proofs(path, proven, columns, keys, limit) for path in paths]


def _lost(row: type[Row], path: str) -> Row:
    reason = "the process that worked on it was killed, perhaps for want of memory"
    return row(path=path, status=FAILED, reason=reason, exit_code=INTERNAL_ERROR, seconds=0.0)


def _workers(jobs: int | None) -> int:
    return jobs if jobs is not None else os.cpu_count() or 1


def _size_if(reads_data: bool) -> Callable[[FoundFile], int]:
    return lambda found: (found.bytes or 0) if reads_data else 0


def _look_ahead(files: Iterable[FoundFile], size: Callable[[FoundFile], int], task_cost: int) -> tuple[bool, Iterator[FoundFile]]:
    """Whether there is so little to do that processes are not worth starting; and the files, all of them."""
    remaining = iter(files)
    first = list(islice(remaining, _FILES_WITHOUT_PROCESSES + 1))
    is_little = len(first) <= _FILES_WITHOUT_PROCESSES and sum(map(size, first)) < task_cost
    return is_little, chain(first, remaining)
