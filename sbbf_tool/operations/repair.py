"""`repair`: fix the findings about a file's filters that a new footer can fix.

Each rule that `repair` can fix has two fixes: one reads the data and replaces the bad filter with a correct one, and the other changes only
the footer (sets the length or drops the filter). Bytes of the old file are never changed: truncating the file to its old length restores
dropped filters. No filter that a reader can safely use is lost.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.display import redact
from sbbf_tool.editing.build import ensure_buildable, mistake, place_of, report_of
from sbbf_tool.editing.edit import Edit, OpenEdit
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.file import interrupted
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.meter import Progress
from sbbf_tool.file.own_tail import hash_end
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile, ring_of
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.patch import ChunkKey, Patch
from sbbf_tool.parquet.splice import FilterPlace
from sbbf_tool.reports.findings import Evidence, Finding
from sbbf_tool.reports.repair import RepairReport, RepairStep
from sbbf_tool.rules.catalog import RULES
from sbbf_tool.rules.facts import PLAINTEXT, ChunkFacts, ColumnFacts, Reads, gather, locked_columns, unreadable_chunks
from sbbf_tool.rules.rule import Limits, Rule
from sbbf_tool.storage import places
from sbbf_tool.storage.inputs import ensure_path

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.storage.inputs import FileSystemLike


class FilterFix(IntEnum):
    """Change to one filter; if rules need several of these changes, the last one applies."""

    SET_LENGTH = 1
    DROP = 2
    REBUILD = 3

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


_SET_LENGTH, _DROP, _REBUILD = FilterFix

# The change for each rule, by the footer alone and by rebuilding; None leaves the filter unchanged.
FIXES: dict[str, tuple[FilterFix | None, FilterFix]] = {
    "missing-length": (_SET_LENGTH, _SET_LENGTH),
    "wrong-length": (_SET_LENGTH, _SET_LENGTH),
    "placeholder-offset": (_DROP, _DROP),
    "empty-boolean-filter": (_DROP, _DROP),
    "unreadable-filter": (_DROP, _REBUILD),
    "damaged-encrypted-filter": (_DROP, _REBUILD),
    "unknown-header": (_DROP, _REBUILD),
    "draft-dialect": (_DROP, _REBUILD),
    "empty-filter": (_DROP, _REBUILD),
    "false-negatives": (_DROP, _REBUILD),
    "hashed-as-text": (_DROP, _REBUILD),
    "hashed-at-wrong-width": (_DROP, _REBUILD),
    "wrong-block": (_DROP, _REBUILD),
    "hashed-as-draft": (_DROP, _REBUILD),
    "interval-not-normalised": (_DROP, _REBUILD),
    "int96-form-missing": (None, _REBUILD),
    "zero-form-missing": (None, _REBUILD),
    "overlapping-filter": (None, _REBUILD),
    "partial-block": (None, _REBUILD),
    "not-power-of-two": (None, _REBUILD),
    "under-64-bytes": (None, _REBUILD),
    "over-128-mib": (None, _REBUILD),
    "identical-blocks": (None, _REBUILD),
    "saturated": (None, _REBUILD),
}
_RULES = tuple(rule for rule in RULES if rule.name in FIXES)
_QUICK_RULES = tuple(rule for rule in _RULES if rule.reads < Reads.DATA)


def repair(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    drop: bool = False,
    quick: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    keys: KeysLike = None,
    jobs: int | None = None,
    max_page_bytes: MaxPageBytes = None,
    progress: Progress | None = None,
    cross_checks: CrossChecks | None = None,
    force: bool = False,
    strict: bool = True,
    filesystem: FileSystemLike | None = None,
) -> RepairReport:
    """Repair the filters of `columns` (if empty, of all columns), writing to `output` or `in_place`.

    Filters are first verified against the data, unless `quick`. Broken filters, and those that some readers refuse, are built again from
    the data where these can be read, and dropped where not; with `drop`, no filter is built: broken ones are dropped, and others stay. An
    append that a crash interrupted is undone in place. A file with nothing to repair is left unchanged, or is copied to `output`. A page
    whose header states more than `max_page_bytes` uncompressed bytes is not read.

    `strict` is as in `inspect`, `cross_checks` and `force` are as in `add_filters`: a filter that would still be saturated is not rebuilt
    without `force`.

    `filesystem` is refused, like an open file: give the path or URL of the file.

    Raises RefusedError, UnreadableError, UsageError, WriteError; the old file stays intact in every case.
    """
    ensure_path(path, filesystem)
    names = as_names(columns)
    limit, checks = PageLimit.of(max_page_bytes, jobs), cross_checks or CrossChecks()
    edit = Edit(output, in_place, False, dry_run, allow_table_files, keys, limit, jobs, progress, checks, force)
    if dry_run:
        name, target = os.fsdecode(path), edit.target_of(path)
        _, length = interrupted.undo(name, target, ring_of(name, keys), dry_run=True)
        if length is not None:
            with places.open_source(path) as source:
                sizes, hashes = (source.size, length), (hash_end(source, source.size), hash_end(source, length))
                return RepairReport(redact(path), redact(target), dry_run, *sizes, *hashes, truncated_to=length)
    with edit.open(path) as open_edit:
        file = open_edit.file
        if open_edit.truncated_to is not None:
            # The report has the field `truncated_to` for this.
            open_edit.warnings.clear()
        facts = _facts(file, choose_columns(file, names, strict=strict) or list(file.footer.columns), quick, progress)
        steps, remaining = _plan_steps(_QUICK_RULES if quick else _RULES, facts, drop)
        _ensure_allowed(file, steps)
        if steps:
            open_edit.ensure_replaceable()
        if not dry_run:
            open_edit.build({key: Sizing() for key, step in steps.items() if step.fix is FilterFix.REBUILD})
            steps = dict(_without_left_out(steps, open_edit))
        patch = open_edit.patch(
            drop=[key for key, step in steps.items() if step.fix is FilterFix.DROP],
            correct={key: place for key, step in steps.items() if (place := _place_with_length(step)) is not None},
        )
        report = partial(
            RepairReport,
            steps=tuple(_step_report(open_edit, patch, key, steps[key]) for key in sorted(steps)),
            named_columns=file.name_columns(names),
            remaining=tuple(remaining),
            needs_rebuild=_rules_to_rebuild(facts, remaining) if drop else (),
            unreadable=unreadable_chunks(facts),
            locked_columns=locked_columns(facts),
            truncated_to=open_edit.truncated_to,
            cross_checked=open_edit.cross_checked,
            not_cross_checked=open_edit.not_cross_checked,
            saturated_filters=tuple(open_edit.saturated_filters),
        )
        return open_edit.publish(patch, report, partial(_compare, open_edit, steps, patch))


def _facts(file: ParquetFile, columns: list[Column], quick: bool, progress: Progress | None) -> tuple[ColumnFacts, ...]:
    if quick:
        return gather(file, columns, Reads.FILTERS)
    from sbbf_tool.file.membership import verify_filter

    return gather(file, columns, Reads.DATA, verify_filter, progress=progress)


class _Step(NamedTuple):
    """Change to one filter, with the rules that need it and the facts that the rules found."""

    fix: FilterFix
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    stored: StoredFilter | None


def _plan_steps(rules: Iterable[Rule], columns: Iterable[ColumnFacts], drop: bool) -> tuple[dict[ChunkKey, _Step], list[Finding]]:
    """Return the step for each chunk that needs one, and the findings that the steps do not fully resolve."""
    steps: dict[ChunkKey, _Step] = {}
    unresolved: list[tuple[Rule, Finding, list[tuple[ChunkKey, ChunkFacts, Evidence]]]] = []
    for column in columns:
        chunks = {chunk.row_group: chunk for chunk in column.chunks}
        for rule in rules:
            finding = rule.find(column, Limits())
            unresolved_evidence = []
            for observation in finding.evidence if finding is not None else ():
                assert observation.row_group is not None, "a rule with a fix names the row group of each filter"
                chunk, key = chunks[observation.row_group], (observation.row_group, column.column.index)
                fix = _choose_fix(rule, column.column, chunk, drop)
                if fix is None:
                    unresolved_evidence.append((key, chunk, observation))
                else:
                    before = steps.get(key, _Step(fix, (), (), chunk.stored))
                    rules_and_facts = (*before.rules, rule.name), (*before.facts, observation.fact)
                    steps[key] = _Step(max(before.fix, fix), *rules_and_facts, chunk.stored)
            if finding is not None and unresolved_evidence:
                unresolved.append((rule, finding, unresolved_evidence))
    dropped = {key for key, step in steps.items() if step.fix >= FilterFix.DROP}
    return steps, [
        replace(finding, evidence=remaining)
        for rule, finding, evidence in unresolved
        if (remaining := tuple(_remaining_evidence(rule, evidence, dropped)))
    ]


def _remaining_evidence(
    rule: Rule, evidence: Iterable[tuple[ChunkKey, ChunkFacts, Evidence]], dropped: Collection[ChunkKey]
) -> Iterator[Evidence]:
    """Yield the evidence of a rule that dropping these filters does not resolve."""
    for key, chunk, observation in evidence:
        if key not in dropped and not _has_its_bytes_again(rule, chunk, dropped):
            yield observation


def _has_its_bytes_again(rule: Rule, chunk: ChunkFacts, dropped: Collection[ChunkKey]) -> bool:
    """Return whether a filter was verified and overlapped only filters that are dropped: then only the dropped filters were damaged."""
    is_verified = chunk.verification is not None and chunk.verification.is_verified
    return rule.name == "overlapping-filter" and is_verified and all(overlap.filter_of in dropped for overlap in chunk.overlaps)


def _choose_fix(rule: Rule, column: Column, chunk: ChunkFacts, drop: bool) -> FilterFix | None:
    footer_fix, data_fix = FIXES[rule.name]
    if chunk.encryption or chunk.module_defect == PLAINTEXT:
        # The modules cannot be decrypted, or the file has plaintext bytes that it must not have and that no new footer removes.
        return None
    is_verified = chunk.verification is not None and chunk.verification.is_verified
    if rule.name == "wrong-length" and not is_verified:
        # The length in the header may be the wrong one, and a filter of that length would lose rows.
        footer_fix, data_fix = None, FilterFix.REBUILD
    is_buildable = column.physical != "BOOLEAN" and not (chunk.verification is not None and chunk.verification.problem)
    return data_fix if is_buildable and not drop else footer_fix


def _rules_to_rebuild(columns: Iterable[ColumnFacts], remaining: Iterable[Finding]) -> tuple[str, ...]:
    """Return the rules with a remaining finding that rebuilding would repair."""
    chunks: Mapping[tuple[str | None, int], tuple[Column, ChunkFacts]] = {
        (column.name, chunk.row_group): (column.column, chunk) for column in columns for chunk in column.chunks
    }
    rules = {rule.name: rule for rule in _RULES}
    rules_to_rebuild = (
        finding.rule
        for finding in remaining
        for observation in finding.evidence
        if observation.row_group is not None
        and _choose_fix(rules[finding.rule], *chunks[finding.column, observation.row_group], drop=False) is not None
    )
    return tuple(dict.fromkeys(rules_to_rebuild))


def _ensure_allowed(file: ParquetFile, steps: Mapping[ChunkKey, _Step]) -> None:
    """Raise RefusedError if a step must not be taken."""
    if steps:
        check_changeable(file)
    for key, step in steps.items():
        if step.fix is FilterFix.REBUILD:
            ensure_buildable(file, key[0], file.footer.columns[key[1]])


def _without_left_out(steps: Mapping[ChunkKey, _Step], open_edit: OpenEdit) -> Iterator[tuple[ChunkKey, _Step]]:
    """Yield the steps; where the new filter is left out, a harmful old one is dropped, and any other stays."""
    for key, step in steps.items():
        if step.fix is not FilterFix.REBUILD or key in open_edit.built_filters:
            yield key, step
        elif any(FIXES[rule][0] is FilterFix.DROP for rule in step.rules):
            yield key, step._replace(fix=FilterFix.DROP)


def _place_with_length(step: _Step) -> FilterPlace | None:
    """Return the unchanged place of a filter with its true length."""
    if step.fix is not FilterFix.SET_LENGTH:
        return None
    assert step.stored is not None, "an unreadable filter is dropped"
    return FilterPlace(step.stored.place.offset, step.stored.length)


def _compare(open_edit: OpenEdit, steps: Mapping[ChunkKey, _Step], patch: Patch, fresh: ParquetFile) -> None:
    for key, step in steps.items():
        place = fresh.footer.chunk_meta(*key).stated_filter
        expected = patch.places.get(key) or _place_with_length(step) or (None, None)
        if place != tuple(expected):
            raise mistake(open_edit.file, f"the new footer does not state the planned filter of {place_of(open_edit.file, key)}")
    open_edit.ensure_matches_plan(patch, fresh, steps)


def _step_report(open_edit: OpenEdit, patch: Patch, key: ChunkKey, step: _Step) -> RepairStep:
    return RepairStep(
        row_group=key[0],
        column=open_edit.file.footer.columns[key[1]].name,
        fix=step.fix.words,
        rules=step.rules,
        facts=step.facts,
        new_filter=report_of(open_edit.file, patch, key, open_edit.built_filters[key]) if key in open_edit.built_filters else None,
    )
