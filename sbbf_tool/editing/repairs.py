"""Which fix each filter with a finding gets, and which findings no fix resolves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from sbbf_tool.frozen import replace
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.reports.findings import Evidence, Finding
from sbbf_tool.rules.catalog import RULES
from sbbf_tool.rules.facts import PLAINTEXT, ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.rule import FilterFix, Limits, Rule

_RULES = {rule.name: rule for rule in RULES if rule.repairs is not None}


def _drops(rule: Rule) -> bool:
    """Return whether a filter with a finding of this rule is dropped if it cannot be rebuilt."""
    assert rule.repairs is not None
    footer_fix, _ = rule.repairs
    return footer_fix is FilterFix.DROP


_HARMFUL = frozenset(name for name, rule in _RULES.items() if _drops(rule))


class FilterStep(NamedTuple):
    """Change to one filter, with the rules that need it and the facts that the rules found."""

    fix: FilterFix
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    stored: StoredFilter | None

    @property
    def is_about_harm(self) -> bool:
        """Whether the filter must not stay."""
        return not _HARMFUL.isdisjoint(self.rules)

    def add(self, fix: FilterFix, rule: str, fact: str) -> FilterStep:
        """Return the step that also does what another rule needs: the stronger of both fixes."""
        return self._replace(
            fix=max(self.fix, fix), rules=(*self.rules, rule), facts=(*self.facts, fact)
        )


class _Observation(NamedTuple):
    """Evidence of a rule against one filter."""

    key: ChunkKey
    chunk: ChunkFacts
    evidence: Evidence


def plan_steps(
    columns: Iterable[ColumnFacts], *, drop: bool, quick: bool
) -> tuple[dict[ChunkKey, FilterStep], list[Finding]]:
    """Return the step for each chunk that needs one, and the findings that the steps do not fully
    resolve. With `drop`, no filter is built; if `quick`, only rules that need no data are run."""
    steps: dict[ChunkKey, FilterStep] = {}
    unresolved = []
    for column in columns:
        for rule in _RULES.values():
            if quick and rule.reads >= Reads.DATA:
                continue
            finding = rule.find(column, Limits())
            if finding is None:
                continue
            unresolved_observations = []
            for observation in _list_observations(column, finding):
                fix = _choose_fix(rule, column.column, observation.chunk, drop)
                if fix is None:
                    unresolved_observations.append(observation)
                    continue
                key, chunk, evidence = observation
                step = steps.get(key, FilterStep(fix, (), (), chunk.stored))
                steps[key] = step.add(fix, rule.name, evidence.fact)
            if unresolved_observations:
                unresolved.append((rule, finding, unresolved_observations))
    dropped = {key for key, step in steps.items() if step.fix >= FilterFix.DROP}
    remaining = []
    for rule, finding, observations in unresolved:
        evidence_left = tuple(_remaining_evidence(rule, observations, dropped))
        if evidence_left:
            remaining.append(replace(finding, evidence=evidence_left))
    return steps, remaining


def _list_observations(column: ColumnFacts, finding: Finding) -> Iterator[_Observation]:
    """Yield the evidence of a finding with the chunks that it is about."""
    chunks = {chunk.row_group: chunk for chunk in column.chunks}
    for evidence in finding.evidence:
        row_group = evidence.row_group
        assert row_group is not None, "a rule with a fix names the row group of each filter"
        yield _Observation((row_group, column.column.index), chunks[row_group], evidence)


def _remaining_evidence(
    rule: Rule, observations: Sequence[_Observation], dropped: Collection[ChunkKey]
) -> Iterator[Evidence]:
    """Yield the evidence of a rule that dropping these filters does not resolve."""
    for key, chunk, evidence in observations:
        if key not in dropped and not _has_its_bytes_again(rule, chunk, dropped):
            yield evidence


def _has_its_bytes_again(rule: Rule, chunk: ChunkFacts, dropped: Collection[ChunkKey]) -> bool:
    """Return whether a filter was verified and overlapped only filters that are dropped: then only
    the dropped filters were damaged."""
    if rule.name != "overlapping-filter" or not _is_verified(chunk):
        return False
    return all(overlap.filter_of in dropped for overlap in chunk.overlaps)


def _is_verified(chunk: ChunkFacts) -> bool:
    return chunk.verification is not None and chunk.verification.is_verified


def _choose_fix(rule: Rule, column: Column, chunk: ChunkFacts, drop: bool) -> FilterFix | None:
    """Return the fix for a finding of this rule on a filter; None if there is none."""
    assert rule.repairs is not None
    footer_fix, data_fix = rule.repairs
    if chunk.encryption or chunk.module_defect == PLAINTEXT:
        # The modules cannot be decrypted, or the file has plaintext bytes that it must not have and
        # that no new footer removes.
        return None
    if rule.name == "wrong-length" and not _is_verified(chunk):
        # The length in the header may be the wrong one, and a filter of that length would lose
        # rows.
        footer_fix = None
        data_fix = FilterFix.REBUILD
    if drop or column.physical == "BOOLEAN":
        return footer_fix
    is_readable = chunk.verification is None or not chunk.verification.problem
    return data_fix if is_readable else footer_fix


def rules_to_rebuild(
    columns: Iterable[ColumnFacts], remaining: Iterable[Finding]
) -> tuple[str, ...]:
    """Return the rules with a remaining finding that rebuilding would repair."""
    columns_by_name: dict[str | None, ColumnFacts] = {}
    for column in columns:
        columns_by_name[column.name] = column
    rules: dict[str, None] = {}
    for finding in remaining:
        column = columns_by_name[finding.column]
        for observation in _list_observations(column, finding):
            rule = _RULES[finding.rule]
            if _choose_fix(rule, column.column, observation.chunk, drop=False) is not None:
                rules[finding.rule] = None
    return tuple(rules)
