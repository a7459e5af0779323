"""`open_files`: the Python API of the verbs for many files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.errors import SbbfError
from sbbf_tool.reports.apply import NO_DECLARATION
from sbbf_tool.reports.rows import LEFT_OUT, LINK, NOT_QUERIED, FileRow
from sbbf_tool.runner import works
from sbbf_tool.runner.failures import error_of, refusal_of
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.selection import Selection

if TYPE_CHECKING:
    import os

    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.hints import Rebuild
    from sbbf_tool.reports.add import AddReport
    from sbbf_tool.reports.advise import AdviceReport
    from sbbf_tool.reports.apply import ApplyReport
    from sbbf_tool.reports.explain import ExplainReport
    from sbbf_tool.reports.findings import CheckReport
    from sbbf_tool.reports.inspect import InspectReport
    from sbbf_tool.reports.probe import ProbeReport
    from sbbf_tool.reports.remove import RemoveReport
    from sbbf_tool.reports.repair import RepairReport
    from sbbf_tool.reports.resize import ResizeReport
    from sbbf_tool.reports.verify import VerifyReport
    from sbbf_tool.rules.check_policy import Policy

StatePath: TypeAlias = "str | os.PathLike[str] | None"


def open_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], where: str | None = None, jobs: int | None = None
) -> Files:
    """Choose the files of a run: each of `paths` is a file, a folder, a glob or a URL.

    `where` is a predicate on partition folders, such as `dt >= '2026-01-01'`; `jobs` is the maximum number of workers (if None, one per
    core). Nothing is listed before a verb is called, and each verb works on all files. Raises UsageError for a predicate that cannot be
    parsed.
    """
    from sbbf_tool.file.partitions import parse_predicate

    # An iterator would have no names for the second verb.
    return Files(Selection(tuple(as_iterable(paths)), None if where is None else parse_predicate(where)), jobs)


class Files:
    """The files of a run. Each verb takes the options of its namesake function, and yields a report or an SbbfError per file, in order.

    A column that a file lacks is no error unless `strict` is set: `probe` and `explain` answer for the file, as `sbbf_tool.probe`
    describes, and other verbs work on the columns that it has. If it has none of them, the verb yields a NotApplicableError.
    """

    def __init__(self, selection: Selection, jobs: int | None = None) -> None:
        self.selection = selection
        self.jobs = jobs

    def inspect(
        self,
        columns: str | Iterable[str] = (),
        *,
        all_chunks: bool = False,
        bitsets: bool = True,
        keys: KeysLike = None,
        strict: bool = False,
    ) -> Iterator[InspectReport | SbbfError]:
        """Inspect the filters of each file; see `sbbf_tool.inspect`."""
        return self._run(works.inspect(columns, all_chunks=all_chunks, bitsets=bitsets, keys=keys, strict=strict))

    def probe(
        self, column: str, values: object, *, dialect: str | None = None, keys: KeysLike = None, strict: bool = False
    ) -> Iterator[ProbeReport | SbbfError]:
        """Query the filters of one column; see `sbbf_tool.probe`."""
        return self._run(works.probe(column, values, dialect=dialect, keys=keys, strict=strict))

    def explain(
        self,
        column: str,
        value: object,
        *,
        engine_name: str | None = None,
        keys: KeysLike = None,
        max_page_bytes: MaxPageBytes = None,
        strict: bool = False,
    ) -> Iterator[ExplainReport | SbbfError]:
        """Explain what a query for one value reads; see `sbbf_tool.explain`."""
        work = works.explain(column, value, engine_name=engine_name, keys=keys, max_page_bytes=max_page_bytes, strict=strict)
        return self._run(work)

    def verify(
        self,
        columns: str | Iterable[str] = (),
        *,
        state: StatePath = None,
        keys: KeysLike = None,
        max_page_bytes: MaxPageBytes = None,
        strict: bool = False,
    ) -> Iterator[VerifyReport | SbbfError]:
        """Verify filters against the data; see `sbbf_tool.verify`.

        `state` is an SQLite file that keeps outcomes: reports of files that are unchanged since come from it.
        """
        return self._run(works.verify(columns, keys=keys, max_page_bytes=max_page_bytes, strict=strict), state)

    def check(
        self,
        policy: Policy | None = None,
        *,
        state: StatePath = None,
        keys: KeysLike = None,
        max_page_bytes: MaxPageBytes = None,
        strict: bool = False,
    ) -> Iterator[CheckReport | SbbfError]:
        """Run the rules; see `sbbf_tool.check`. `state` is as in `verify`."""
        from sbbf_tool.rules.check_policy import Policy
        from sbbf_tool.runner.declared_files import leave_out_old_files

        policy = policy or Policy()
        work = works.check(policy, keys=keys, max_page_bytes=max_page_bytes, strict=strict)
        return reports_of(self._runner(state)(leave_out_old_files(self.selection, policy.limits.filters), work))

    def advise(self, **options: Any) -> AdviceReport:
        """Advise on the columns of all files together, with the options of `sbbf_tool.advise`."""
        from sbbf_tool.runner.advise import advise_files

        names = self.selection.name_list()
        return advise_files(
            partial(LocalRunner(self.jobs).run, Selection(names, self.selection.where, table=self.selection.table)),
            names,
            jobs=self.jobs,
            **options,
        )

    def add_filters(
        self,
        columns: str | Iterable[str],
        *,
        fpp: float = DEFAULT_FPP,
        ndv: int | None = None,
        max_bytes: int | None = None,
        rebuild: Rebuild | None = None,
        strict: bool = False,
        state: StatePath = None,
        **options: Any,
    ) -> Iterator[AddReport | SbbfError]:
        """Add filters, `in_place`; see `sbbf_tool.add_filters`. `state` is as in `verify`; a dry run does not write it."""
        from sbbf_tool.editing.edit import Edit
        from sbbf_tool.file.page_limit import PageLimit
        from sbbf_tool.rules.filter_spec import FilterSpec

        limit = PageLimit.of(options.pop("max_page_bytes", None), self.jobs)
        spec = FilterSpec(as_names(columns), fpp, ndv, max_bytes)
        work = works.add(spec, Edit(limit=limit, **options), rebuild=rebuild, strict=strict)
        return self._run(work, state, writes=not options.get("dry_run"))

    def apply(
        self, policy: Policy, *, in_place: bool = False, dry_run: bool = False, state: StatePath = None, **options: Any
    ) -> Iterator[ApplyReport | SbbfError]:
        """Compare the files for which `policy` declares filters with them, or make it so `in_place`; see `sbbf_tool.apply`.

        `state` is as in `add_filters`.
        """
        from sbbf_tool.runner.declared_files import DeclaredPaths

        declarations = policy.limits.filters
        work = works.apply_policy(declarations, self.jobs, in_place=in_place, dry_run=dry_run, **options)
        selection = Selection(self.selection.names, DeclaredPaths(declarations, self.selection.where))
        return reports_of(self._runner(state, writes=not dry_run)(selection, work))

    def remove_filters(self, columns: str | Iterable[str] = (), **options: Any) -> Iterator[RemoveReport | SbbfError]:
        """Remove filters, `in_place`; see `sbbf_tool.remove_filters`."""
        return self._run(works.remove(columns, **{"strict": False, **options}))

    def resize_filters(self, columns: str | Iterable[str] = (), **options: Any) -> Iterator[ResizeReport | SbbfError]:
        """Resize filters, `in_place`; see `sbbf_tool.resize_filters`."""
        return self._run(works.resize(columns, **{"strict": False, **options}))

    def repair(self, columns: str | Iterable[str] = (), **options: Any) -> Iterator[RepairReport | SbbfError]:
        """Repair filters, `in_place`; see `sbbf_tool.repair`."""
        return self._run(works.repair(columns, **{"strict": False, **options}))

    def _run(self, work: works.Work[FileRow], state: StatePath = None, *, writes: bool = True) -> Iterator[Any]:
        return reports_of(self._runner(state, writes=writes)(self.selection, work), is_query=work.values is not None)

    def _runner(self, state: StatePath, *, writes: bool = True) -> Callable[[Selection, works.Work[FileRow]], Iterator[FileRow]]:
        """Return the `run` of the local runner; with a state, only new and changed files are worked on. Raises the errors of `State`."""
        runner = LocalRunner(self.jobs)
        if state is None:
            return runner.run
        from sbbf_tool.runner.incremental import IncrementalRunner
        from sbbf_tool.runner.state import State

        return IncrementalRunner(runner, State(state, writes=writes)).run


def reports_of(rows: Iterable[FileRow], *, is_query: bool = False) -> Iterator[Any]:
    """Yield the report, or else the error, of each row. Links and files without a declaration are left out.

    What a query did not look at has an error: a value may be there.
    """
    for row in rows:
        if is_query and row.reason in NOT_QUERIED:
            yield error_of(row)
            continue
        report = getattr(row, "report", None)
        if row.reason in (LINK, *LEFT_OUT, NO_DECLARATION):
            continue
        # A change that left out some filters has a report, which lists them.
        if report is not None and (row.exit_code == 0 or refusal_of(report) is not None):
            yield report
        else:
            yield row.error if isinstance(row.error, SbbfError) else error_of(row)
