"""Gather the contents of one file for the HTML report: the reports of `inspect`, `check` and `explain`, and the numbers of pictures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sbbf_tool.advice.queries import Query
from sbbf_tool.extensions.report.contents import FileContents, QuerySteps
from sbbf_tool.extensions.report.file_contents import describe_contents
from sbbf_tool.extensions.report.query_steps import combine_steps
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.query_engines.use import as_engines
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.rules.rule import Limits
from sbbf_tool.verbs.check import Check
from sbbf_tool.verbs.explain import Explain
from sbbf_tool.verbs.inspect import Inspect
from sbbf_tool.verbs.verb import Needs, ReadingVerb, opt


class Gather(ReadingVerb[FileContents]):
    """Gather what the HTML report shows of a file; `detailed` is for the only file of a page."""

    name = "report"
    report = FileContents
    queries: Iterable[Query] = opt("The queries to explain", default=(), convert=tuple)
    detailed: bool = opt("Read what only the page of one file shows", default=True)
    quick: bool = opt("Leave out rules that read data", default=False)
    engine_names: Iterable[str] = opt("The query engines that read the files", default=(), convert=as_engines)

    def needs(self) -> Needs:
        columns = dict.fromkeys(condition.column for query in self.queries for condition in query.conditions)
        return Needs(data=not self.quick, threads=True, columns=tuple(columns))

    def on(self, file: ParquetFile) -> FileContents:
        report = Inspect(engine_names=self.engine_names).on(file)
        findings = Check(Policy(Limits(engines=tuple(self.engine_names)), quick=self.quick)).on(file)
        if not self.detailed:
            # The outcomes of rules are most of the bytes of a row, and a page about many files does not list them.
            findings = replace(findings, rules=())
        filters, parts = describe_contents(file, detailed=self.detailed)
        return FileContents(report, findings, filters, parts, tuple(_explain(file, query, self.engine_names) for query in self.queries))


def _explain(file: ParquetFile, query: Query, engines: Iterable[str]) -> QuerySteps:
    conditions = [[Explain(condition.column, value, engines).on(file) for value in condition.values] for condition in query.conditions]
    named_columns = (column for reports in conditions for report in reports for column in report.named_columns)
    problem = next((column.reason for column in named_columns if column.type is None), None)
    return replace(combine_steps(query, conditions), problem=problem)
