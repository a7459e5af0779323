"""The verbs as work that a run does on each file. Work can be sent to other processes, and specifies the kind of row that it returns.

Each function returns the `Work` of one verb, and imports what the verb needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.file.texts import values_of
from sbbf_tool.reports.rows import SKIPPED, FileRow
from sbbf_tool.runner.failures import failure, refusal_of, row_of

if TYPE_CHECKING:
    from sbbf_tool.advice.queries import Query
    from sbbf_tool.advice.survey import FileSurvey
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.meter import Progress
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.file.reuse import Reuse
    from sbbf_tool.file.table_file import TableFiles
    from sbbf_tool.hints import Rebuild
    from sbbf_tool.operations.check import PolicyOfFiles
    from sbbf_tool.reports.add import AddRow
    from sbbf_tool.reports.apply import ApplyRow
    from sbbf_tool.reports.explain import ExplainRow
    from sbbf_tool.reports.findings import CheckReport, CheckRow
    from sbbf_tool.reports.inspect import InspectRow
    from sbbf_tool.reports.lake import SurveyRow
    from sbbf_tool.reports.probe import ProbeRow
    from sbbf_tool.reports.remove import RemoveReport, RemoveRow
    from sbbf_tool.reports.repair import RepairReport, RepairRow
    from sbbf_tool.reports.resize import ResizeReport, ResizeRow
    from sbbf_tool.reports.verify import VerifyRow
    from sbbf_tool.rules.check_policy import Policy
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.runner.path_policies import PathPolicies

    ChangeReport = RemoveReport | RepairReport | ResizeReport

Row = TypeVar("Row", bound=FileRow, covariant=True)


class Request:
    """What determines the outcome of a work besides the file, for the state of a run."""

    __slots__ = ("_policies", "_values", "command", "only_skipped")

    def __init__(self, command: str, *values: object, policies: PolicyOfFiles | None = None, only_skipped: bool = False) -> None:
        """Take the name of the command, and values that `repr` describes completely; `policies` is the policy of each file.

        With `only_skipped`, only files that were skipped, because there was nothing to do, need no work.
        """
        self.command = command
        self.only_skipped = only_skipped
        self._values = values
        self._policies = policies

    def describe(self, path: str) -> str:
        """Return a text that differs for each other request on this file."""
        return repr((self.command, *self._values, None if self._policies is None else self._policies.of(path)))


class Work(Generic[Row]):
    """The work of one verb on any file."""

    # Not a dataclass: creating one would delay the first command of a process.
    __slots__ = (
        "changes",
        "columns",
        "fields",
        "is_parallel",
        "publishes_together",
        "reads_data",
        "request",
        "row",
        "table_files",
        "values",
    )

    def __init__(
        self,
        row: type[Row],
        fields: Callable[..., Mapping[str, object]],
        *,
        reads_data: bool = False,
        changes: bool = False,
        is_parallel: bool = False,
        table_files: TableFiles | None = None,
        columns: tuple[str, ...] = (),
        values: Sequence[object] | None = None,
        request: Request | None = None,
        publishes_together: bool = False,
    ) -> None:
        self.row = row
        self.fields = fields
        """Function that takes a path and returns the fields of its row: `report`, or `status` and `reason` if there is no report."""
        self.reads_data = reads_data
        """Whether the work reads the data of a file, not only its footer and filters."""
        self.changes = changes
        """Whether the work changes files; if so, links in a listing are skipped."""
        self.is_parallel = is_parallel
        """Whether `fields` takes `jobs` (the number of column chunks of a file to process concurrently) and `progress`."""

        self.table_files = table_files
        """What the work needs to know of the files, if they belong to a table."""
        self.columns = columns
        """The columns that a table must have for this work, which only reads; a file of the table need not have them."""
        self.values = values
        """The values that the work queries in its column; None if it answers nothing about values."""
        self.request = request
        """The request, if the state of a run can hold the outcome of the work."""
        self.publishes_together = publishes_together
        """Whether small files may be published together: then the work opens each file only once."""

    def of_table(self, table_files: TableFiles | None) -> Work[Row]:
        """Return the same work on files of a table."""
        return Work(
            self.row,
            self.fields,
            reads_data=self.reads_data,
            changes=self.changes,
            is_parallel=self.is_parallel,
            table_files=table_files,
            columns=self.columns,
            values=self.values,
            request=self.request,
            publishes_together=self.publishes_together,
        )

    def only(self, paths: Collection[str]) -> Work[Row]:
        """Return the same work with what it needs for these files alone, to send it to another process."""
        return self if self.table_files is None else self.of_table(self.table_files.only(paths))

    def __call__(self, path: str, jobs: int = 1, progress: Progress | None = None) -> Row:
        """Return the row of one file; a failure is reported in the row."""
        options = {"jobs": jobs, "progress": progress} if self.is_parallel else {}
        file = self.file(path)
        return row_of(self.row, file, partial(self.fields, file, **options))

    def file(self, path: str) -> FileName:
        """Return the name by which the work opens the file with this path."""
        return path if self.table_files is None else self.table_files.file(path)


def _reporting(
    row: type[Row], operation: Callable[..., object], columns: tuple[str, ...] = (), values: Sequence[object] | None = None
) -> Work[Row]:
    return Work(row, partial(_report, operation), columns=columns, values=values)


def _changing(row: type[Row], operation: Callable[..., ChangeReport], *, is_parallel: bool) -> Work[Row]:
    return Work(row, partial(_report_change, operation), reads_data=True, changes=True, is_parallel=is_parallel)


def _report(operation: Callable[..., object], path: FileName, **options: object) -> dict[str, object]:
    return {"report": operation(path, **options)}


def _report_change(operation: Callable[..., ChangeReport], path: FileName, **options: object) -> dict[str, object]:
    report = operation(path, **options)
    if refused := refusal_of(report):
        return refused
    is_same = isinstance(path, TableFile) and report.old_bytes == report.new_bytes and report.output == report.file and not report.dry_run
    return {"status": SKIPPED, "reason": "the file has nothing to change", "report": report} if is_same else {"report": report}


def inspect(
    columns: Iterable[str] = (), *, all_chunks: bool = False, bitsets: bool = True, keys: KeysLike = None, strict: bool = True
) -> Work[InspectRow]:
    from sbbf_tool.operations.inspect import inspect as operation
    from sbbf_tool.reports.inspect import InspectRow

    names = as_names(columns)
    options: dict[str, Any] = {"columns": names, "all_chunks": all_chunks, "bitsets": bitsets, "keys": keys, "strict": strict}
    return _reporting(InspectRow, partial(operation, **options), names)


def probe(
    column: str, values: object, *, dialect: str | None = None, keys: KeysLike = None, strict: bool = True, **more: Any
) -> Work[ProbeRow]:
    from sbbf_tool.file.reuse import Reuse
    from sbbf_tool.operations.probe import probe as operation
    from sbbf_tool.reports.probe import ProbeRow

    options: dict[str, Any] = {"column": column, "values": values_of(values), "dialect": dialect, "keys": keys, "strict": strict, **more}
    return _reporting(ProbeRow, partial(operation, **options, reuse=Reuse()), (column,), options["values"])


def explain(
    column: str,
    value: object,
    *,
    engine_name: str | None = None,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    strict: bool = True,
) -> Work[ExplainRow]:
    from sbbf_tool.operations.explain import explain as operation
    from sbbf_tool.reports.explain import ExplainRow

    options: dict[str, Any] = {"column": column, "value": value, "engine_name": engine_name}
    work = partial(operation, **options, keys=keys, max_page_bytes=max_page_bytes, strict=strict)
    return _reporting(ExplainRow, work, (column,), (value,))


def verify(
    columns: Iterable[str] = (), *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None, strict: bool = True
) -> Work[VerifyRow]:
    from sbbf_tool.operations.verify import verify as operation
    from sbbf_tool.reports.verify import VerifyRow

    names = as_names(columns)
    request = Request("verify", names, keys is not None, _page_limit(max_page_bytes), strict)
    options: dict[str, Any] = {"columns": names, "keys": keys, "max_page_bytes": max_page_bytes, "strict": strict}
    work = partial(_report, partial(operation, **options))
    return Work(VerifyRow, work, reads_data=True, is_parallel=True, columns=names, request=request)


def _page_limit(max_page_bytes: MaxPageBytes) -> int | None:
    return max_page_bytes if max_page_bytes is None or isinstance(max_page_bytes, int) else max_page_bytes.max_page_bytes


def check(
    policy: Policy | PathPolicies, *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None, strict: bool = True, brief: bool = False
) -> Work[CheckRow]:
    """Check each file; with `brief`, rows are `BriefCheckRow`s."""
    from sbbf_tool.reports.findings import BriefCheckRow, CheckRow

    fields = partial(_check, policy=policy, brief=brief, keys=keys, max_page_bytes=max_page_bytes, strict=strict)
    request = Request("check", keys is not None, _page_limit(max_page_bytes), strict, policies=policy)
    row = BriefCheckRow if brief else CheckRow
    return Work(row, fields, reads_data=not policy.quick, is_parallel=True, columns=policy.required, request=request)


def _check(path: FileName, *, policy: Policy | PathPolicies, brief: bool, **options: Any) -> dict[str, object]:
    from sbbf_tool.operations.check import check, report_unreadable

    policy = policy.of(os.fspath(path))
    fields: dict[str, object] = {}
    try:
        report = check(path, policy, **options)
    except SbbfError as error:
        report, fields = report_unreadable(os.fspath(path), policy, error), failure(path, error)
    return {**fields, **(_shorten(report) if brief else {"report": report})}


def _shorten(report: CheckReport) -> dict[str, object]:
    """Return the report without the rules that have no findings, and the numbers of these; if no rule ran, with the reason of most."""
    from collections import Counter
    from dataclasses import replace

    from sbbf_tool.reports.findings import RuleCount

    rules = {finding.rule for finding in report.findings}
    counts = Counter(outcome.outcome for outcome in report.rules if outcome.rule not in rules)
    reasons = Counter(outcome.reason for outcome in report.rules)
    reason = reasons.most_common(1)[0][0] if counts.keys() == {"not run"} and not rules else None
    return {
        "report": replace(report, rules=tuple(outcome for outcome in report.rules if outcome.rule in rules)),
        "other_rules": tuple(RuleCount(outcome, reason, count) for outcome, count in counts.items()),
    }


def survey(queries: Iterable[Query] = (), *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None) -> Work[SurveyRow]:
    """Survey each file for `advise`; see `survey_of`."""
    from sbbf_tool.file.reuse import Reuse
    from sbbf_tool.reports.lake import SurveyRow

    return Work(SurveyRow, partial(_survey, queries=tuple(as_iterable(queries)), keys=keys, max_page_bytes=max_page_bytes, reuse=Reuse()))


def _survey(path: FileName, *, queries: tuple[Query, ...], keys: KeysLike, max_page_bytes: MaxPageBytes, reuse: Reuse) -> dict[str, object]:
    import pickle

    from sbbf_tool.advice.survey import survey

    return {"survey": pickle.dumps(survey(path, queries, keys, max_page_bytes, reuse))}


def survey_of(row: SurveyRow) -> FileSurvey:
    """Return the survey of a row whose status is `ok`."""
    import pickle

    assert row.survey is not None
    file_survey: FileSurvey = pickle.loads(row.survey)
    return file_survey


def add(spec: FilterSpec, edit: Edit, *, rebuild: Rebuild | None = None, strict: bool = True) -> Work[AddRow]:
    """Add missing filters to each file; `rebuild` and `strict` are as in `add_filters`."""
    from sbbf_tool.editing.choice import ensure_rebuild
    from sbbf_tool.reports.add import AddRow
    from sbbf_tool.runner.fill import fill_file

    ensure_rebuild(rebuild)
    request = Request("add-filter", (spec, rebuild, strict), edit.keys is not None, edit.limit.max_page_bytes)
    fields = partial(fill_file, spec=spec, edit=edit, rebuild=rebuild, strict=strict)
    return Work(AddRow, fields, reads_data=True, changes=True, is_parallel=True, request=request, publishes_together=edit.in_place)


def apply(declarations: Iterable[FilterSpec], edit: Edit, *, remove_undeclared: bool = False) -> Work[ApplyRow]:
    """Compare each file with the declared filters and, unless the edit is a dry run, give it those that it lacks."""
    from sbbf_tool.reports.apply import ApplyRow

    fields = partial(_apply, declarations=tuple(declarations), edit=edit, remove_undeclared=remove_undeclared)
    declared = fields.keywords["declarations"]
    # Runs that compare share the outcomes of files that are as declared with runs that change files.
    request = Request("apply", declared, remove_undeclared, edit.keys is not None, edit.limit.max_page_bytes, only_skipped=not edit.dry_run)
    return Work(ApplyRow, fields, reads_data=not edit.dry_run, changes=True, is_parallel=True, request=request)


def apply_policy(
    declarations: Iterable[FilterSpec],
    jobs: int | None = None,
    *,
    in_place: bool = False,
    dry_run: bool = False,
    remove_undeclared: bool = False,
    max_page_bytes: MaxPageBytes = None,
    **options: Any,
) -> Work[ApplyRow]:
    """Return `apply` as work, with the parameters of the function."""
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.page_limit import PageLimit

    edit = Edit(in_place=in_place, dry_run=dry_run or not in_place, limit=PageLimit.of(max_page_bytes, jobs), **options)
    return apply(declarations, edit, remove_undeclared=remove_undeclared)


def _apply(
    path: FileName,
    *,
    declarations: tuple[FilterSpec, ...],
    edit: Edit,
    remove_undeclared: bool,
    jobs: int = 1,
    progress: Progress | None = None,
) -> dict[str, object]:
    from dataclasses import replace

    from sbbf_tool.operations.apply import apply_to_file
    from sbbf_tool.reports.apply import NO_DECLARATION, NO_DEVIATION

    if not any(declaration.matches(path) for declaration in declarations):
        return {"status": SKIPPED, "reason": NO_DECLARATION}
    edit = replace(edit, jobs=jobs, progress=progress)
    report = apply_to_file(path, declarations, edit, remove_undeclared=remove_undeclared)
    if report.holds and report.old_bytes == report.new_bytes and not (report.filters or report.removals):
        return {"status": SKIPPED, "reason": NO_DEVIATION, "report": report}
    return {"report": report}


def remove(columns: Iterable[str] = (), **options: Any) -> Work[RemoveRow]:
    from sbbf_tool.operations.remove import remove_filters as operation
    from sbbf_tool.reports.remove import RemoveRow

    return _changing(RemoveRow, partial(operation, columns=as_names(columns), **options), is_parallel=False)


def resize(columns: Iterable[str] = (), **options: Any) -> Work[ResizeRow]:
    from sbbf_tool.operations.resize import resize_filters as operation
    from sbbf_tool.reports.resize import ResizeRow

    return _changing(ResizeRow, partial(operation, columns=as_names(columns), **options), is_parallel=False)


def repair(columns: Iterable[str] = (), **options: Any) -> Work[RepairRow]:
    from sbbf_tool.operations.repair import repair as operation
    from sbbf_tool.reports.repair import RepairRow

    return _changing(RepairRow, partial(operation, columns=as_names(columns), **options), is_parallel=True)
