"""`add_filters`: add Bloom filters to columns of an existing file without changing a data page.

choose   select the column chunks, and find what prevents the change
build    read each chunk's values once; insert their hashes into a filter large enough for all of
         them; fold it to the target FPP; query it for every value
publish  write the old file, the filters and the new footer to a temporary file, or with `append`
         filters and footer to the end of the file itself; read back the footer, headers, bitsets,
         and the pages that the filters were verified against
rename   replace the file as the last step
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isinf
from typing import TYPE_CHECKING, Unpack

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.editing.build import (
    SpooledFilter,
    chunk_bytes,
    columns_of,
    most_bytes,
    report_filters,
    sum_chunk_bytes,
)
from sbbf_tool.editing.choice import Choice, choose_chunks, ensure_rebuild
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.lost_change import describe_filters, find_lost_change
from sbbf_tool.editing.open_edit import OpenEdit
from sbbf_tool.errors import UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen, opt, replace
from sbbf_tool.hints import Fix, Rebuild
from sbbf_tool.numbers import format_count, format_percent
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.patch import Patch
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.query_engines.uses import engine_warnings, harm_in
from sbbf_tool.query_engines.verdicts import as_engines
from sbbf_tool.reports.change import BuiltFilter, ChangeReport, SaturatedFilter
from sbbf_tool.reports.rows import HAS_EVERY_FILTER, OK, SKIPPED, NamedColumn
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.rules.satisfaction import BROKEN, FPP_TOLERANCE, TOO_LARGE, WEAKER
from sbbf_tool.verbs.verb import ChangingVerb, EditOptions, Needs, PropertiesOfTable, Scanner
from sbbf_tool.writers.properties import build_for_new_files

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.table_file import FileName, TableFile


class SmallerSize(Frozen):
    """The filters that were added, if they had the next smaller size where its rate is near."""

    fpp: float
    bitset_bytes: int
    """Bytes of all bitsets at that rate."""


class AddReport(ChangeReport):
    _row = BuiltFilter

    filters: tuple[BuiltFilter, ...]
    skipped: int
    """Column chunks that already had a filter and keep it, whether or not it satisfies the
    request."""
    data_bytes_read: int
    """Bytes of the chunks that were read to build the filters; data pages that refer to a
    dictionary count only with their headers."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow also decoded, with equal values, because the tests do not cover
    the writer or there are no statistics."""
    not_cross_checked: int = 0
    """Column chunks that need a cross-check, but that pyarrow cannot decode."""
    weaker: int = 0
    """Of the skipped column chunks, those with a measured false-positive rate above 1.25 x the
    target."""
    too_large: int = 0
    """Of the skipped column chunks, those with a filter of more than 4 x the size that its values
    need, or above the limit."""
    broken: int = 0
    """Of the skipped column chunks, those with a filter that readers cannot use: unreadable, of a
    draft, or without the values."""
    without_values: int = 0
    """Column chunks that get no filter, because the footer shows that they have no row, or only
    nulls."""
    harms: tuple[str, ...] = ()
    """What engines make of filters on such a column, if they lose rows or fail; `warnings` says it
    too, and `check` warns of it."""
    saturated_filters: tuple[SaturatedFilter, ...] = ()
    """Filters that were left out because they would exclude hardly any value."""
    planned_filters: int = 0
    """In a dry run: number of filters that would be built."""
    planned_bytes: int = 0
    """In a dry run: bytes by which the file would grow, at most: every value counts as distinct."""
    data_bytes: int = 0
    """Compressed bytes of the column chunks whose filters are built."""
    undo: Fix | None = None
    """The change that restores the old file, byte for byte; None if there is none, or if the file
    was not changed in place."""
    leftover_bytes: int = 0
    """Bytes of earlier changes by this package that the new file still has, but no longer needs:
    `append` leaves them, the next copy drops them.
    """

    next_smaller: SmallerSize | None = None
    """The next smaller size of the filters, if its rate is near."""

    @property
    def bytes_added(self) -> int:
        return self.new_bytes - self.old_bytes

    def outcome(self, *, in_table: bool = False) -> tuple[str, str | None]:
        if self.saturated_filters:
            return super().outcome()
        if self.filters or self.planned_filters:
            return OK, None
        return SKIPPED, HAS_EVERY_FILTER

    def repeat(self) -> AddReport:
        return replace(
            self,
            file=self.output,
            old_bytes=self.new_bytes,
            old_end_hash=self.new_end_hash,
            filters=(),
            skipped=self.skipped + len(self.filters),
            data_bytes_read=0,
            data_bytes=0,
            warnings=(),
            cross_checked=0,
            not_cross_checked=0,
            undo=None,
            next_smaller=None,
            is_first_change=False,
        )

    def _summary(self) -> str:
        num_filters = len(self.filters) or self.planned_filters
        return f"{self.file}: {format_count(num_filters, 'filter')}"


def _as_spec(spec: FilterSpec | Iterable[str]) -> FilterSpec:
    return spec if isinstance(spec, FilterSpec) else FilterSpec(as_names(spec))


class AddFilter(ChangingVerb[AddReport]):
    """Add the filters of `spec` that a file lacks to each of its row groups.

    The size of a filter follows from its values, or from the spec's `ndv`. An encrypted column gets
    an encrypted filter, which needs the keys of the column and of the footer. A chunk that has a
    filter is skipped and counted, with `weaker`, `too_large` and `broken` filters apart;
    `rebuild="weak"` rebuilds exactly these, `rebuild="all"` all. If there is nothing to add, the
    output is an exact copy. A dry run reads the footer and existing filters, and reports how many
    filters would be built.

    A filter is left out if its measured FPP is above 0.5 and above ten times the target:
    `saturated_filters` of the report lists it, and RefusedError is raised if no other filter is to
    be added, unless the edit forces it.
    """

    name = "add-filter"
    has_state = True
    operation = "ADD"
    report = AddReport
    spec: FilterSpec = opt("Columns, rate and sizes", convert=_as_spec)
    rebuild: Rebuild | None = opt(
        "Rebuild existing filters: those that could be better, or all", default=None
    )
    engine_names: Iterable[str] = opt(
        "The query engines that read the files; no filter may harm one",
        default=(),
        convert=as_engines,
    )

    also_new_files: bool = opt(
        "Let the writers of a table add the filters to new files", default=False
    )
    are_advised: bool = opt(
        "The columns are those that advice has chosen: no file must have them", default=False
    )

    def ensure_valid(self) -> None:
        ensure_rebuild(self.rebuild)

    def of_files(self) -> AddFilter:
        if self.also_new_files:
            raise UsageError(
                "only a table has properties by which its writers add filters to new files"
            )
        return self

    def requires_columns(self) -> bool:
        return not self.are_advised

    def named_columns(self) -> tuple[str, ...]:
        return () if self.are_advised else self.spec.columns

    def table_properties(self, table: PropertiesOfTable) -> Mapping[str, str | None]:
        if not self.also_new_files:
            return {}
        return build_for_new_files(table.properties, self.spec, table.name_for_property)

    def new_filters(self) -> tuple[FilterSpec, Rebuild | None]:
        return self.spec, self.rebuild

    def needs(self) -> Needs:
        return Needs(data=True, data_in_dry_run=False, threads=True)

    def changed_columns(self) -> tuple[str, ...]:
        return self.spec.columns

    def request(self, path: FileName) -> tuple[object, ...]:
        return self.spec, self.rebuild, self.engine_names

    def on(self, change: OpenEdit) -> AddReport:
        file = change.file
        choice = choose_chunks(file, self.spec, self.rebuild, engines=self.engine_names)
        chunks = choice.sizes
        indexes = columns_of(chunks)
        planned_filters = 0
        planned_bytes = 0
        if change.edit.dry_run:
            change.ensure_buildable(chunks)
            planned_filters = len(chunks)
            planned_bytes = most_bytes(file, chunks)
        else:
            change.build(chunks)
            change.ensure_useful(self.spec.ndv)
        change.warnings += [
            *_type_warnings(file, indexes),
            *_fpp_warnings(file, choice, change.built_filters),
            *_size_warnings(file, change.built_filters),
            *engine_warnings(file.footer, indexes, self.engine_names),
        ]
        patch = change.patch()
        undo = None
        if not change.is_copied and not _drops_old_bytes(file.footer, patch):
            undo = _undo(file, change.edit, columns_of(patch.places), file.footer)
        report = partial(
            AddReport,
            filters=tuple(report_filters(file, patch, change.built_filters)),
            skipped=len(choice.judgments),
            without_values=choice.without_values,
            weaker=choice.count(WEAKER),
            too_large=choice.count(TOO_LARGE),
            broken=choice.count(BROKEN),
            named_columns=choice.named_columns,
            data_bytes_read=change.data_bytes_read,
            cross_checked=change.cross_checked,
            not_cross_checked=change.not_cross_checked,
            harms=tuple(_harms(file, indexes, self.engine_names)),
            saturated_filters=tuple(change.saturated_filters),
            planned_filters=planned_filters,
            planned_bytes=planned_bytes,
            data_bytes=sum_chunk_bytes(file, chunks),
            undo=undo,
            leftover_bytes=change.leftover_bytes(patch),
            next_smaller=_find_smaller(choice, change.built_filters),
        )
        return change.publish(patch, report)

    def scanner(
        self, context: Context, in_table: TableFile | None = None, edit: Edit | None = None
    ) -> Scanner[AddReport] | None:
        if edit is None or in_table is not None or self.rebuild == "all":
            return None
        from sbbf_tool.editing.complete_files import scan_for_complete_files

        def judge(file: ParquetFile) -> AddReport | None:
            report = self.carry(file.name, context, dataclasses.replace(edit, dry_run=True))
            if report.planned_filters or report.without_values or report.warnings:
                return None
            if report.weaker or report.too_large or report.broken:
                return None
            return report

        return scan_for_complete_files(self.spec, judge, context, edit)

    def recognise(
        self, file: ParquetFile, report: AddReport | None, listed_bytes: int, edit: Edit
    ) -> AddReport | None:
        if report is None:
            return None
        status, _ = report.outcome()
        is_idle = status == SKIPPED
        if not is_idle and self.rebuild != "all":
            return None
        change = find_lost_change(file, listed_bytes)
        if change is None:
            return None
        skipped = report.skipped
        if is_idle:
            skipped = max(0, skipped - len(change.filters))
        undo = None
        if change.before is not None:
            undo = _undo(file, edit, columns_of(change.filters), change.before)
        return replace(
            report,
            old_bytes=listed_bytes,
            old_end_hash=change.old_end_hash,
            filters=describe_filters(file, change.filters),
            data_bytes=sum_chunk_bytes(file, change.filters),
            skipped=skipped,
            leftover_bytes=change.leftover_bytes,
            undo=undo,
            is_first_change=change.is_first,
        )


def add_filters(  # noqa: PLR0913  one keyword for each option of the command
    path: str | os.PathLike[str],
    columns: Iterable[str],
    *,
    append: bool = False,
    fpp: float = DEFAULT_FPP,
    ndv: int | None = None,
    max_bytes: int | Mapping[str, int] | None = None,
    rebuild: Rebuild | None = None,
    engines: Iterable[str] = (),
    engine_names: Iterable[str] = (),
    strict: bool = True,
    **options: Unpack[EditOptions],
) -> AddReport:
    """Add a filter to every row group of `columns` of one file, writing to `output` or `in_place`;
    see `AddFilter`, in which `engines` are `engine_names`, and `Edit` for options.

    `fpp` is the target false-positive rate; `max_bytes` limits the size of a filter (one number, or
    one per column).
    """
    edit = Edit(append=append, **options)
    spec = FilterSpec(as_names(columns), fpp, ndv, max_bytes)
    return AddFilter(spec, rebuild, engines or engine_names)(path, edit, strict=strict)


def _drops_old_bytes(footer: Footer, patch: Patch) -> bool:
    """Return whether the patch drops bytes that no undo restores: more than the old footer, or an
    encrypted footer, which has other bytes each time."""
    kept_until = footer.start if footer.cipher is None else footer.end
    return patch.keep < kept_until


def _undo(file: ParquetFile, edit: Edit, columns: Sequence[int], before: Footer) -> Fix | None:
    """Return the removal of all filters of these columns, whose indexes are given; None if the
    footer before has any of them."""
    if not edit.in_place or edit.dry_run or not columns:
        return None
    for row_group in range(before.num_row_groups):
        for column in columns:
            if before.chunk_meta(row_group, column).stated_filter != (None, None):
                return None
    names = tuple(file.footer.columns[column].name for column in columns)
    keys = None if file.ring is None else file.ring.keys.path
    return Fix("remove_filters", (file.name,), names, keys=keys)


_NEGLIGIBLE_BYTES = 64 << 10
"""If the filters of a column have at most this many bytes, no warning compares them with the bytes
of the data."""


def _fpp_warnings(
    file: ParquetFile, choice: Choice, filters: Mapping[ChunkKey, SpooledFilter]
) -> Iterator[str]:
    """Yield warnings about the columns whose filters miss the target FPP, with the limit on their
    size."""
    worst: dict[int, tuple[ChunkKey, SpooledFilter]] = {}
    for key, spooled_filter in filters.items():
        _, column = key
        if column not in worst or spooled_filter.fpp > worst[column][1].fpp:
            worst[column] = (key, spooled_filter)
    for column, (key, spooled_filter) in sorted(worst.items()):
        size = choice.sizes[key]
        if spooled_filter.fpp <= size.fpp * FPP_TOLERANCE:
            continue
        rates = f"{format_percent(spooled_filter.fpp)} instead of {size.fpp * 100:g} %"
        warning = f"column {file.footer.columns[column].name}: the false-positive rate is {rates}"
        if spooled_filter.num_bytes == size.largest:
            warning += f", because the size is limited to {spooled_filter.num_bytes:,} bytes"
        elif size.ndv is not None:
            warning += f", because the size is for {size.ndv:,} distinct values"
            if not isinf(spooled_filter.estimated_ndv):
                warning += f", not about {round(spooled_filter.estimated_ndv):,}"
        yield warning


_LEAST_SAVED = 64 << 10
_LEAST_SHARE = 0.4
"""A next smaller size that saves less than these bytes, or this share of them, is not named."""


def _find_smaller(choice: Choice, filters: Mapping[ChunkKey, SpooledFilter]) -> SmallerSize | None:
    """Return what the filters would take with the next smaller size, where its FPP is near the
    target; None if that saves too little, or if the sizes are stated."""
    worst = 0.0
    all_bytes = 0
    smaller_bytes = 0
    for key, spooled_filter in filters.items():
        size = choice.sizes[key]
        num_bytes = spooled_filter.num_bytes
        all_bytes += num_bytes
        fpp = None
        if not size.is_stated and not isinf(spooled_filter.estimated_ndv):
            fpp = sizing.fpp_of_half(spooled_filter.estimated_ndv, num_bytes, size.fpp)
        if fpp is not None:
            worst = max(worst, fpp)
            num_bytes //= 2
        smaller_bytes += num_bytes
    if all_bytes - smaller_bytes < max(_LEAST_SAVED, _LEAST_SHARE * all_bytes):
        return None
    return SmallerSize(worst, smaller_bytes)


def _size_warnings(file: ParquetFile, filters: Mapping[ChunkKey, SpooledFilter]) -> Iterator[str]:
    filter_bytes_of = Counter[int]()
    data_bytes_of = Counter[int]()
    for key, spooled_filter in filters.items():
        _, column = key
        filter_bytes_of[column] += spooled_filter.num_bytes
        data_bytes_of[column] += chunk_bytes(file, key)
    for column, filter_bytes in sorted(filter_bytes_of.items()):
        data_bytes = data_bytes_of[column]
        if filter_bytes > max(data_bytes, _NEGLIGIBLE_BYTES):
            name = file.footer.columns[column].name
            sizes = (
                f"column {name}: its filters take {filter_bytes:,} bytes, more than its "
                f"data ({data_bytes:,} bytes)"
            )
            yield f"{sizes}; allow a higher false-positive rate, or leave the column out"


def _type_warnings(file: ParquetFile, indexes: Iterable[int]) -> Iterator[str]:
    for index in indexes:
        column = file.footer.columns[index]
        if column.doubt:
            yield (
                f"column {column.name}: {column.doubt}; readers may refuse "
                "the column, and `probe` cannot look up its values"
            )
        if column.reading.doubt or column.reading.is_shifted:
            for note in column.reading.notes():
                yield f"column {column.name}: {note}"


def _harms(file: ParquetFile, indexes: Iterable[int], engines: Iterable[str]) -> Iterator[str]:
    for index in indexes:
        column = file.footer.columns[index]
        if (harm := harm_in(file.footer, column, engines)) is not None:
            yield f"column {column.name}: {harm}"
