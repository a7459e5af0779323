"""Totals of the contents of many files, in memory that does not grow with their number."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from math import floor, log10

from sbbf_tool.advice.totals import Folds
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.bloom.sizing import SATURATED_FPP
from sbbf_tool.extensions.report.contents import FileContents, QuerySteps
from sbbf_tool.extensions.report.filter_figures import dots_of
from sbbf_tool.extensions.report.pictures.rates import Dots
from sbbf_tool.file.partitions import partition_values
from sbbf_tool.reports.findings import ERROR, SEVERITIES, WARNING, Finding
from sbbf_tool.rules import correctness
from sbbf_tool.rules.catalog import GROUPS, RULES
from sbbf_tool.verbs.inspect import FilterReport, InspectReport

# What is kept one by one; further columns and partitions are added up.
MOST_COLUMNS = 200
MOST_PARTITIONS = 400
MOST_FILES = 20
MOST_TILES = 2000
MORE_COLUMNS = "(further columns)"
MORE_PARTITIONS = "(further partitions)"
LOWEST_DECADE = -9


@dataclass(slots=True)
class Sums:
    """A column in all files, in one partition, or in an earlier run."""

    filters: int = 0
    bytes: int = 0
    measured_filters: int = 0
    fpp_sum: float = 0.0
    worst_fpp: float | None = None
    deciles: Counter[int] = field(default_factory=Counter)
    """Filters by tenths of bits set."""

    def add(self, row: FilterReport) -> None:
        """Add a filter, whose bits may be unknown."""
        self.filters += row.unreadable is None
        self.bytes += _size_of(row)
        if row.estimated_fpp is not None and row.fill_ratio is not None:
            self.measured_filters += 1
            self.fpp_sum += row.estimated_fpp
            self.worst_fpp = max(self.worst_fpp or 0.0, row.estimated_fpp)
            self.deciles[min(9, int(row.fill_ratio * 10))] += 1

    @property
    def mean_fpp(self) -> float | None:
        return self.fpp_sum / self.measured_filters if self.measured_filters else None


@dataclass(slots=True)
class Partition:
    files: int = 0
    row_groups: int = 0
    columns: dict[str, Sums] = field(default_factory=dict)


@dataclass(slots=True)
class RuleSum:
    severity: str
    message: str
    example: str
    findings: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True, order=True)
class FileRank:
    """What decides which files are the worst."""

    errors: int
    warnings_by_group: tuple[int, ...]
    """In the order of the groups of rules: what loses rows weighs more than what costs bytes."""
    worst_fpp: float
    name: str
    filters: int = field(compare=False)
    bytes: int = field(compare=False)


@dataclass(slots=True)
class QuerySum:
    """One query over all files."""

    row_groups: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """Row groups by step, per engine; the empty name is the file without its filters."""
    tiles: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Step and name of each row group, while there are few."""
    problems: int = 0
    first_problem: str | None = None

    def add(self, file: str, query: QuerySteps) -> None:
        if query.problem is not None:
            self.problems += 1
            self.first_problem = self.first_problem or query.problem
        self.row_groups += query.row_groups
        for group in query.engines:
            for engine in group.engines or ("",):
                self._add_steps(file, engine, group.steps)

    def _add_steps(self, file: str, engine: str, steps: tuple[str, ...]) -> None:
        self.counts.setdefault(engine, Counter()).update(steps)
        tiles = self.tiles.setdefault(engine, [])
        if self.row_groups > MOST_TILES:
            tiles.clear()
            return
        for number, step in enumerate(steps):
            tiles.append((step, f"{file}, row group {number}"))


