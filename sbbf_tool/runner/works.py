"""The verbs as work that a run does on each file. Work can be sent to other processes, and specifies the kind of row that it returns.

Each function returns the `Work` of one verb, and imports what the verb needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError
from sbbf_tool.reports.rows import OK, FileRow
from sbbf_tool.runner.failures import failure, row_of

if TYPE_CHECKING:
    from sbbf_tool.advice.queries import Query
    from sbbf_tool.advice.survey import FileSurvey
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.editing.filter_spec import FilterSpec
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.meter import Progress
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.file.reuse import Reuse
    from sbbf_tool.operations.check import Policy
    from sbbf_tool.reports.add import AddRow, PlanRow
    from sbbf_tool.reports.explain import ExplainRow
    from sbbf_tool.reports.findings import CheckRow
    from sbbf_tool.reports.inspect import InspectRow
    from sbbf_tool.reports.lake import SurveyRow
    from sbbf_tool.reports.lookup import LookupRow
    from sbbf_tool.reports.probe import ProbeRow
    from sbbf_tool.reports.remove import RemoveRow
    from sbbf_tool.reports.repair import RepairRow
    from sbbf_tool.reports.resize import ResizeRow
    from sbbf_tool.reports.standalone import StandaloneRow
    from sbbf_tool.reports.verify import VerifyRow
    from sbbf_tool.runner.path_policies import PathPolicies

Row = TypeVar("Row", bound=FileRow, covariant=True)


class Work(Generic[Row]):
    """The work of one verb on any file."""

    # Not a dataclass: creating one would delay the first command of a process.
    __slots__ = ("changes", "fields", "is_parallel", "reads_data", "row")

    def __init__(
        self,
        row: type[Row],
        fields: Callable[..., Mapping[str, object]],
        *,
        reads_data: bool = False,
        changes: bool = False,
        is_parallel: bool = False,
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

    def __call__(self, path: str, jobs: int = 1, progress: Progress | None = None) -> Row:
        """Return the row of one file; a failure is reported in the row."""
        options = {"jobs": jobs, "progress": progress} if self.is_parallel else {}
        return row_of(self.row, path, partial(self.fields, path, **options))


def _reporting(row: type[Row], operation: Callable[..., object]) -> Work[Row]:
    return Work(row, partial(_report, operation))


def _changing(row: type[Row], operation: Callable[..., object], *, is_parallel: bool) -> Work[Row]:
    return Work(row, partial(_report, operation), reads_data=True, changes=True, is_parallel=is_parallel)


def _report(operation: Callable[..., object], path: str, **options: object) -> dict[str, object]:
    return {"report": operation(path, **options)}


def inspect(columns: Iterable[str] = (), *, all_chunks: bool = False, keys: KeysLike = None) -> Work[InspectRow]:
    from sbbf_tool.operations.inspect import inspect as operation
    from sbbf_tool.reports.inspect import InspectRow

    return _reporting(InspectRow, partial(operation, columns=as_names(columns), all_chunks=all_chunks, keys=keys))


def inspect_standalone() -> Work[StandaloneRow]:
    from sbbf_tool.operations.standalone import inspect_standalone as operation
    from sbbf_tool.reports.standalone import StandaloneRow

    return _reporting(StandaloneRow, operation)


def probe(column: str, values: object, *, dialect: str | None = None, keys: KeysLike = None) -> Work[ProbeRow]:
    from sbbf_tool.operations.probe import probe as operation
    from sbbf_tool.reports.probe import ProbeRow

    return _reporting(ProbeRow, partial(operation, column=column, values=tuple(as_iterable(values)), dialect=dialect, keys=keys))


def look_up(column: str, values: object, *, dialect: str | None = None, keys: KeysLike = None) -> Work[LookupRow]:
    """Look up many values in one column: for each value, report only the row groups that may contain it."""
    from sbbf_tool.file.reuse import Reuse
    from sbbf_tool.reports.lookup import LookupRow
    from sbbf_tool.runner.lookup import probe_values as operation

    return _reporting(
        LookupRow, partial(operation, column=column, values=tuple(as_iterable(values)), dialect=dialect, keys=keys, reuse=Reuse())
    )


def explain(
    column: str, value: object, *, engine_name: str | None = None, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None
) -> Work[ExplainRow]:
    from sbbf_tool.operations.explain import explain as operation
    from sbbf_tool.reports.explain import ExplainRow

    options: dict[str, Any] = {"column": column, "value": value, "engine_name": engine_name}
    return _reporting(ExplainRow, partial(operation, **options, keys=keys, max_page_bytes=max_page_bytes))


def verify(columns: Iterable[str] = (), *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None) -> Work[VerifyRow]:
    from sbbf_tool.reports.verify import VerifyRow
    from sbbf_tool.runner.verify import VerifyFile

    return Work(VerifyRow, VerifyFile(as_names(columns), keys, max_page_bytes), reads_data=True, is_parallel=True)


def check(policy: Policy | PathPolicies, *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None) -> Work[CheckRow]:
    from sbbf_tool.reports.findings import CheckRow

    fields = partial(_check, policy=policy, keys=keys, max_page_bytes=max_page_bytes)
    return Work(CheckRow, fields, reads_data=not policy.quick, is_parallel=True)


def _check(path: str, *, policy: Policy | PathPolicies, **options: Any) -> dict[str, object]:
    from sbbf_tool.operations.check import check, report_unreadable

    policy = policy.of(path)
    try:
        return {"report": check(path, policy, **options)}
    except SbbfError as error:
        return {"report": report_unreadable(path, policy, error), **failure(path, error)}


def survey(queries: Iterable[Query] = (), *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None) -> Work[SurveyRow]:
    """Survey each file for `advise`; see `survey_of`."""
    from sbbf_tool.file.reuse import Reuse
    from sbbf_tool.reports.lake import SurveyRow

    return Work(SurveyRow, partial(_survey, queries=tuple(as_iterable(queries)), keys=keys, max_page_bytes=max_page_bytes, reuse=Reuse()))


def _survey(path: str, *, queries: tuple[Query, ...], keys: KeysLike, max_page_bytes: MaxPageBytes, reuse: Reuse) -> dict[str, object]:
    import pickle

    from sbbf_tool.advice.survey import survey

    return {"survey": pickle.dumps(survey(path, queries, keys, max_page_bytes, reuse))}


def survey_of(row: SurveyRow) -> FileSurvey:
    """Return the survey of a row whose status is `ok`."""
    import pickle

    assert row.survey is not None
    file_survey: FileSurvey = pickle.loads(row.survey)
    return file_survey


def add(spec: FilterSpec, edit: Edit) -> Work[AddRow]:
    """Add missing filters to each file."""
    from sbbf_tool.reports.add import AddRow
    from sbbf_tool.runner.fill import AddToFile

    return Work(AddRow, AddToFile(spec, edit), reads_data=True, changes=True, is_parallel=True)


def plan(spec: FilterSpec, edit: Edit) -> Work[PlanRow]:
    """Plan which filters each file would get, from its footer."""
    from sbbf_tool.reports.add import PlanRow

    return Work(PlanRow, partial(_plan, spec=spec, edit=edit), changes=True)


def _plan(path: str, *, spec: FilterSpec, edit: Edit) -> dict[str, object]:
    from sbbf_tool.reports.add import AddPlan
    from sbbf_tool.runner.plan import plan_file

    row = plan_file(path, spec, edit)
    report = AddPlan(redact(path), row.bytes, row.columns, row.filters, row.data_bytes) if row.status == OK else None
    return {"status": row.status, "reason": row.reason, "exit_code": row.exit_code, "error": row.error, "report": report}


def remove(columns: Iterable[str] = (), **options: Any) -> Work[RemoveRow]:
    from sbbf_tool.operations.remove import remove_filters as operation
    from sbbf_tool.reports.remove import RemoveRow

    return _changing(RemoveRow, partial(operation, columns=as_names(columns), **options), is_parallel=False)


def resize(columns: Iterable[str] = (), **options: Any) -> Work[ResizeRow]:
    from sbbf_tool.operations.resize import resize_filters as operation
    from sbbf_tool.reports.resize import ResizeRow

    return _changing(ResizeRow, partial(operation, columns=as_names(columns), **options), is_parallel=True)


def repair(columns: Iterable[str] = (), **options: Any) -> Work[RepairRow]:
    from sbbf_tool.operations.repair import repair as operation
    from sbbf_tool.reports.repair import RepairRow

    return _changing(RepairRow, partial(operation, columns=as_names(columns), **options), is_parallel=True)
