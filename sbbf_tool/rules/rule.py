"""The definition of a rule: a name, a severity, what the rule reads, how it detects a defect, and
how the defect is fixed.

A rule examines one column over all row groups (`ColumnFacts`) and returns evidence for each row
group, or it examines a whole file (`FileFacts`). Its message is always the same; the numbers are in
the evidence. The fix is a value that a caller can apply or print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.hints import Fix, suggest
from sbbf_tool.query_engines.verdicts import as_engines
from sbbf_tool.reports.findings import ERROR, SEVERITIES, Evidence, Finding
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.file_facts import FileFacts
from sbbf_tool.rules.filter_spec import FilterSpec, declared_columns


@dataclass(frozen=True, slots=True)
class Limits:
    """Requirements that the user sets, in addition to those for every filter; an empty or None
    field sets no requirement."""

    max_fpp: float | None = None
    max_bytes_share: float | None = None
    """Maximum bytes of a column's filters per byte of its data."""
    min_ndv: int | None = None
    min_chunk_bytes: int | None = None
    filters: tuple[FilterSpec, ...] = ()
    """Filters that files must have, with what FPP or size."""
    engines: tuple[str, ...] = ()
    """The query engines, or their releases, that read the files; all if empty. Rules of efficiency
    alone depend on them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "engines", as_engines(self.engines))
        specs = (self.filters,) if isinstance(self.filters, FilterSpec) else tuple(self.filters)
        object.__setattr__(self, "filters", specs)
        for name in ("max_fpp", "max_bytes_share", "min_ndv", "min_chunk_bytes"):
            value = getattr(self, name)
            if value is None:
                continue
            words = name.replace("_", " ")
            if not isinstance(value, int | float):
                raise UsageError(f"{words} must be a number, not {value!r}")
            if not value > 0:  # nor is NaN
                raise UsageError(f"{words} must be above 0, not {value}")
        if self.max_fpp is not None and self.max_fpp >= 1:
            raise UsageError(f"max fpp must be above 0 and below 1, not {self.max_fpp}")

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must have a filter in every row group."""
        return declared_columns(spec for spec in self.filters if spec.judge != "size")

    @property
    def judged(self) -> tuple[FilterSpec, ...]:
        """The specs that demand more of a filter than that it exists."""
        return tuple(spec for spec in self.filters if spec.judge != "existence")


Look = Callable[[ColumnFacts, Limits], Iterable[Evidence]]
LookAtFile = Callable[[FileFacts], Iterable[Evidence]]
MakeFix = Callable[[ColumnFacts, Limits], Fix | None]


@dataclass(frozen=True, slots=True)
class AnyRule:
    """What a catalog shows of a rule, also of one that an extension brings."""

    name: str
    """A stable name in kebab case."""
    group: str
    severity: str
    message: str
    """One sentence for a reader who sees the finding for the first time."""
    why: str
    """Which writers make such filters, and which readers they harm."""
    reads: Reads = Reads.FILTERS


class FilterFix(IntEnum):
    """Change to one filter; if rules need several of these changes, the last one applies."""

    SET_LENGTH = 1
    DROP = 2
    REBUILD = 3

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


SET_LENGTH = FilterFix.SET_LENGTH, FilterFix.SET_LENGTH
DROP = FilterFix.DROP, FilterFix.DROP
DROP_OR_REBUILD = FilterFix.DROP, FilterFix.REBUILD
REBUILD_ONLY = None, FilterFix.REBUILD


@dataclass(frozen=True, slots=True)
class Rule(AnyRule):
    look: Look | None = None
    """How the rule examines a column; None for a rule about the whole file."""
    look_at_file: LookAtFile | None = None
    fix: MakeFix | None = None
    limit: str | None = None
    """The field of `Limits` that must be set for the rule to run."""
    error_with: str | None = None
    """The field of `Limits` that makes the finding an error if it is set."""
    repairs: tuple[FilterFix | None, FilterFix] | None = None
    """What `repair` does to such a filter, by the footer alone (None leaves it), and if it may
    build filters; None if it does nothing."""

    def severity_in(self, limits: Limits) -> str:
        if self.error_with is not None and getattr(limits, self.error_with):
            return ERROR
        return self.severity

    def find(self, column: ColumnFacts, limits: Limits) -> Finding | None:
        """Return the rule's finding for a column; None without evidence."""
        if self.look is None:
            return None
        evidence = tuple(self.look(column, limits))
        if not evidence:
            return None
        fix = None
        if self.fix is not None and column.can_be_changed:
            fix = self.fix(column, limits)
        return Finding(
            rule=self.name,
            severity=self.severity_in(limits),
            file=column.file,
            column=column.name,
            message=self.message,
            evidence=evidence,
            fix=fix,
        )

    def find_in_file(self, file: FileFacts | None) -> Finding | None:
        """Return the rule's finding for a whole file, which has no fix; None without evidence."""
        if file is None or self.look_at_file is None:
            return None
        evidence = tuple(self.look_at_file(file))
        if not evidence:
            return None
        return Finding(self.name, self.severity, file.name, None, self.message, evidence)


def at_each_filter(examine: Callable[[ChunkFacts], str | None]) -> Look:
    """Build the `look` function of a rule that examines each filter by itself."""

    def look(column: ColumnFacts, limits: Limits) -> list[Evidence]:
        evidence = []
        for chunk in column.filters:
            fact = examine(chunk)
            if fact is not None:
                evidence.append(Evidence(chunk.row_group, fact))
        return evidence

    return look


def find_all(
    rules: Sequence[Rule],
    columns: Sequence[ColumnFacts],
    limits: Limits,
    file: FileFacts | None = None,
) -> tuple[Finding, ...]:
    """Return the findings of the rules, worst severity first, then by rule and by column; those
    about the whole file if `file` is given."""
    findings: list[Finding] = []
    examined = [column for column in columns if not column.is_bare]
    for rule in rules:
        results = [rule.find(column, limits) for column in examined]
        results.append(rule.find_in_file(file))
        findings += filter(None, results)
    removals = _list_removals(findings)
    for at, finding in enumerate(findings):
        removal = removals.get(finding.column)
        if finding.fix is not None and removal is not None:
            findings[at] = replace(finding, fix=removal)
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def _list_removals(findings: Iterable[Finding]) -> dict[str | None, Fix]:
    """Return by column the fix that removes its filters, and their bytes if a finding demands it:
    that undoes the other fixes of the column, and resolves their findings."""
    removals: dict[str | None, Fix] = {}
    for finding in findings:
        fix = finding.fix
        if fix is None or fix.verb != "remove_filters":
            continue
        present = removals.get(finding.column)
        if present is None or fix.compact or not present.compact:
            removals[finding.column] = fix
    return removals


def ensure_valid(names: Iterable[str], valid: Sequence[str], noun: str) -> None:
    """Raise UsageError if a name is not valid."""
    for name in names:
        if name not in valid:
            raise UsageError(f"unknown {noun} {name!r}", hint=suggest(name, valid))
