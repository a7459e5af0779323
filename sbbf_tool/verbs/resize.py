"""`resize_filters`: make filters smaller by folding, which reads no data.

A fold ORs neighbouring blocks and gives, bit for bit, the filter that would have been built at that
size; only the FPP changes. Filters that folding cannot resize are left unchanged and reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Unpack

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.editing.build import place_of
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.lost_change import (
    UNKNOWN_DETAILS,
    describe_ends,
    describe_filters,
    is_result,
    repeat_on_old_file,
)
from sbbf_tool.editing.open_edit import OpenEdit
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import NothingToDoError, RefusedError, UsageError
from sbbf_tool.file.doubts import doubt_of_filter
from sbbf_tool.file.own_tail import find_own_tail
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen, opt, replace
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.patch import Patch
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.reports.change import ChangeReport, SaturatedFilter
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.verbs.verb import ChangingVerb, EditOptions, Needs


class ResizedFilter(Frozen):
    """One filter that was folded; in a dry run, one that would be."""

    row_group: int
    column: str
    offset: int
    old_bytes: int | None
    """Bytes of the old bitset; `new_bytes` is the size of the new one. None, as is `old_fpp`, if a
    process that was lost resized the filter."""
    new_bytes: int
    old_fpp: float | None
    new_fpp: float


class FilterSize(Frozen):
    """A size to which one filter can be folded, or its present size, and the false-positive rate
    that its bits give at that size."""

    row_group: int
    column: str
    bytes: int
    fpp: float


class ResizeReport(ChangeReport):
    _row = ResizedFilter

    filters: tuple[ResizedFilter, ...]
    unchanged: int
    """Number of filters that already have the requested size, or a smaller one."""
    not_resized: tuple[str, ...]
    """Filters that cannot be folded to the requested size: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()
    saturated_filters: tuple[SaturatedFilter, ...] = ()
    """Filters that were left out because they would exclude hardly any value."""
    sizes: tuple[FilterSize, ...] = ()
    """In a dry run: the present size of each filter, and every half of it down to 64 bytes."""

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.filters), 'filter')}"


@dataclass
class _Plan:
    """Outcome of folding, per filter."""

    old: dict[ChunkKey, tuple[int, float]] = field(default_factory=dict)
    """Size in bytes and FPP of each filter before the change."""
    reasons: dict[ChunkKey, str] = field(default_factory=dict)
    """Why folding does not reach the target."""
    unchanged: int = 0
    sizes: list[FilterSize] = field(default_factory=list)
    """In a dry run: the sizes to which each filter can be folded."""


