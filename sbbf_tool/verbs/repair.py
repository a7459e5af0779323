"""`repair`: fix the findings about a file's filters that a new footer can fix.

Each rule that `repair` can fix has two fixes: one reads the data and replaces the bad filter with a
correct one, and the other changes only the footer (sets the length or drops the filter). Bytes of
the old file are never changed: truncating the file to its old length restores dropped filters. No
filter that a reader can safely use is lost.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Unpack

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.display import redact
from sbbf_tool.editing.build import ensure_buildable, mistake, place_of, report_of
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.open_edit import OpenEdit
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.file import interrupted
from sbbf_tool.file.key_ring import ring_of
from sbbf_tool.file.own_tail import hash_end
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen, opt, replace
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.patch import Patch
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.reports.change import BuiltFilter, ChangeReport, SaturatedFilter
from sbbf_tool.reports.findings import ERROR, Evidence, Finding
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.rules.catalog import RULES
from sbbf_tool.rules.facts import (
    PLAINTEXT,
    ChunkFacts,
    ColumnFacts,
    Reads,
    gather,
    locked_columns,
    unreadable_chunks,
)
from sbbf_tool.rules.rule import FilterFix, Limits, Rule
from sbbf_tool.storage import places
from sbbf_tool.verbs.verb import ChangingVerb, Needs

if TYPE_CHECKING:
    from sbbf_tool.file.table_file import FileName
    from sbbf_tool.verbs.verb import EditOptions


class RepairStep(Frozen):
    """Fix of one column chunk's filter that was applied or, in a dry run, would be applied."""

    row_group: int
    column: str
    fix: str
    """`set length`, `drop` or `rebuild`."""
    rules: tuple[str, ...]
    """Rules that found a defect of the filter."""
    facts: tuple[str, ...]
    """What each of these rules observed."""
    new_filter: BuiltFilter | None = None
    """The filter that replaces the old one."""


class AppliedFix(Frozen):
    """Row of a table of steps: a step, and the figures of its new filter, None if there is none."""

    row_group: int
    column: str
    fix: str
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    offset: int | None
    bitset_bytes: int | None
    fpp: float | None


class RepairReport(ChangeReport):
    _row = AppliedFix

    steps: tuple[RepairStep, ...] = ()
    remaining: tuple[Finding, ...] = ()
    """Findings that were not resolved: they need a new filter from the data, or a key."""
    needs_rebuild: tuple[str, ...] = ()
    """Rules of `remaining` whose findings new filters resolve, which `drop` does not build."""
    unreadable: tuple[str, ...] = ()
    """Chunks whose filters cannot be verified, because pages cannot be decoded: place and
    reason."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose filters were not checked, because their keys were not given; whether such a
    column has filters may be unknown."""
    truncated_to: int | None = None
    """Length of the file before an interrupted append, to which the file was truncated. A dry run
    then checks nothing else."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow also decoded, with equal values, because the tests do not cover
    the writer or there are no statistics."""
    not_cross_checked: int = 0
    """Column chunks that need a cross-check, but that pyarrow cannot decode."""
    saturated_filters: tuple[SaturatedFilter, ...] = ()
    """Filters that were left out because they would exclude hardly any value."""

    @property
    def only_removes(self) -> bool:
        return all(step.fix == FilterFix.DROP.words for step in self.steps)

    @property
    def is_clean(self) -> bool:
        """Whether there was nothing to do."""
        return not self.steps and self.truncated_to is None

    @property
    def is_sound(self) -> bool:
        """Whether no remaining finding is an error."""
        return not any(finding.severity == ERROR for finding in self.remaining)

    def _rows(self) -> Iterable[object]:
        for step in self.steps:
            new = step.new_filter
            size = (None, None, None) if new is None else (new.offset, new.bitset_bytes, new.fpp)
            yield AppliedFix(step.row_group, step.column, step.fix, step.rules, step.facts, *size)

    def _summary(self) -> str:
        return (
            f"{self.file}: {format_count(len(self.steps), 'filter')}, "
            f"{format_count(len(self.remaining), 'remaining finding')}"
        )


