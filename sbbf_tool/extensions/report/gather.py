"""Gather the contents of one file for the HTML report: the reports of `inspect`, `check` and `explain`, and the numbers of pictures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sbbf_tool.advice.queries import Query
from sbbf_tool.extensions.report.contents import ContentsRow, FileContents, QuerySteps
from sbbf_tool.extensions.report.file_contents import describe_contents
from sbbf_tool.extensions.report.query_steps import combine_steps
from sbbf_tool.operations.check import check
from sbbf_tool.operations.explain import explain
from sbbf_tool.operations.inspect import inspect
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.runner.works import Work

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.meter import Progress
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.file.table_file import FileName


def gather_contents(
    queries: Iterable[Query] = (),
    *,
    detailed: bool = True,
    quick: bool = False,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    strict: bool = True,
) -> Work[ContentsRow]:
    """Gather what the HTML report shows of each file."""
    parsed_queries = tuple(queries)
    columns = tuple(dict.fromkeys(condition.column for query in parsed_queries for condition in query.conditions))
    work = _GatherContents(parsed_queries, detailed, quick, keys, max_page_bytes, strict)
    return Work(ContentsRow, work, reads_data=not quick, is_parallel=True, columns=columns)


@dataclass(frozen=True)
class _GatherContents:
    """The contents of a file, as work; `detailed` is for the only file of a page."""

    queries: tuple[Query, ...] = ()
    detailed: bool = True
    quick: bool = False
    """Whether rules that read data are left out."""
    keys: KeysLike = field(default=None, repr=False)
    max_page_bytes: MaxPageBytes = None
    strict: bool = True

    def __call__(self, path: FileName, jobs: int = 1, progress: Progress | None = None) -> dict[str, object]:
        report = inspect(path, keys=self.keys)
        policy = Policy(quick=self.quick)
        findings = check(path, policy, keys=self.keys, max_page_bytes=self.max_page_bytes, jobs=jobs, progress=progress, strict=self.strict)
        filters, parts = describe_contents(path, detailed=self.detailed, keys=self.keys)
        if not self.detailed:
            # The outcomes of rules are most of the bytes of a row, and a page about many files does not list them.
            findings = replace(findings, rules=())
        queries = tuple(self._explain(path, query) for query in self.queries)
        return {"report": FileContents(report, findings, filters, parts, queries)}

    def _explain(self, path: FileName, query: Query) -> QuerySteps:
        options: dict[str, Any] = {"keys": self.keys, "max_page_bytes": self.max_page_bytes, "strict": self.strict}
        conditions = [[explain(path, condition.column, value, **options) for value in condition.values] for condition in query.conditions]
        named_columns = (column for reports in conditions for report in reports for column in report.named_columns)
        problem = next((column.reason for column in named_columns if column.type is None), None)
        return replace(combine_steps(query, conditions), problem=problem)
