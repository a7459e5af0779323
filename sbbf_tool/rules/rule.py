"""What a rule is: a name, how bad it is, what must be read for it, how to see it, and what fixes it.

A rule looks at one column over all row groups (`ColumnFacts`) and answers with what it saw, row group by row group. The sentence it
says is always the same; the numbers are in the evidence. The fix is a value that a caller can make or spell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import UsageError
from sbbf_tool.hints import Fix
from sbbf_tool.reports.findings import SEVERITIES, Evidence, Finding
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Reads


@dataclass(frozen=True, slots=True)
class Limits:
    """What the one who asks demands of filters, beyond what every filter owes; empty or None demands nothing."""

    require: tuple[str, ...] = ()
    """Columns that must have a filter in every row group, by their full names."""
    max_fpp: float | None = None
    max_bytes_share: float | None = None
    """Bytes of a column's filters for each byte of its data."""
    min_ndv: int | None = None
    min_chunk_bytes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "require", as_names(self.require))
        for name in ("max_fpp", "max_bytes_share", "min_ndv", "min_chunk_bytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name.replace('_', '-')} is {value}", hint="it must be above 0")
        if self.max_fpp is not None and self.max_fpp >= 1:
            raise UsageError(f"max-fpp is {self.max_fpp}", hint="it must be above 0 and below 1")

    def demands(self, name: str) -> bool:
        return getattr(self, name) not in (None, ())


Look = Callable[[ColumnFacts, Limits], Iterable[Evidence]]
MakeFix = Callable[[ColumnFacts, Limits], Fix | None]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    """Stable, in kebab case."""
    theme: str
    """The family of rules that it belongs to."""
    severity: str
    reads: Reads
    message: str
    """One sentence for somebody who sees it for the first time."""
    why: str
    """Who writes such filters, and who is hurt."""
    look: Look
    fix: MakeFix | None = None
    limit: str | None = None
    """The field of `Limits` without which the rule has nothing to say."""

    def find(self, column: ColumnFacts, limits: Limits) -> Finding | None:
        """What the rule finds wrong with a column; None where nothing is."""
        evidence = tuple(self.look(column, limits))
        if not evidence:
            return None
        return Finding(
            rule=self.name,
            severity=self.severity,
            file=column.file,
            column=column.name,
            message=self.message,
            evidence=evidence,
            fix=self.fix(column, limits) if self.fix and column.can_be_changed else None,
        )


def at_each_filter(see: Callable[[ChunkFacts], str | None]) -> Look:
    """The look of a rule that sees what it must in each filter for itself."""

    def look(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
        for chunk in column.filters:
            fact = see(chunk)
            if fact is not None:
                yield Evidence(chunk.row_group, fact)

    return look


def find_all(rules: Sequence[Rule], columns: Sequence[ColumnFacts], limits: Limits) -> tuple[Finding, ...]:
    """What the rules find, the worst first; findings of one severity by rule, then by column."""
    found = [finding for rule in rules for column in columns if (finding := rule.find(column, limits)) is not None]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def percent(ratio: float) -> str:
    """A ratio as a percentage of three significant digits."""
    return f"{ratio * 100:.3g} %"
