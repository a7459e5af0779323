"""A run that nothing refuses: which work is done on which files, and the rows that this yields."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen
from sbbf_tool.running.outcome import Outcome, Summary, lacks_columns, reason_of
from sbbf_tool.storage.places import is_url

if TYPE_CHECKING:
    from sbbf_tool.reports.rows import ListedFile, Row
    from sbbf_tool.running.progress import RunProgress
    from sbbf_tool.running.selection import Index, Selection
    from sbbf_tool.running.state import State
    from sbbf_tool.running.table import Table, TableChange
    from sbbf_tool.running.work import Runner, Work
    from sbbf_tool.verbs.verb import Verb

    Watch = Callable[["Plan", "PlanPart"], AbstractContextManager[RunProgress]]
    """Returns a block in which the progress of a part is shown."""

Report = TypeVar("Report")

_MOST_HELD = 1000


class PlanPart(NamedTuple):
    """Files, and the work on each; with its change, the files of one table."""

    selection: Selection
    work: Work[Any]
    change: TableChange | None = None

    @property
    def verb(self) -> Verb[Any]:
        return self.work.verb


class Plan(Frozen):
    """What a run does: most have one part; declared files and declared tables are several."""

    parts: tuple[PlanPart, ...]
    runner: Runner
    state: State | None = None
    """The outcomes of earlier runs."""
    watch: Watch | None = None
    unmatched: Sequence[tuple[str, str]] = ()
    """Declared paths that should each match a file, with the folders that they start from."""

    @property
    def verb(self) -> Verb[Any]:
        return self.parts[0].verb

    @property
    def selection(self) -> Selection:
        """The files of the only part."""
        return self.parts[0].selection

    @property
    def is_declared(self) -> bool:
        """Whether the verb itself names the files."""
        return self.verb.declared() is not None

    @property
    def file(self) -> str | None:
        """The file that the only path names; None if there may be several files."""
        return None if self.is_declared else self.selection.file

    @property
    def table(self) -> Table | None:
        """The table that the only path means."""
        return None if self.is_declared else self.selection.table

    @property
    def index(self) -> Index | None:
        return self.selection.index

    @property
    def where(self) -> object:
        """The predicate on partitions; None for all files."""
        return None if self.is_declared else self.selection.where

    @property
    def is_dry_run(self) -> bool:
        return self.parts[0].work.is_dry_run

    @property
    def changes(self) -> tuple[TableChange, ...]:
        """The changes of tables."""
        return tuple(part.change for part in self.parts if part.change is not None)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders of tables, relative to which people read the names of their files, with a
        slash at the end."""
        tables = (part.selection.table for part in self.parts)
        return tuple(f"{table.location}/" for table in tables if table is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the run names, of which some file must have each."""
        columns: dict[str, None] = {}
        for part in self.parts:
            columns |= dict.fromkeys(part.verb.named_columns())
        return tuple(columns)

    def rows(self, *, raises: bool = False, holds_back: bool = False) -> Rows[Any]:
        """Return the rows of the run, of which each is worked on as it is taken; see `Rows`."""
        return Rows(self, raises=raises, holds_back=holds_back)

    def combine(self) -> Any:
        """Return the answer of a verb about all files together."""
        (part,) = self.parts
        # A verb may need no rows: then none is worked on.
        with closing(iter(self.rows(raises=True))) as rows:
            return part.work.combine(rows, part.selection)

    def lister(self, part: PlanPart) -> Callable[[], Iterable[ListedFile]] | None:
        """Return a function that lists the files of a part again; None if that costs requests, or
        if they can be read only once."""
        selection = part.selection
        is_single = selection.file is not None or selection.index is not None
        names = selection.names
        if self.state is not None or self.runner.on_cluster or is_single:
            return None
        if not isinstance(names, tuple) or any(map(is_url, names)):
            return None
        return lambda: selection.files(links=part.work.changes)


class Rows(Generic[Report]):
    """The rows of a run, each as soon as it is ready. A block over them does the rest of the work
    at its end.

    If the block ends with an exception, no further file is begun, and a table is unchanged; files
    that were in work may be changed.
    """

    def __init__(self, plan: Plan, *, raises: bool, holds_back: bool) -> None:
        """With `raises`, a column that no file has is an error after the last row. With
        `holds_back`, the first rows are kept while each has a usage error or lacks the columns: if
        all have, the first of these errors is raised instead.
        """
        self.outcome = Outcome(plan.columns, plan.changes, plan.unmatched)
        self._plan = plan
        self._raises = raises
        self._holds_back = holds_back
        self._waiting: deque[Row[Report]] = deque()
        """The rows that are counted, and that the caller has not processed."""
        self._rows = self._run()

    @property
    def summary(self) -> Summary:
        """What the run did so far; complete when all rows were taken, or the block has ended."""
        return self.outcome.summary

    @property
    def unknown_columns(self) -> list[str]:
        """The error for each column of the run that certainly no file has."""
        return list(self.outcome.columns.unknown(self._plan.selection.excluded))

    def __iter__(self) -> Generator[Row[Report], None, None]:
        return self._rows

    def __next__(self) -> Row[Report]:
        return next(self._rows)

    def __enter__(self) -> Rows[Report]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with closing(self._rows):
            if error is None:
                for _ in self._rows:
                    pass

    def left_over(self, last_taken: str | None) -> Iterator[Row[Report]]:
        """Yield the rows of files that were done when the run ended early, and that the caller has
        not processed; `last_taken` is the path of the last row that it has."""
        counted = {row.path for row in self._waiting}
        counted.add(last_taken or "")
        seen = {last_taken}
        for row in [*self._waiting, *self._plan.runner.rest]:
            if row.path not in counted:
                self.outcome.add(row, in_table=False)
            if row.path not in seen:
                yield row
            seen.add(row.path)
            counted.add(row.path)

    def _run(self) -> Generator[Row[Report], None, None]:
        plan = self._plan
        carry = plan.runner.run
        if plan.state is not None:
            from sbbf_tool.running.incremental import IncrementalRunner

            carry = IncrementalRunner(plan.runner, plan.state).run
        with ExitStack() as stack:
            for number, part in enumerate(plan.parts):
                watched = nullcontext() if plan.watch is None else plan.watch(plan, part)
                with watched as plan.runner.progress:
                    if number == 0:
                        stack.enter_context(plan.runner)
                    rows: Generator[Row[Report], None, None] = carry(part.selection, part.work)
                    if part.change is not None:
                        rows = part.change.rows(carry, part.work)
                    table = part.selection.table
                    if table is not None:
                        rows = table.access.each_through(rows)
                    for row in rows:
                        self._waiting.append(row)
                        self.outcome.add(row, in_table=part.change is not None)
                        if self._waits(row):
                            continue
                        while self._waiting:
                            yield self._waiting[0]
                            self._waiting.popleft()
        if self._raises:
            self._ensure_known()
        if self._waiting:
            self._ensure_usable()
        while self._waiting:
            yield self._waiting[0]
            self._waiting.popleft()

    def _waits(self, row: Row[Report]) -> bool:
        """Return whether a row is held back, as all before it were."""
        if not self._holds_back:
            return False
        is_unusable = row.exit_code == UsageError.exit_code or lacks_columns(row)
        self._holds_back = is_unusable and len(self._waiting) <= _MOST_HELD
        return self._holds_back

    def _ensure_usable(self) -> None:
        """Raise the first error of the rows that were held back to the end, unless files that an
        index has left out may have the columns."""
        if self._plan.selection.excluded:
            return
        self._ensure_known()
        first = self._waiting[0]
        raise first.error or UsageError(reason_of(first), file=first.path)

    def _ensure_known(self) -> None:
        """Raise UsageError for a column that no file has."""
        for reason in self.unknown_columns:
            raise UsageError(f"no file has the column: {reason}")