class LakeTotals:
    """Totals of the added files."""

    def __init__(self) -> None:
        self.files = 0
        self.bytes = 0
        self.rows = 0
        self.row_groups = 0
        self.filters = 0
        self.footer_bytes = 0
        self.filter_bytes = 0
        self.unreferenced_bytes = 0
        self.unreadable_filters = 0
        self.columns: dict[str, Sums] = {}
        self.folds: dict[str, Folds] = {}
        self.partitions: dict[str, Partition] = {}
        self.decades: Counter[int] = Counter()
        """Filters by the power of ten of their rate; 1 for a rate above a half."""
        self.rules: dict[tuple[str, str], RuleSum] = {}
        self.queries: dict[str, QuerySum] = {}
        self.dots = Dots()
        self.locked_files = 0
        self._worst: list[FileRank] = []

    def add(self, contents: FileContents) -> None:
        """Add a file."""
        report = contents.inspect
        self.add_report(report)
        values = {}
        for detail in contents.filters:
            values[detail.row_group, detail.column] = detail.values
            column = detail.column if detail.column in self.columns else MORE_COLUMNS
            folds = self.folds.setdefault(column, Folds(DEFAULT_FPP))
            sizes = [(fold.bytes, fold.fpp) for fold in detail.sizes]
            folds.add(tuple(sizes))
        for dot in dots_of(report.filters, values):
            self.dots.add(dot)
        self._add_findings(contents)
        for query in contents.queries:
            self.queries.setdefault(query.query, QuerySum()).add(report.file, query)

    def add_report(self, report: InspectReport) -> None:
        """Add what `inspect` states of a file."""
        self.files += 1
        self.bytes += report.file_bytes
        self.rows += report.rows
        self.row_groups += report.row_groups
        self.footer_bytes += report.footer_bytes
        for gap in report.unreferenced:
            self.unreferenced_bytes += gap.length
        self.locked_files += bool(report.locked_columns)
        partition = self._partition(partition_of(report.file))
        partition.files += 1
        partition.row_groups += report.row_groups
        for row in report.filters:
            if row.has_filter:
                self._add_filter(row, partition)

    def _partition(self, name: str) -> Partition:
        """Return the partition of a name, or the one that further partitions share."""
        if name not in self.partitions and len(self.partitions) >= MOST_PARTITIONS:
            name = MORE_PARTITIONS
        return self.partitions.setdefault(name, Partition())

    def _add_filter(self, row: FilterReport, partition: Partition) -> None:
        column = row.column
        if column not in self.columns and len(self.columns) >= MOST_COLUMNS:
            column = MORE_COLUMNS
        self.filters += 1
        self.filter_bytes += _size_of(row)
        self.unreadable_filters += row.unreadable is not None
        self.columns.setdefault(column, Sums()).add(row)
        partition.columns.setdefault(column, Sums()).add(row)
        if row.estimated_fpp is not None:
            self.decades[_decade_of(row.estimated_fpp)] += 1

    def _add_findings(self, contents: FileContents) -> None:
        by_rule: dict[tuple[str, str], list[Finding]] = {}
        for finding in contents.check.findings:
            by_rule.setdefault((finding.severity, finding.rule), []).append(finding)
        for (severity, name), findings in by_rule.items():
            first = RuleSum(severity, findings[0].message, contents.inspect.file)
            rule = self.rules.setdefault((severity, name), first)
            rule.findings += len(findings)
            rule.files += 1
        rank = _rank(contents)
        if len(self._worst) < MOST_FILES:
            heappush(self._worst, rank)
        elif rank > self._worst[0]:
            heapreplace(self._worst, rank)

    @property
    def loses_rows(self) -> bool:
        """Whether filters or statistics of a file exclude values that it holds."""
        names = {rule.name for rule in correctness.RULES}
        return any(severity == ERROR and name in names for severity, name in self.rules)

    def worst_files(self) -> list[FileRank]:
        """Return the files with the most errors, then warnings, then the worst rate."""
        return sorted(self._worst, reverse=True)

    def findings_by_rule(self) -> Iterator[tuple[str, RuleSum]]:
        """Yield rules with findings, the most severe first."""

        def order(item: tuple[tuple[str, str], RuleSum]) -> tuple[int, int, str]:
            (severity, name), rule = item
            return SEVERITIES.index(severity), -rule.findings, name

        for (_, name), rule in sorted(self.rules.items(), key=order):
            yield name, rule


def _rank(contents: FileContents) -> FileRank:
    report = contents.inspect
    groups = {rule.name: rule.group for rule in RULES}
    errors = 0
    warnings: Counter[str] = Counter()
    for finding in contents.check.findings:
        if finding.severity == ERROR:
            errors += 1
        elif finding.severity == WARNING:
            warnings[groups[finding.rule]] += 1
    filters = 0
    worst_fpp = 0.0
    for row in report.filters:
        filters += row.has_filter
        worst_fpp = max(worst_fpp, row.estimated_fpp or 0.0)
    return FileRank(
        errors=errors,
        warnings_by_group=tuple(warnings[group] for group in GROUPS),
        worst_fpp=worst_fpp,
        name=report.file,
        filters=filters,
        bytes=report.file_bytes,
    )


def _size_of(row: FilterReport) -> int:
    return (row.header_bytes or 0) + (row.bitset_bytes or 0)


def partition_of(path: str) -> str:
    """Return the partition of a file by the folders of its path, such as `day=2026-01-31`, or its
    folder if it has none."""
    parts = []
    for name, value in partition_values(path).items():
        parts.append(f"{name}={'null' if value is None else value}")
    return "/".join(parts) or os.path.dirname(path) or "."


def _decade_of(fpp: float) -> int:
    if fpp > SATURATED_FPP:
        return 1
    return max(LOWEST_DECADE, floor(log10(fpp))) if fpp > 0 else LOWEST_DECADE
