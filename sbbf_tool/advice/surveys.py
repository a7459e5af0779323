"""The totals of the surveys of many files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sbbf_tool.advice.folds import Folds
from sbbf_tool.advice.queries import Query, QueryCounts
from sbbf_tool.advice.survey import FileSurvey, Totals
from sbbf_tool.advice.verdicts import NO_QUERY, judge_without_data
from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.query_engines.verdicts import Use


class Surveys:
    """Totals of the files, by column and by query; `fpp` is the target. Raises UnreadableError if no file can be read."""

    def __init__(
        self, names: tuple[str, ...], surveys: Iterable[tuple[str, FileSurvey | SbbfError]], queries: Sequence[Query], fpp: float
    ) -> None:
        self._fpp = fpp
        self.totals: dict[tuple[str, str], Totals] = {}
        self.counts = [QueryCounts() for _ in queries]
        self.unreadable: list[SbbfError] = []
        self.files = self.row_groups = self.bytes = 0
        self.most_row_groups = 0
        """Row groups of the file that has the most."""
        for path, survey in surveys:
            if isinstance(survey, SbbfError):
                if isinstance(survey, UsageError) or names == (path,):
                    raise survey
                self.unreadable.append(survey)
                continue
            self._add(path, survey)
        if self.unreadable and not self.files:
            raise UnreadableError("no file can be read", file=", ".join(map(redact, names)), hint=str(self.unreadable[0]))
        for query, counts in zip(queries, self.counts, strict=True):
            for column in counts.missing:
                self._refuse_missing_column(query, column)

    def _add(self, path: str, survey: FileSurvey) -> None:
        for column in survey.columns:
            key = column.column.name, column.column.type_name
            self.totals.setdefault(key, Totals(column.column, Folds(self._fpp))).add(path, column, survey.footer_bytes)
        for counts, file_counts in zip(self.counts, survey.queries, strict=True):
            counts.add(file_counts, first=not self.files)
        self.files += 1
        self.row_groups += survey.row_groups
        self.most_row_groups = max(self.most_row_groups, survey.row_groups)
        self.bytes += survey.bytes

    def _refuse_missing_column(self, query: Query, column: str) -> None:
        """Raise a UsageError that suggests similar names, because no file has the column."""
        try:
            find_column([totals.column for totals in self.totals.values()], column)
        except UsageError as error:
            raise error.at(place=f"query {query.text!r}") from None

    def estimate_share(self, totals: Totals) -> float:
        """Estimate the share of row groups that min and max leave: for its queries or, without any, for a value in a row group's range."""
        name = totals.column.name
        queries = [counts for counts in self.counts if name in counts.row_groups_by_column]
        shares = [counts.after_statistics_by_column[name] / counts.row_groups_by_column[name] for counts in queries]
        return sum(shares) / len(shares) if shares else totals.share_after_statistics

    def judge(self, totals: Totals, use: Use) -> str | None:
        """Call `judge_without_data` for a column that any query uses, or if there are no queries; return why it is useless otherwise."""
        if self.counts and not any(totals.column.name in counts.row_groups_by_column for counts in self.counts):
            return NO_QUERY
        return judge_without_data(totals, use, self.estimate_share(totals) * totals.row_groups, has_queries=bool(self.counts))