_RULES = tuple(rule for rule in RULES if rule.repairs is not None)
_HARMFUL = frozenset(
    rule.name for rule in _RULES if rule.repairs is not None and rule.repairs[0] is FilterFix.DROP
)
"""Rules by which a filter is dropped that cannot be rebuilt."""
_QUICK_RULES = tuple(rule for rule in _RULES if rule.reads < Reads.DATA)


class Repair(ChangingVerb[RepairReport]):
    """Repair the filters of `columns` (if empty, of all columns).

    Filters are first verified against the data, unless `quick`. Broken filters, and those that some
    readers refuse, are built again from the data where these can be read, and dropped where not;
    with `drop`, no filter is built: broken ones are dropped, and others stay. An append that a
    crash interrupted is undone in place. A file with nothing to repair is left unchanged, or is
    copied to the output. A filter that would still be saturated is not rebuilt unless forced.
    """

    name = "repair"
    operation = "REPAIR"
    report = RepairReport
    columns: Iterable[str] = opt("Only these columns", default=(), convert=as_names)
    drop: bool = opt("Build no filter: drop the broken ones", default=False)
    quick: bool = opt("Do not verify filters against the data", default=False)

    def needs(self) -> Needs:
        return Needs(data=True, threads=True)

    def before(self, path: FileName, edit: Edit) -> RepairReport | None:
        if not edit.dry_run:
            return None
        name, target = os.fsdecode(path), edit.target_of(path)
        _, length = interrupted.undo(name, target, ring_of(name, edit.keys), dry_run=True)
        if length is None:
            return None
        with places.open_source(path) as source:
            return RepairReport(
                file=redact(path),
                output=redact(target),
                dry_run=True,
                old_bytes=source.size,
                new_bytes=length,
                old_end_hash=hash_end(source, source.size),
                new_end_hash=hash_end(source, length),
                truncated_to=length,
            )

    def on(self, change: OpenEdit) -> RepairReport:
        file = change.file
        names = tuple(self.columns)
        if change.truncated_to is not None:
            # The report has the field `truncated_to` for this.
            change.warnings.clear()
        columns = choose_columns(file, names, strict=file.run.strict)
        facts = _facts(file, columns or list(file.footer.columns), self.quick)
        steps, remaining = _plan_steps(_QUICK_RULES if self.quick else _RULES, facts, self.drop)
        _ensure_allowed(file, steps)
        if steps:
            change.ensure_replaceable()
        if not change.edit.dry_run:
            to_build = [key for key, step in steps.items() if step.fix is FilterFix.REBUILD]
            change.build(dict.fromkeys(to_build, Sizing()))
            steps = dict(_without_left_out(steps, change))
        patch = _patch(change, steps)
        report = partial(
            RepairReport,
            steps=tuple(_report_steps(change, steps, patch)),
            named_columns=file.name_columns(names),
            remaining=tuple(remaining),
            needs_rebuild=_rules_to_rebuild(facts, remaining) if self.drop else (),
            unreadable=unreadable_chunks(facts),
            locked_columns=locked_columns(facts),
            truncated_to=change.truncated_to,
            cross_checked=change.cross_checked,
            not_cross_checked=change.not_cross_checked,
            saturated_filters=tuple(change.saturated_filters),
        )
        return change.publish(patch, report, partial(_compare, change, steps, patch))


def repair(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    drop: bool = False,
    quick: bool = False,
    strict: bool = True,
    max_page_bytes: MaxPageBytes = None,
    **options: Unpack[EditOptions],
) -> RepairReport:
    """Repair filters of one file, writing to `output` or `in_place`; see `Repair`, and `Edit` for
    the options."""
    edit = Edit(limit=PageLimit.of(max_page_bytes, options.get("jobs")), **options)
    return Repair(columns, drop, quick)(path, edit, strict=strict)


