"""`run`: carry a verb to files, wherever they are.

# reads lazily, in the order of the files
for row in run(Probe("user_id", [42]), "lake/**"):
    print(row.path, row.report)

# returns the answer about all files
run(Advise(), "lake")

# works when called, and returns a `Summary`
run(AddFilter(spec), "lake", edit=Edit(in_place=True))

# streams rows; a table commits when the block ends
with run(AddFilter(spec), "lake", edit=Edit(in_place=True), errors="return") as rows:
    for row in rows: ...
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.editing.targets import ensure_one_way
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import UsageError
from sbbf_tool.extension import is_index
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.file.partitions import Predicate
from sbbf_tool.frozen import Frozen
from sbbf_tool.reports.rows import FAILED, REFUSED, Row
from sbbf_tool.running.declared_files import leave_out_old_files
from sbbf_tool.running.discover import folders_of
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.named_columns import NamedColumns
from sbbf_tool.running.selection import Selection, find_index, find_table, is_table
from sbbf_tool.running.table import Change, TableChange
from sbbf_tool.running.work import Runner, Work
from sbbf_tool.storage.places import find_single_file
from sbbf_tool.verbs.verb import Given, Verb

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.reports.change import ChangeReport
    from sbbf_tool.running.table import Commit
    from sbbf_tool.storage.inputs import FileSystemLike, Readable
    from sbbf_tool.verbs.advise import AdviceReport
    from sbbf_tool.verbs.verb import ChangingVerb, CombiningVerb, ReadingVerb

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

    class RunOptions(TypedDict, total=False):
        """The options of every run; see `run`."""

        where: str | None
        keys: KeysLike
        max_page_bytes: MaxPageBytes
        strict: bool
        jobs: int | None
        on: Runner | None
        state: str | os.PathLike[str] | None
        all_versions: bool


Report = TypeVar("Report")
Whole = TypeVar("Whole")
Changed = TypeVar("Changed", bound="ChangeReport")
_MOST_ERRORS = 20


class Summary(Frozen):
    """What a run did that changed files."""

    files: Mapping[str, int]
    """Number of files by status: `ok`, `skipped`, `refused` and `failed`."""
    errors: tuple[str, ...]
    """The first 20 files that were refused or failed, each with the reason."""
    commits: tuple[Commit, ...] = ()
    """The commits of a table."""
    vanished: tuple[str, ...] = ()
    """Files of a table that other commits replaced or removed before this run could."""


@overload
def run(verb: CombiningVerb[Any, Whole], paths: Paths, **options: Unpack[RunOptions]) -> Whole: ...  # type: ignore[overload-overlap]
@overload
def run(
    verb: ReadingVerb[Report], paths: Paths, **options: Unpack[RunOptions]
) -> Iterator[Row[Report]]: ...
@overload
def run(
    verb: ChangingVerb[Any],
    paths: Paths,
    *,
    edit: Edit,
    errors: Literal["raise"] = "raise",
    **options: Unpack[RunOptions],
) -> Summary: ...
@overload
def run(
    verb: ChangingVerb[Changed],
    paths: Paths,
    *,
    edit: Edit,
    errors: Literal["return"],
    **options: Unpack[RunOptions],
) -> Rows[Changed]: ...
def run(  # noqa: PLR0913  one keyword for each option of a run
    verb: Verb[Any],
    paths: Paths,
    *,
    edit: Edit | None = None,
    where: str | None = None,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    strict: bool = False,
    jobs: int | None = None,
    on: Runner | None = None,
    state: str | os.PathLike[str] | None = None,
    all_versions: bool = False,
    errors: str = "raise",
) -> Any:
    """Carry `verb` to each of the files.

    Each of `paths`, which may be an iterator, is a file, a folder, a glob or a URL; or there is one
    path: a table, by its root or name, or an index of files, of which those are not opened that
    certainly hold none of the values that a verb looks for. `where` is a predicate on partitions,
    such as `dt >= '2026-01-01'`. `keys`, `max_page_bytes` and `strict` are as in `ReadingVerb`.
    `jobs` is the maximum number of workers on this machine (one per core if None); `on` is another
    runner, such as `spark.runner.Spark`. `state` is an SQLite file that keeps outcomes: files that
    are unchanged since are not opened. `edit` says how files are changed. `all_versions` means the
    files of all retained versions of a table, with the rows that any version has deleted.

    A failure in one file is its row. Raises UsageError (also after the last row, if no file has a
    column that the verb names), UnreadableError (a name that means no file) and RefusedError (a
    table that cannot be changed) for the run as a whole.
    """
    if not isinstance(verb, Verb):
        raise UsageError(f"run takes a verb, such as Verify(), not {verb!r}")
    if verb.changes and edit is None:
        raise UsageError(f"{verb.name} changes files: give edit")
    if edit is not None and not verb.changes:
        raise UsageError(f"{verb.name} changes no file: leave out edit")
    if state is not None and not verb.has_state:
        raise UsageError(f"a state holds no outcomes of {verb.name}")
    if all_versions and verb.changes:
        raise UsageError("all_versions is for verbs that change no file")
    _ensure_errors(errors, verb)
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise UsageError(f"the number of workers must be a number of at least 1, not {jobs!r}")
    selection = _select(as_iterable(paths), where, verb, all_versions)
    if selection.table is not None:
        verb = verb.of_table(selection.table.name)
    else:
        specs = verb.table_specs()
        if specs:
            selection = leave_out_old_files(selection, specs)
    change = None
    if edit is not None:
        edit = _complete_edit(edit, selection, keys, max_page_bytes, jobs)
        change = _begin_change(verb, selection, edit)
    work = Work(verb, keys=keys, max_page_bytes=max_page_bytes, strict=strict, edit=edit)
    runner: Runner = LocalRunner(jobs) if on is None else on
    rows = Rows(work, selection, runner, state, change)
    if verb.combines:
        return work.combine(rows, selection, jobs)
    if errors == "return" or not verb.changes:
        return rows if verb.changes else iter(rows)
    with rows:
        pass
    return rows.summary


def _ensure_errors(errors: str, verb: Verb[Any]) -> None:
    """Ensure that `errors` says what to do with the failures of a verb that changes files. Raises
    UsageError."""
    if errors not in ("raise", "return"):
        raise UsageError(f"errors must be 'raise' or 'return', not {errors!r}")
    if errors != "raise" and not verb.changes:
        raise UsageError("errors is for verbs that change files: a row has the error of its file")


def _select(
    paths: Iterable[str | os.PathLike[str]], where: str | None, verb: Verb[Any], all_versions: bool
) -> Selection:
    """Return the files of a run. Raises UsageError if a table or an index is one of several
    paths."""
    predicate = None if where is None else Predicate(where)
    if isinstance(paths, Iterator) and not verb.combines:
        return Selection(paths, predicate, all_versions=all_versions)
    names = tuple(map(os.fsdecode, paths))
    index = find_index(names[0]) if len(names) == 1 else None
    if index is not None:
        names = index.paths
    table = None
    if len(names) == 1:
        table = find_table(names[0])
    elif len(names) > 1:
        for name in names:
            if is_index(name) or is_table(name):
                raise UsageError("a table, or an index, is the only path of a run", file=name)
    return Selection(names, predicate, table=table, all_versions=all_versions, index=index)


def _complete_edit(
    edit: Edit,
    selection: Selection,
    keys: KeysLike,
    max_page_bytes: MaxPageBytes,
    jobs: int | None,
) -> Edit:
    """Return the edit with the keys and the limit of the run, if it has any, and the folders below
    which new files keep their names."""
    if max_page_bytes is None:
        max_page_bytes = edit.limit.max_page_bytes
    if keys is None:
        keys = edit.keys
    roots: Sequence[str] = ()
    if edit.is_in_folder and isinstance(selection.names, tuple):
        roots = folders_of(selection.names)
    return replace(edit, keys=keys, limit=PageLimit.of(max_page_bytes, jobs), roots=roots)


def _begin_change(verb: Verb[Any], selection: Selection, edit: Edit) -> TableChange | None:
    """Return the change of the table; None for files, which `edit` must be able to change."""
    columns = verb.changed_columns()
    if selection.table is not None:
        change = Change(f"{verb.operation} BLOOM FILTERS", columns)
        return selection.table.begin(change, selection.where, edit, may_lack_columns=not columns)
    names = selection.names if isinstance(selection.names, tuple) else ()
    ensure_one_way(edit.output, edit.in_place, edit.dry_run, names)
    is_single = len(names) == 1 and find_single_file(names[0])
    if edit.output is not None and not edit.is_in_folder and not is_single:
        raise UsageError(
            "an output is for one file",
            hint="name a folder, with / at its end, or change many in place",
        )
    return None


class Rows(Generic[Report]):
    """The rows of a run, each as soon as it is ready. A block over them does the rest of the work
    at its end.

    If the block ends with an exception, no further file is begun, and a table is unchanged; files
    that were in work may be changed.
    """

    def __init__(
        self,
        work: Work[Report],
        selection: Selection,
        runner: Runner,
        state: str | os.PathLike[str] | None,
        change: TableChange | None,
    ) -> None:
        self._change = change
        self._columns = NamedColumns(work.needs.columns or work.verb.changed_columns())
        self._counts = Counter[str]()
        self._errors: list[str] = []
        carry = runner.run
        if state is not None:
            from sbbf_tool.running.incremental import IncrementalRunner
            from sbbf_tool.running.state import State

            carry = IncrementalRunner(runner, State(state, writes=not work.is_dry_run)).run
        self._rows = self._run(work, selection, runner, carry)

    @property
    def summary(self) -> Summary:
        """What the run did so far; complete when all rows were taken, or the block has ended."""
        counts = dict(self._counts)
        errors = tuple(self._errors)
        if self._change is None:
            return Summary(counts, errors)
        return Summary(counts, errors, tuple(self._change.commits), tuple(self._change.vanished))

    def __iter__(self) -> Iterator[Row[Report]]:
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

    def _run(
        self, work: Work[Report], selection: Selection, runner: Runner, carry: Any
    ) -> Generator[Row[Report], None, None]:
        with runner:
            if self._change is None:
                rows = carry(selection, work)
            else:
                rows = self._change.rows(carry, work)
            for row in rows:
                self._counts[row.status] += 1
                self._columns.add(row)
                if row.status in (REFUSED, FAILED) and len(self._errors) < _MOST_ERRORS:
                    self._errors.append(f"{row.path}: {row.reason}")
                yield row
        for reason in self._columns.unknown(selection.excluded):
            raise UsageError(f"no file has the column: {reason}")


def advise(  # noqa: PLR0913  one keyword for each option of the command
    names: Readable | Iterable[Readable],
    *,
    where: str | None = None,
    jobs: int | None = None,
    queries: Iterable[str] = (),
    fpp: float = DEFAULT_FPP,
    engine_names: Iterable[str] = (),
    all_types: bool = False,
    emit: str | None = None,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    filesystem: FileSystemLike | None = None,
) -> AdviceReport:
    """Advise on the columns of all these files together; see `Advise`, and `run` for `where` and
    `jobs`.

    Each of `names` is a file, a folder, a glob or a URL, or there is one table. Open binary files,
    and paths in a `filesystem` (of pyarrow or fsspec), are files too; then the report has no fix.
    """
    from sbbf_tool.verbs.advise import Advise, advise_open

    verb = Advise(queries, fpp, engine_names, all_types, emit)
    inputs = list(as_iterable(names))
    key_set = Keys.of(keys)
    paths = [os.fsdecode(name) for name in inputs if isinstance(name, str | bytes | os.PathLike)]
    if filesystem is not None or len(paths) < len(inputs):
        return advise_open(verb, inputs, filesystem, Given(key_set, max_page_bytes), jobs)
    return run(verb, paths, where=where, jobs=jobs, keys=key_set, max_page_bytes=max_page_bytes)
