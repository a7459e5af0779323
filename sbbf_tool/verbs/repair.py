"""`repair`: fix the findings about a file's filters that a new footer can fix.

Each rule that `repair` can fix has two fixes: one reads the data and replaces the bad filter with a
correct one, and the other changes only the footer (sets the length or drops the filter). Bytes of
the old file are never changed: truncating the file to its old length restores dropped filters. No
filter that a reader can safely use is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Unpack

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.display import redact
from sbbf_tool.editing.build import ensure_buildable, mistake, place_of, report_of
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.lost_change import describe_filters, is_result, repeat_on_old_file
from sbbf_tool.editing.open_edit import OpenEdit
from sbbf_tool.editing.repairs import FilterStep, plan_steps, rules_to_rebuild
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.file import interrupted
from sbbf_tool.file.own_tail import hash_end
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen, opt, replace
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.patch import Patch
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.reports.change import BuiltFilter, ChangeReport, SaturatedFilter
from sbbf_tool.reports.findings import ERROR, Finding
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.rules.facts import (
    Reads,
    gather,
    locked_columns,
    unreadable_chunks,
)
from sbbf_tool.rules.rule import FilterFix
from sbbf_tool.storage import places
from sbbf_tool.verbs.verb import ChangingVerb, EditOptions, Needs

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.table_file import FileName


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
            figures: tuple[int | None, int | None, float | None] = (None, None, None)
            new = step.new_filter
            if new is not None:
                figures = (new.offset, new.bitset_bytes, new.fpp)
            yield AppliedFix(
                step.row_group, step.column, step.fix, step.rules, step.facts, *figures
            )

    def _summary(self) -> str:
        return (
            f"{self.file}: {format_count(len(self.steps), 'filter')}, "
            f"{format_count(len(self.remaining), 'remaining finding')}"
        )


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

    def before(self, path: FileName, context: Context, edit: Edit) -> RepairReport | None:
        if not edit.dry_run:
            return None
        name = os.fsdecode(path)
        target = edit.target_of(path, context.reuse.tables)
        _, length = interrupted.undo(name, target, context.ring_of(name), dry_run=True)
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
        columns = choose_columns(file, names)
        reads = Reads.DATA
        if self.quick:
            reads = Reads.FILTERS
        facts = gather(file, columns, reads)
        steps, remaining = plan_steps(facts, drop=self.drop, quick=self.quick)
        _ensure_allowed(file, steps)
        if steps:
            change.ensure_publishable()
        if not change.edit.dry_run:
            to_build = [key for key, step in steps.items() if step.fix is FilterFix.REBUILD]
            change.build(dict.fromkeys(to_build, Sizing()))
            steps = dict(_without_left_out(steps, change))
        patch = _patch(change, steps)
        needs_rebuild: tuple[str, ...] = ()
        if self.drop:
            needs_rebuild = rules_to_rebuild(facts, remaining)
        report = partial(
            RepairReport,
            steps=tuple(_report_steps(change, steps, patch)),
            named_columns=file.name_columns(names),
            remaining=tuple(remaining),
            needs_rebuild=needs_rebuild,
            unreadable=unreadable_chunks(facts),
            locked_columns=locked_columns(facts),
            truncated_to=change.truncated_to,
            cross_checked=change.cross_checked,
            not_cross_checked=change.not_cross_checked,
            saturated_filters=tuple(change.saturated_filters),
        )
        return change.publish(patch, report, partial(_compare, change, steps, patch))

    def recognise(
        self, file: ParquetFile, report: RepairReport | None, listed_bytes: int, edit: Edit
    ) -> RepairReport | None:
        planned = repeat_on_old_file(self.on, file, listed_bytes, edit)
        if report is None or report.steps or planned is None:
            return None
        steps = tuple(_describe_step(file, step) for step in planned.steps)
        new_filters = [step.new_filter for step in steps if step.new_filter is not None]
        if not new_filters and not is_result(planned, file):
            return None
        return replace(
            report,
            old_bytes=listed_bytes,
            old_end_hash=planned.old_end_hash,
            is_first_change=planned.is_first_change,
            steps=steps,
        )


def repair(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    drop: bool = False,
    quick: bool = False,
    strict: bool = True,
    **options: Unpack[EditOptions],
) -> RepairReport:
    """Repair filters of one file, writing to `output` or `in_place`; see `Repair`, and `Edit` for
    the options."""
    return Repair(columns, drop, quick)(path, Edit(**options), strict=strict)


def _patch(change: OpenEdit, steps: Mapping[ChunkKey, FilterStep]) -> Patch:
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
    change: OpenEdit, steps: Mapping[ChunkKey, FilterStep], patch: Patch
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


def _describe_step(file: ParquetFile, step: RepairStep) -> RepairStep:
    """Return a planned step as it was taken: with the filter that was built, or as the removal of
    the old one."""
    if step.fix != FilterFix.REBUILD.words:
        return step
    key = (step.row_group, file.find_columns([step.column])[0].index)
    if file.footer.filter_place(*key) is None:
        return replace(step, fix=FilterFix.DROP.words)
    (new_filter,) = describe_filters(file, [key])
    return replace(step, new_filter=new_filter)


def _ensure_allowed(file: ParquetFile, steps: Mapping[ChunkKey, FilterStep]) -> None:
    """Raise RefusedError if a step must not be taken."""
    if steps:
        check_changeable(file)
    for key, step in steps.items():
        if step.fix is FilterFix.REBUILD:
            row_group, column = key
            ensure_buildable(file, row_group, file.footer.columns[column])


def _without_left_out(
    steps: Mapping[ChunkKey, FilterStep], open_edit: OpenEdit
) -> Iterator[tuple[ChunkKey, FilterStep]]:
    """Yield the steps; where the new filter is left out, a harmful old one is dropped, and any
    other stays."""
    for key, step in steps.items():
        if step.fix is not FilterFix.REBUILD or key in open_edit.built_filters:
            yield key, step
        elif step.is_about_harm:
            yield key, step._replace(fix=FilterFix.DROP)


def _place_with_length(step: FilterStep) -> FilterPlace | None:
    """Return the unchanged place of a filter with its true length."""
    if step.fix is not FilterFix.SET_LENGTH:
        return None
    assert step.stored is not None, "an unreadable filter is dropped"
    return FilterPlace(step.stored.place.offset, step.stored.length)


def _compare(
    open_edit: OpenEdit, steps: Mapping[ChunkKey, FilterStep], patch: Patch, fresh: ParquetFile
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