def _patch(change: OpenEdit, steps: Mapping[ChunkKey, _Step]) -> Patch:
    """Plan the bytes of the new file: built filters, and footers without the dropped ones."""
    drop = []
    correct = {}
    for key, step in steps.items():
        if step.fix is FilterFix.DROP:
            drop.append(key)
        place = _place_with_length(step)
        if place is not None:
            correct[key] = place
    return change.patch(drop=drop, correct=correct)


def _report_steps(
    change: OpenEdit, steps: Mapping[ChunkKey, _Step], patch: Patch
) -> Iterator[RepairStep]:
    columns = change.file.footer.columns
    for key in sorted(steps):
        step = steps[key]
        built_filter = change.built_filters.get(key)
        new_filter = None
        if built_filter is not None:
            new_filter = report_of(change.file, patch, key, built_filter)
        row_group, column = key
        name = columns[column].name
        yield RepairStep(row_group, name, step.fix.words, step.rules, step.facts, new_filter)


def _facts(file: ParquetFile, columns: list[Column], quick: bool) -> tuple[ColumnFacts, ...]:
    if quick:
        return gather(file, columns, Reads.FILTERS)
    from sbbf_tool.file.membership import verify_filter

    return gather(file, columns, Reads.DATA, verify_filter, progress=file.run.progress)


class _Step(NamedTuple):
    """Change to one filter, with the rules that need it and the facts that the rules found."""

    fix: FilterFix
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    stored: StoredFilter | None

    def add(self, fix: FilterFix, rule: str, fact: str) -> _Step:
        """Return the step that also does what another rule needs: the stronger of both fixes."""
        return self._replace(
            fix=max(self.fix, fix), rules=(*self.rules, rule), facts=(*self.facts, fact)
        )


def _plan_steps(
    rules: Iterable[Rule], columns: Iterable[ColumnFacts], drop: bool
) -> tuple[dict[ChunkKey, _Step], list[Finding]]:
    """Return the step for each chunk that needs one, and the findings that the steps do not fully
    resolve."""
    steps: dict[ChunkKey, _Step] = {}
    unresolved: list[tuple[Rule, Finding, list[tuple[ChunkKey, ChunkFacts, Evidence]]]] = []
    for column in columns:
        chunks = {chunk.row_group: chunk for chunk in column.chunks}
        for rule in rules:
            finding = rule.find(column, Limits())
            if finding is None:
                continue
            unresolved_evidence = []
            for observation in finding.evidence:
                row_group = observation.row_group
                assert row_group is not None, "a rule with a fix names the row group of each filter"
                chunk = chunks[row_group]
                key = (row_group, column.column.index)
                fix = _choose_fix(rule, column.column, chunk, drop)
                if fix is None:
                    unresolved_evidence.append((key, chunk, observation))
                else:
                    step = steps.get(key, _Step(fix, (), (), chunk.stored))
                    steps[key] = step.add(fix, rule.name, observation.fact)
            if unresolved_evidence:
                unresolved.append((rule, finding, unresolved_evidence))
    dropped = {key for key, step in steps.items() if step.fix >= FilterFix.DROP}
    remaining = []
    for rule, finding, evidence in unresolved:
        remaining_evidence = tuple(_remaining_evidence(rule, evidence, dropped))
        if remaining_evidence:
            remaining.append(replace(finding, evidence=remaining_evidence))
    return steps, remaining


def _remaining_evidence(
    rule: Rule,
    evidence: Iterable[tuple[ChunkKey, ChunkFacts, Evidence]],
    dropped: Collection[ChunkKey],
) -> Iterator[Evidence]:
    """Yield the evidence of a rule that dropping these filters does not resolve."""
    for key, chunk, observation in evidence:
        if key not in dropped and not _has_its_bytes_again(rule, chunk, dropped):
            yield observation


