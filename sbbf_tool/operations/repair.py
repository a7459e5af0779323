"""`repair`: fix what the rules find wrong with a file's filters, where a new footer can.

Each rule that `repair` can fix has two fixes: one changes only the footer (state the length, drop the filter), the other reads the data
and replaces bad filters by correct ones. Bytes of the old file are never changed: a dropped filter is still there after a cut back to the
old length, and no filter that a reader may safely use is lost.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.display import redact
from sbbf_tool.editing.build import Progress, Sizing, ensure_buildable, mistake, place_of, report_of
from sbbf_tool.editing.edit import Edit, OpenEdit
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import RefusedError
from sbbf_tool.file import interrupted
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile, ring_of
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.footer import FilterPlace
from sbbf_tool.parquet.patch import ChunkKey, Patch
from sbbf_tool.reports.findings import Evidence, Finding
from sbbf_tool.reports.repair import RepairReport, RepairStep
from sbbf_tool.rules import secrecy, structure, truth, worth
from sbbf_tool.rules.facts import PLAINTEXT, ChunkFacts, ColumnFacts, Reads, gather, unread_chunks
from sbbf_tool.rules.rule import Limits, Rule

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven


class Treatment(IntEnum):
    """Change of one filter; where rules need several of these, the last applies."""

    STATE_LENGTH = 1
    DROP = 2
    REBUILD = 3

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


_STATE, _DROP, _REBUILD = Treatment

# By rule: without and with rebuilding; None leaves the filter as it is.
TREATMENTS: dict[str, tuple[Treatment | None, Treatment]] = {
    "missing-length": (_STATE, _STATE),
    "wrong-length": (_STATE, _STATE),
    "offset-means-none": (_DROP, _DROP),
    "empty-boolean-filter": (_DROP, _DROP),
    "unreadable-filter": (_DROP, _REBUILD),
    "damaged-encrypted-filter": (_DROP, _REBUILD),
    "unknown-header": (_DROP, _REBUILD),
    "draft-dialect": (_DROP, _REBUILD),
    "empty-filter": (_DROP, _REBUILD),
    "values-missed": (_DROP, _REBUILD),
    "hashed-as-text": (_DROP, _REBUILD),
    "hashed-at-wrong-width": (_DROP, _REBUILD),
    "wrong-block": (_DROP, _REBUILD),
    "hashed-as-draft": (_DROP, _REBUILD),
    "interval-not-normalised": (_DROP, _REBUILD),
    "int96-stored-form-only": (None, _REBUILD),
    "one-zero-only": (None, _REBUILD),
    "overlapping-filter": (None, _REBUILD),
    "ragged-bitset": (None, _REBUILD),
    "not-power-of-two": (None, _REBUILD),
    "under-64-bytes": (None, _REBUILD),
    "over-128-mib": (None, _REBUILD),
    "identical-blocks": (None, _REBUILD),
    "saturated": (None, _REBUILD),
}
_RULES = tuple(rule for rule in (*truth.RULES, *structure.RULES, *secrecy.RULES, *worth.RULES) if rule.name in TREATMENTS)
_QUICK_RULES = tuple(rule for rule in _RULES if rule.reads < Reads.DATA)


def repair(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    rebuild: bool = False,
    quick: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    keys: KeysGiven = None,
    jobs: int | None = None,
    max_page_bytes: MaxPageBytes = None,
    progress: Progress | None = None,
    cross_checks: CrossChecks | None = None,
) -> RepairReport:
    """Repair the filters of `columns` (of all where empty), writing to `output` or `in_place`.

    Filters are first verified against the data, unless `quick`. `rebuild` replaces filters that would be dropped, and correct ones of
    little use, by filters built from the data. An append that a crash interrupted is undone in place. A file with nothing to repair stays
    as it is, or is copied to `output`. A page that states more than `max_page_bytes` uncompressed bytes is not read.

    `cross_checks` is as in `add_filters`.

    Raises RefusedError, UnreadableError, UsageError, WriteError; the old file stays intact in every case.
    """
    limit, checks = PageLimit.of(max_page_bytes, jobs), cross_checks or CrossChecks()
    edit = Edit(output, in_place, False, dry_run, allow_table_files, keys, limit, jobs, progress, checks)
    if dry_run:
        name, target = os.fsdecode(path), edit.target_of(path)
        length = interrupted.finish(name, ring_of(name, keys), changes=False).cut_back_to
        if length is not None:
            return RepairReport(redact(path), redact(target), dry_run, os.stat(path).st_size, length, cut_back_to=length)
    with edit.open(path) as opened:
        file = opened.file
        if opened.cut_back_to is not None:
            # The report has the field `cut_back_to` for it.
            opened.warnings.clear()
        facts = _facts(file, choose_columns(file, columns) or list(file.footer.columns), quick)
        steps, left = _prescribe(_QUICK_RULES if quick else _RULES, facts, rebuild)
        _ensure_allowed(file, steps)
        if steps:
            opened.ensure_replaceable()
        opened.build({key: Sizing() for key, step in steps.items() if step.treatment is Treatment.REBUILD})
        patch = opened.patch(
            drop=[key for key, step in steps.items() if step.treatment is Treatment.DROP],
            correct={key: place for key, step in steps.items() if (place := _stated(step)) is not None},
        )
        report = partial(
            RepairReport,
            steps=tuple(_step_report(opened, patch, key, steps[key]) for key in sorted(steps)),
            left=tuple(left),
            takes_rebuild=() if rebuild else _takes_rebuild(facts, left),
            unproven=unread_chunks(facts),
            cut_back_to=opened.cut_back_to,
            cross_checked=opened.cross_checked,
            not_cross_checked=opened.not_cross_checked,
        )
        return opened.publish(patch, report, partial(_compare, opened, steps, patch))


def _facts(file: ParquetFile, columns: list[Column], quick: bool) -> tuple[ColumnFacts, ...]:
    if quick:
        return gather(file, columns, Reads.FILTERS)
    from sbbf_tool.file.membership import prove

    return gather(file, columns, Reads.DATA, prove)


class _Step(NamedTuple):
    """Change of one filter, with the rules that need it and the facts that they found."""

    treatment: Treatment
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    stored: StoredFilter | None


def _prescribe(rules: Iterable[Rule], columns: Iterable[ColumnFacts], rebuild: bool) -> tuple[dict[ChunkKey, _Step], list[Finding]]:
    """Return the step for each chunk that needs one, and the findings that the steps do not resolve everywhere."""
    steps: dict[ChunkKey, _Step] = {}
    left: list[tuple[Rule, Finding, list[tuple[ChunkKey, ChunkFacts, Evidence]]]] = []
    for column in columns:
        chunks = {chunk.row_group: chunk for chunk in column.chunks}
        for rule in rules:
            finding = rule.find(column, Limits())
            uncured = []
            for seen in finding.evidence if finding is not None else ():
                assert seen.row_group is not None, "a rule with a treatment speaks of filters, one by one"
                chunk, key = chunks[seen.row_group], (seen.row_group, column.column.index)
                treatment = _treatment(rule, column.column, chunk, rebuild)
                if treatment is None:
                    uncured.append((key, chunk, seen))
                else:
                    before = steps.get(key, _Step(treatment, (), (), chunk.stored))
                    rules_and_facts = (*before.rules, rule.name), (*before.facts, seen.fact)
                    steps[key] = _Step(max(before.treatment, treatment), *rules_and_facts, chunk.stored)
            if finding is not None and uncured:
                left.append((rule, finding, uncured))
    gone = {key for key, step in steps.items() if step.treatment >= Treatment.DROP}
    return steps, [
        replace(finding, evidence=tuple(seen for _, _, seen in still))
        for rule, finding, uncured in left
        if (still := [one for one in uncured if one[0] not in gone and not _has_its_bytes_again(rule, one[1], gone)])
    ]


def _has_its_bytes_again(rule: Rule, chunk: ChunkFacts, gone: Collection[ChunkKey]) -> bool:
    """Return whether a filter was verified and overlapped only filters that are dropped: then those were the damaged ones."""
    is_proven = chunk.proof is not None and chunk.proof.is_proven
    return rule.name == "overlapping-filter" and is_proven and all(overlap.filter_of in gone for overlap in chunk.overlaps)


def _treatment(rule: Rule, column: Column, chunk: ChunkFacts, rebuild: bool) -> Treatment | None:
    light, thorough = TREATMENTS[rule.name]
    if chunk.encryption or chunk.sealing == PLAINTEXT:
        # Encrypted modules that cannot be decrypted; or plaintext bytes that should not be in the file, which no new footer removes.
        return None
    is_buildable = column.physical != "BOOLEAN" and not (chunk.proof is not None and chunk.proof.unproven)
    return thorough if rebuild and is_buildable else light


def _takes_rebuild(columns: Iterable[ColumnFacts], left: Iterable[Finding]) -> tuple[str, ...]:
    """Return the rules with a remaining finding that rebuilding would repair."""
    chunks: Mapping[tuple[str | None, int], tuple[Column, ChunkFacts]] = {
        (column.name, chunk.row_group): (column.column, chunk) for column in columns for chunk in column.chunks
    }
    rules = {rule.name: rule for rule in _RULES}
    repaired = (
        finding.rule
        for finding in left
        for seen in finding.evidence
        if seen.row_group is not None and _treatment(rules[finding.rule], *chunks[finding.column, seen.row_group], rebuild=True) is not None
    )
    return tuple(dict.fromkeys(repaired))


def _ensure_allowed(file: ParquetFile, steps: Mapping[ChunkKey, _Step]) -> None:
    """Raise RefusedError where a step must not be taken."""
    if steps:
        check_changeable(file)
    for key, step in steps.items():
        if (external := file.footer.chunk_meta(*key).external) is not None:
            hint = f"repair {external}"
            raise RefusedError("its pages and its filter are in another file", file=file.name, place=place_of(file, key), hint=hint)
        if step.treatment is Treatment.REBUILD:
            ensure_buildable(file, key[0], file.footer.columns[key[1]])


def _stated(step: _Step) -> FilterPlace | None:
    """Return the unchanged place of a filter with its true length."""
    if step.treatment is not Treatment.STATE_LENGTH:
        return None
    assert step.stored is not None, "what cannot be read is dropped"
    return FilterPlace(step.stored.place.offset, step.stored.length)


def _compare(opened: OpenEdit, steps: Mapping[ChunkKey, _Step], patch: Patch, fresh: ParquetFile) -> None:
    for key, step in steps.items():
        found = fresh.footer.chunk_meta(*key).stated_filter
        meant = patch.places.get(key) or _stated(step) or (None, None)
        if found != tuple(meant):
            raise mistake(opened.file, f"the new footer does not say of {place_of(opened.file, key)} what it should")
    opened.ensure_matches_plan(patch, fresh, steps)


def _step_report(opened: OpenEdit, patch: Patch, key: ChunkKey, step: _Step) -> RepairStep:
    return RepairStep(
        row_group=key[0],
        column=opened.file.footer.columns[key[1]].name,
        treatment=step.treatment.words,
        rules=step.rules,
        facts=step.facts,
        built=report_of(opened.file, patch, key, opened.built_filters[key]) if key in opened.built_filters else None,
    )
