"""`apply`: give a file the filters that a policy declares, in one change, or report how it differs
from them.

judge    compare each existing filter with its declaration, by its bits
build    build the filters that are missing, weaker, too large or broken
remove   remove filters that no declaration names, if that is requested, and those for which the
         declared limits leave no room
publish  write all of this as one change, as `add_filters` does
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.editing.build import (
    SpooledFilter,
    columns_of,
    ensure_buildable,
    most_bytes,
    most_filter_bytes,
    report_filters,
    report_removals,
    sum_chunk_bytes,
)
from sbbf_tool.editing.declared import DeclaredPlan, plan_declared
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.lost_change import describe_filters, find_lost_change
from sbbf_tool.editing.open_edit import OpenEdit
from sbbf_tool.editing.targets import check_changeable, ensure_in_no_table
from sbbf_tool.errors import UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.frozen import opt, replace
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.query_engines.uses import engine_warnings
from sbbf_tool.query_engines.verdicts import as_engines
from sbbf_tool.reports.change import BuiltFilter, ChangeReport, RemovedFilter
from sbbf_tool.reports.declared import DeclaredColumn as DeclaredColumn
from sbbf_tool.reports.rows import OK, SKIPPED, NamedColumn
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.rules.filter_spec import (
    FilterSpec,
    RequestedFilters,
    declared_columns,
    request_filters,
    specs_for,
)
from sbbf_tool.rules.satisfaction import (
    BROKEN,
    FPP_TOLERANCE,
    MISSING,
    SATISFIED,
    TOO_LARGE,
    WEAKER,
    Judgment,
)
from sbbf_tool.verbs.verb import ChangingVerb, Needs

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes


NO_DECLARATION = "no filters are declared for this file"
NO_DEVIATION = "the file has the declared filters"
"""Why a file is skipped."""


class ApplyReport(ChangeReport):
    _row = DeclaredColumn

    holds: bool
    """Whether the file has the declared filters, after the change if there was one."""
    columns: tuple[DeclaredColumn, ...]
    named_columns: tuple[NamedColumn, ...]
    """What the file has under each of the declared names."""
    data_bytes: int
    """Compressed bytes of the column chunks to read."""
    estimated_seconds: float
    """Time of the change on one core, estimated from sizes; 0 if there is nothing to do."""
    filters: tuple[BuiltFilter, ...] = ()
    """The filters that were built."""
    removals: tuple[RemovedFilter, ...] = ()
    """The filters that were removed, or that a run would remove."""
    warnings: tuple[str, ...] = ()
    without_values: int = 0
    """Column chunks that need no filter, because the footer shows no value in them."""
    planned_bytes: int = 0
    """In a dry run: bytes that the change adds, at most."""

    @property
    def only_removes(self) -> bool:
        return not self.filters

    def outcome(self, *, in_table: bool = False) -> tuple[str, str | None]:
        has_changed = bool(self.filters or self.removals) or self.old_bytes != self.new_bytes
        if self.holds and not has_changed:
            return SKIPPED, NO_DEVIATION
        return OK, None

    def repeat(self) -> ApplyReport:
        if not self.holds:
            return self
        new_bytes = Counter[str]()
        for bloom in self.filters:
            new_bytes[bloom.column] += bloom.header_bytes + bloom.bitset_bytes
        num_removals = Counter(removal.column for removal in self.removals)
        columns = []
        for column in self.columns:
            name = column.column
            repeated = column.repeat(new_bytes[name], num_removals[name])
            if repeated.is_declared or repeated.undeclared:
                columns.append(repeated)
        return replace(
            self,
            file=self.output,
            old_bytes=self.new_bytes,
            old_end_hash=self.new_end_hash,
            columns=tuple(columns),
            data_bytes=0,
            estimated_seconds=0.0,
            filters=(),
            removals=(),
            is_first_change=False,
            warnings=(),
        )

    def _summary(self) -> str:
        if self.holds:
            return f"{self.file}: as declared"
        deviations = sum(column.deviations for column in self.columns)
        return f"{self.file}: {format_count(deviations, 'deviation')}"


_SECONDS_PER_FILE = 0.0135
_BYTES_PER_SECOND = 185e6
"""What one core took to change a file, of its size; see docs/explanation/million-files.md."""


def _as_specs(specs: FilterSpec | Iterable[FilterSpec]) -> tuple[FilterSpec, ...]:
    if isinstance(specs, FilterSpec):
        return (specs,)
    declarations = tuple(specs)
    for spec in declarations:
        if not isinstance(spec, FilterSpec):
            raise UsageError(f"a declaration is a FilterSpec, not {spec!r}")
    return declarations


class Apply(ChangingVerb[ApplyReport]):
    """Compare a file with those of the declarations that are for it, and make it so; a dry run only
    compares.

    `remove_undeclared` also removes the filters that no declaration names. A declared column that
    the file does not have is reported, and needs no filter.
    """

    name = "apply"
    has_state = True
    operation = "APPLY"
    report = ApplyReport
    declarations: Iterable[FilterSpec] = opt("The declared filters", convert=_as_specs)
    remove_undeclared: bool = opt("Also remove the filters that are not declared", default=False)
    engine_names: Iterable[str] = opt(
        "The query engines that read the files; no filter may harm one",
        default=(),
        convert=as_engines,
    )

    def needs(self) -> Needs:
        return Needs(data=True, data_in_dry_run=False, threads=True)

    def of_file(self, path: FileName) -> Apply:
        return self.with_declared(specs_for(self.declarations, path))

    def skips(self) -> str | None:
        return None if self.declarations else NO_DECLARATION

    def declared(self) -> Sequence[FilterSpec]:
        return tuple(self.declarations)

    def with_declared(self, specs: Sequence[FilterSpec]) -> Apply:
        return replace(self, declarations=specs)

    def requires_columns(self) -> bool:
        return False

    def named_columns(self) -> tuple[str, ...]:
        return declared_columns(self.declarations)

    def request(self, path: FileName) -> tuple[object, ...]:
        return specs_for(self.declarations, path), self.remove_undeclared, self.engine_names

    def before(self, path: FileName, context: Context, edit: Edit) -> None:
        if reason := self.skips():
            raise UsageError(reason, file=os.fspath(path))
        if not (edit.in_place or edit.allow_table_files or isinstance(path, TableFile)):
            # What cannot be changed is no promise of what a change would do.
            ensure_in_no_table(os.fsdecode(path), context.reuse.tables)

    def on(self, change: OpenEdit) -> ApplyReport:
        file = change.file
        requests = request_filters(file, self.declarations)
        if self.remove_undeclared:
            _ensure_some_stay(file, requests)
        check_changeable(file)
        for row_group, column in requests.sizes:
            ensure_buildable(file, row_group, file.footer.columns[column], self.engine_names)
        plan = plan_declared(file, requests, change.edit, removes_undeclared=self.remove_undeclared)
        if change.edit.dry_run:
            patch = change.patch()
            is_complete = False
            planned_bytes = most_bytes(file, plan.to_build)
        else:
            change.build(plan.to_build)
            patch = change.patch(plan.to_drop)
            is_complete = len(change.built_filters) == len(plan.to_build)
            planned_bytes = 0
        indexes = columns_of(plan.to_build)
        change.warnings += engine_warnings(file.footer, indexes, self.engine_names)
        describe = partial(_describe_column, file, requests, plan, change.built_filters)
        report = partial(
            ApplyReport,
            holds=is_complete or not plan.has_work,
            columns=tuple(map(describe, columns_of([*requests.sizes, *plan.undeclared]))),
            named_columns=requests.named_columns,
            data_bytes=sum_chunk_bytes(file, plan.to_build),
            estimated_seconds=_estimate_seconds(file, plan),
            filters=tuple(report_filters(file, patch, change.built_filters)),
            removals=tuple(report_removals(file, plan.to_drop)),
            without_values=requests.without_values,
            planned_bytes=planned_bytes,
        )

        def compare(fresh: ParquetFile) -> None:
            change.ensure_matches_plan(patch, fresh, plan.to_drop)

        return change.publish(patch, report, compare)

    def recognise(
        self, file: ParquetFile, report: ApplyReport | None, listed_bytes: int, edit: Edit
    ) -> ApplyReport | None:
        if report is None or report.outcome()[0] != SKIPPED:
            return None
        change = find_lost_change(file, listed_bytes)
        if change is None:
            return None
        filters = describe_filters(file, change.filters)
        columns = []
        for column in report.columns:
            built = [bloom for bloom in filters if bloom.column == column.column]
            columns.append(column.before(built))
        return replace(
            report,
            old_bytes=listed_bytes,
            old_end_hash=change.old_end_hash,
            columns=tuple(columns),
            filters=filters,
            removals=tuple(report_removals(file, change.removed)),
            is_first_change=change.is_first,
        )


def apply(  # noqa: PLR0913  one keyword for each option of the command
    path: str | os.PathLike[str],
    policy: Policy,
    *,
    in_place: bool = False,
    remove_undeclared: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    keys: KeysLike = None,
    jobs: int | None = None,
    max_page_bytes: MaxPageBytes = None,
) -> ApplyReport:
    """Compare one file with the filters that `policy.limits.filters` declares for it, and
    `in_place` make it so; see `Apply` and `Edit`.

    `dry_run` only compares, as without `in_place`. Raises UsageError if no declaration is for this
    file.
    """
    edit = Edit(
        in_place=in_place,
        dry_run=dry_run or not in_place,
        allow_table_files=allow_table_files,
        keys=keys,
        max_page_bytes=max_page_bytes,
        jobs=jobs,
    )
    return Apply(policy.limits.filters, remove_undeclared)(path, edit)


def _ensure_some_stay(file: ParquetFile, requests: RequestedFilters) -> None:
    """Raise UsageError if undeclared filters are removed from a file that has no declared column.
    A file of a table need not have every column."""
    has_declared = any(named.type is not None for named in requests.named_columns)
    if not has_declared and not file.is_in_table:
        raise UsageError(
            "no declared column is in the file, so that all its filters would be removed",
            file=file.name,
        )


def _estimate_seconds(file: ParquetFile, plan: DeclaredPlan) -> float:
    if not plan.has_work:
        return 0.0
    return _SECONDS_PER_FILE + file.source.size / _BYTES_PER_SECOND


def _describe_column(
    file: ParquetFile,
    requests: RequestedFilters,
    plan: DeclaredPlan,
    built_filters: Mapping[ChunkKey, SpooledFilter],
    index: int,
) -> DeclaredColumn:
    keys = [(number, index) for number in range(file.footer.num_row_groups)]
    num_bytes = 0
    bytes_to_replace = 0
    for key in keys:
        place = file.footer.filter_place(*key)
        if place is not None:
            length = place.length or 0
            num_bytes += length
            if plan.replaces(key):
                bytes_to_replace += length
    outcomes = Counter[str]()
    facts = []
    fpp = None
    limited = 0
    estimated_bytes = 0
    for key in keys:
        judgment = plan.judgments.get(key)
        if judgment is None:
            continue
        size = requests.sizes[key]
        if fpp is None:
            fpp = size.fpp
        outcome = judgment.outcome
        if outcome == MISSING and key in plan.needless:
            outcome = SATISFIED
        outcomes[outcome] += 1
        if judgment.needs_rebuild:
            facts.append(judgment.fact)
        if key in plan.to_build:
            estimated_bytes += most_filter_bytes(file, key, size)
        if key in plan.needless or _stays_limited(judgment):
            limited += 1
        built = built_filters.get(key)
        if built is not None and built.fpp > FPP_TOLERANCE * size.fpp:
            limited += 1
    return DeclaredColumn(
        column=file.footer.columns[index].name,
        is_declared=fpp is not None,
        fpp=fpp,
        satisfied=outcomes[SATISFIED],
        missing=outcomes[MISSING],
        weaker=outcomes[WEAKER],
        too_large=outcomes[TOO_LARGE],
        broken=outcomes[BROKEN],
        undeclared=len(plan.undeclared & set(keys)),
        limited=limited,
        bytes=num_bytes,
        bytes_to_replace=bytes_to_replace,
        estimated_bytes=estimated_bytes,
        fact=facts[0] if facts else None,
    )


def _stays_limited(judgment: Judgment) -> bool:
    """Return whether a present filter stays, and a limit on its size keeps it from the target."""
    return judgment.outcome == SATISFIED and judgment.is_limited