class Resize(ChangingVerb[ResizeReport]):
    """Resize the filters of `columns` (if empty, of all) to the smallest size that keeps `fpp`, or
    to at most `max_bytes` per row group.

    A filter that folding cannot resize is left unchanged; RefusedError is raised if no filter could
    be changed. If all filters already have the size, the file is left unchanged, or is copied to
    the output. A filter that would be saturated keeps its size unless forced.
    """

    name = "resize"
    operation = "RESIZE"
    report = ResizeReport
    columns: Iterable[str] = opt("Only these columns", default=(), convert=as_names)
    fpp: float | None = opt("The smallest size with at most this false-positive rate", default=None)
    max_bytes: int | None = opt("The largest size per row group, in bytes", default=None)

    def ensure_valid(self) -> None:
        if (self.fpp is None) == (self.max_bytes is None):
            raise UsageError("give either a false-positive rate or a size")
        if self.fpp is not None:
            sizing.ensure_fpp(self.fpp)
        size = self.max_bytes
        if size is None:
            return
        if not hasattr(size, "__index__"):
            raise UsageError(f"max bytes must be an integer, not {size!r}")
        if size.bit_count() != 1 or not sizing.MIN_BYTES <= size <= sizing.MAX_BYTES:
            message = f"the size must be a power of two from 64 bytes to 128 MiB, not {size:,}"
            raise UsageError(message, hint="some readers reject other sizes")

    def needs(self) -> Needs:
        return Needs(data=True)

    def on(self, change: OpenEdit) -> ResizeReport:
        file = change.file
        names = tuple(self.columns)
        check_changeable(file)
        stored = list(_stored_filters(file, names))
        plan = self._plan(change, stored)
        if plan.reasons and not change.filters:
            key, reason = next(iter(plan.reasons.items()))
            hint = "add a filter of that size in place of the old one"
            raise RefusedError(
                f"folding does not reach the target: {reason}",
                file=file.name,
                place=place_of(file, key),
                hint=hint,
            )
        if change.filters:
            change.ensure_publishable()
        change.ensure_useful()
        patch = change.patch()
        not_resized = []
        for key, reason in plan.reasons.items():
            place = place_of(file, key)
            not_resized.append(f"{place}: {reason}")
        report = partial(
            ResizeReport,
            filters=tuple(_report_filters(change, patch, plan)),
            unchanged=plan.unchanged,
            named_columns=file.name_columns(names),
            not_resized=tuple(not_resized),
            saturated_filters=tuple(change.saturated_filters),
            sizes=tuple(plan.sizes),
        )
        return change.publish(patch, report)

    def recognise(
        self, file: ParquetFile, report: ResizeReport | None, listed_bytes: int, edit: Edit
    ) -> ResizeReport | None:
        restored = repeat_on_old_file(self.on, file, listed_bytes, edit)
        if restored is not None and is_result(restored, file):
            return replace(restored, sizes=())
        filters = self._filters_in_tail(file)
        unchanged = 0
        if report is not None:
            if report.filters:
                return None
            unchanged = max(0, report.unchanged - len(filters))
        if not filters:
            return None
        return ResizeReport(
            **describe_ends(file, listed_bytes),
            filters=filters,
            unchanged=unchanged,
            not_resized=(),
            named_columns=file.name_columns(tuple(self.columns)),
            warnings=(UNKNOWN_DETAILS.format("the old sizes of its filters"),),
        )

    def _filters_in_tail(self, file: ParquetFile) -> tuple[ResizedFilter, ...]:
        """Describe the filters that a change by this package wrote and that may be those of this
        verb; what they were is unknown."""
        indexes = {column.index for column in choose_columns(file, self.columns)}
        own_filters = find_own_tail(file).filters
        keys = [key for key in own_filters if key[1] in indexes]
        filters = []
        for new in describe_filters(file, keys):
            if self.max_bytes in (None, new.bitset_bytes):
                resized = ResizedFilter(
                    row_group=new.row_group,
                    column=new.column,
                    offset=new.offset,
                    old_bytes=None,
                    new_bytes=new.bitset_bytes,
                    old_fpp=None,
                    new_fpp=new.fpp,
                )
                filters.append(resized)
        return tuple(filters)

    def _plan(self, change: OpenEdit, filters: Iterable[StoredFilter]) -> _Plan:
        """Add folded filters to the edit; for other filters, record why folding does not reach the
        target."""
        plan = _Plan()
        size_to_build = Sizing(num_bytes=self.max_bytes)
        if self.fpp is not None:
            size_to_build = Sizing(self.fpp)
        for stored in filters:
            key = (stored.row_group, stored.column)
            bloom = BloomFilter(change.file.read_bitset(stored))
            plan.old[key] = (bloom.num_bytes, bloom.fpp)
            if change.edit.dry_run:
                name = change.file.footer.columns[stored.column].name
                for fold in bloom.folds():
                    size = FilterSize(stored.row_group, name, fold.num_bytes, fold.fpp)
                    plan.sizes.append(size)
            folded_filter, reason = self._fold(bloom)
            if reason is not None:
                plan.reasons[key] = reason
            elif folded_filter is bloom:
                plan.unchanged += 1
            else:
                change.add(key, folded_filter, size_to_build)
        return plan

    def _fold(self, bloom: BloomFilter) -> tuple[BloomFilter, str | None]:
        """Fold a filter to the target; return the best fold, or the filter itself, with the reason
        if the result misses the target."""
        if self.fpp is not None:
            folded_filter = bloom.fold_to_fpp(self.fpp)
            if folded_filter.fpp <= self.fpp:
                return folded_filter, None
            return folded_filter, f"its false-positive rate would be {folded_filter.fpp:.3%}"
        num_bytes = self.max_bytes or 0
        if bloom.num_bytes <= num_bytes:
            return bloom, None
        try:
            return bloom.fold_to_bytes(num_bytes), None
        except UsageError:
            blocks = f"{bloom.num_blocks} blocks"
            return bloom, f"a filter of {blocks} cannot be folded to {num_bytes:,} bytes"


def resize_filters(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    fpp: float | None = None,
    max_bytes: int | None = None,
    strict: bool = True,
    **options: Unpack[EditOptions],
) -> ResizeReport:
    """Resize filters of one file, writing to `output` or `in_place`; see `Resize`, and `Edit` for
    the options."""
    return Resize(columns, fpp, max_bytes)(path, Edit(**options), strict=strict)


def _stored_filters(file: ParquetFile, names: tuple[str, ...]) -> Iterable[StoredFilter]:
    """Yield the filters of the columns with these names, or of all; raise RefusedError if there is
    none, or if one cannot be interpreted."""
    columns = choose_columns(file, names)
    is_empty = True
    for row_group in range(file.footer.num_row_groups):
        for column in columns:
            if file.footer.filter_place(row_group, column.index) is None:
                continue
            place = place_of(file, (row_group, column.index))
            if (encryption := file.encryption_of(row_group, column)) is not None:
                raise RefusedError(
                    encryption, file=file.name, place=place, hint="leave the column out"
                )
            stored = file.stored_filter(row_group, column)
            assert stored is not None
            if reason := doubt_of_filter(file, stored):
                hint = "repair can rebuild it from the data"
                raise RefusedError(reason, file=file.name, place=place, hint=hint)
            is_empty = False
            yield stored
    if is_empty and names:
        raise NothingToDoError(
            "the column has no filter to resize", file=file.name, place=f"column {columns[0].name}"
        )
    if is_empty:
        raise NothingToDoError("no column has a filter to resize", file=file.name)


def _report_filters(change: OpenEdit, patch: Patch, plan: _Plan) -> Iterator[ResizedFilter]:
    for key in sorted(change.filters):
        row_group, column = key
        old_bytes, old_fpp = plan.old[key]
        new = change.filters[key]
        yield ResizedFilter(
            row_group=row_group,
            column=change.file.footer.columns[column].name,
            offset=patch.places[key].offset,
            old_bytes=old_bytes,
            new_bytes=new.num_bytes,
            old_fpp=old_fpp,
            new_fpp=new.fpp,
        )