def _has_its_bytes_again(rule: Rule, chunk: ChunkFacts, dropped: Collection[ChunkKey]) -> bool:
    """Return whether a filter was verified and overlapped only filters that are dropped: then only
    the dropped filters were damaged."""
    is_verified = chunk.verification is not None and chunk.verification.is_verified
    return (
        rule.name == "overlapping-filter"
        and is_verified
        and all(overlap.filter_of in dropped for overlap in chunk.overlaps)
    )


def _choose_fix(rule: Rule, column: Column, chunk: ChunkFacts, drop: bool) -> FilterFix | None:
    assert rule.repairs is not None
    footer_fix, data_fix = rule.repairs
    if chunk.encryption or chunk.module_defect == PLAINTEXT:
        # The modules cannot be decrypted, or the file has plaintext bytes that it must not have and
        # that no new footer removes.
        return None
    is_verified = chunk.verification is not None and chunk.verification.is_verified
    if rule.name == "wrong-length" and not is_verified:
        # The length in the header may be the wrong one, and a filter of that length would lose
        # rows.
        footer_fix, data_fix = None, FilterFix.REBUILD
    if drop or column.physical == "BOOLEAN":
        return footer_fix
    is_readable = chunk.verification is None or not chunk.verification.problem
    return data_fix if is_readable else footer_fix


def _rules_to_rebuild(
    columns: Iterable[ColumnFacts], remaining: Iterable[Finding]
) -> tuple[str, ...]:
    """Return the rules with a remaining finding that rebuilding would repair."""
    chunks: dict[tuple[str | None, int], tuple[Column, ChunkFacts]] = {}
    for column in columns:
        for chunk in column.chunks:
            chunks[column.name, chunk.row_group] = (column.column, chunk)
    rules = {rule.name: rule for rule in _RULES}
    rules_to_rebuild = []
    for finding in remaining:
        for observation in finding.evidence:
            if observation.row_group is None or finding.rule in rules_to_rebuild:
                continue
            leaf, chunk = chunks[finding.column, observation.row_group]
            if _choose_fix(rules[finding.rule], leaf, chunk, drop=False) is not None:
                rules_to_rebuild.append(finding.rule)
    return tuple(rules_to_rebuild)


def _ensure_allowed(file: ParquetFile, steps: Mapping[ChunkKey, _Step]) -> None:
    """Raise RefusedError if a step must not be taken."""
    if steps:
        check_changeable(file)
    for key, step in steps.items():
        if step.fix is FilterFix.REBUILD:
            ensure_buildable(file, key[0], file.footer.columns[key[1]])


def _without_left_out(
    steps: Mapping[ChunkKey, _Step], open_edit: OpenEdit
) -> Iterator[tuple[ChunkKey, _Step]]:
    """Yield the steps; where the new filter is left out, a harmful old one is dropped, and any
    other stays."""
    for key, step in steps.items():
        if step.fix is not FilterFix.REBUILD or key in open_edit.built_filters:
            yield key, step
        elif not _HARMFUL.isdisjoint(step.rules):
            yield key, step._replace(fix=FilterFix.DROP)


def _place_with_length(step: _Step) -> FilterPlace | None:
    """Return the unchanged place of a filter with its true length."""
    if step.fix is not FilterFix.SET_LENGTH:
        return None
    assert step.stored is not None, "an unreadable filter is dropped"
    return FilterPlace(step.stored.place.offset, step.stored.length)


def _compare(
    open_edit: OpenEdit, steps: Mapping[ChunkKey, _Step], patch: Patch, fresh: ParquetFile
) -> None:
    for key, step in steps.items():
        place = fresh.footer.chunk_meta(*key).stated_filter
        expected = patch.places.get(key) or _place_with_length(step) or (None, None)
        if place != tuple(expected):
            raise mistake(
                open_edit.file,
                "the new footer does not state the planned filter of "
                f"{place_of(open_edit.file, key)}",
            )
    open_edit.ensure_matches_plan(patch, fresh, steps)
