"""`resize_filters`: filters of another size. Smaller ones by folding, without a look at the data; larger ones only from the data.

A fold ORs neighbouring blocks and is, bit for bit, the filter that would have been built at that size; so nothing is lost but error rate.
What folding cannot give is left as it is and told, or built from the data where that was allowed.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.display import redact
from sbbf_tool.editing.build import (
    Built,
    Meter,
    Progress,
    Sizing,
    Spooled,
    build_filters,
    chunk_bytes,
    ensure_buildable,
    statistics_warnings,
)
from sbbf_tool.editing.chunks import plan_filters
from sbbf_tool.editing.publish import ensure_holding_all, ensure_same_footer, ensure_written, place_of, publish
from sbbf_tool.editing.targets import check_changeable, choose_columns, choose_target, table_warnings, warnings_of_interrupted
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.patch import ChunkKey, Patch
from sbbf_tool.reports.resize import ResizedFilter, ResizeReport
from sbbf_tool.storage import places
from sbbf_tool.storage.spool import Spool

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven

FOLDED, REBUILT = "folded", "rebuilt"


@dataclass(frozen=True, slots=True)
class Aim:
    """An error rate, or a size in bytes: one of the two."""

    fpp: float | None = None
    num_bytes: int | None = None

    def __post_init__(self) -> None:
        if (self.fpp is None) == (self.num_bytes is None):
            raise UsageError("say what size is wanted: either an error rate or a number of bytes")
        if self.fpp is not None:
            sizing.ensure_rate(self.fpp)
        size = self.num_bytes
        if size is not None and (size & (size - 1) or not sizing.MIN_BYTES <= size <= sizing.MAX_BYTES):
            raise UsageError(f"a size of {size:,} bytes", hint="readers agree on powers of two from 64 bytes to 128 MiB only")

    def fold(self, bloom: BloomFilter) -> tuple[BloomFilter, str | None]:
        """The fold that was asked for; or the filter itself, and why folding does not lead there."""
        if self.fpp is not None:
            folded = bloom.fold_to_fpp(self.fpp)
            return folded, None if folded.fpp <= self.fpp else f"it lets {folded.fpp:.3%} of absent values pass"
        wanted = self.num_bytes or 0
        if bloom.num_bytes < wanted:
            return bloom, f"it has {bloom.num_bytes:,} bytes"
        try:
            return bloom.fold_to_bytes(wanted), None
        except UsageError:
            return bloom, f"a filter of {bloom.num_blocks} blocks cannot be folded to {wanted:,} bytes"

    @property
    def sizing(self) -> Sizing:
        """What to build where folding does not do."""
        return Sizing(num_bytes=self.num_bytes) if self.fpp is None else Sizing(self.fpp)


@dataclass
class _Plan:
    """What becomes of each filter."""

    old: dict[ChunkKey, tuple[int, float]] = field(default_factory=dict)
    """Size and error rate of those that change."""
    folded: dict[ChunkKey, Spooled] = field(default_factory=dict)
    unreached: dict[ChunkKey, str] = field(default_factory=dict)
    """Why folding does not do."""
    unchanged: int = 0


def resize_filters(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    fpp: float | None = None,
    num_bytes: int | None = None,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    rebuild: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    keys: KeysGiven = None,
    jobs: int | None = None,
    max_page_bytes: MaxPageBytes = None,
    progress: Progress | None = None,
    cross_checks: CrossChecks | None = None,
) -> ResizeReport:
    """Bring the filters of `columns` (of all where empty) to the smallest size that keeps `fpp`, or to `num_bytes` a row group.

    A filter that folding does not bring there is left as it is, or, with `rebuild`, built from the data; where none could be changed,
    that is refused. Where all have the size already, the file is left alone, or copied to `output`. With `rebuild`,
    a page that states more than `max_page_bytes` uncompressed bytes is not read.

    `cross_checks` is as in `add_filters`.

    Raises RefusedError, UnreadableError, UsageError, WriteError; the old file is whole in every case.
    """
    aim = Aim(fpp, num_bytes)
    target = choose_target(path, output, in_place, allow_table_files, dry_run)
    warnings = warnings_of_interrupted(path, target, keys, dry_run)
    with ExitStack() as opened:
        file = opened.enter_context(ParquetFile.open(path, keys, PageLimit.of(max_page_bytes, jobs)))
        check_changeable(file)
        spool = opened.enter_context(places.open_spool(target, keeps=not dry_run))
        plan = _plan(file, list(_stored(file, choose_columns(file, columns))), aim, spool)
        rebuilt = sorted(plan.unreached) if rebuild else []
        if plan.unreached and not plan.folded and not rebuilt:
            key, why = next(iter(plan.unreached.items()))
            hint = "--rebuild builds it anew from the data"
            raise RefusedError(f"folding does not make it what was asked for: {why}", file=file.name, place=place_of(file, key), hint=hint)
        for row_group, column in rebuilt:
            ensure_buildable(file, row_group, file.footer.columns[column])
        if in_place and (plan.folded or rebuilt):
            places.ensure_replaceable(target)
        meter = Meter(progress, sum(chunk_bytes(file, key) for key in rebuilt) * (1 if dry_run else 2))
        built = build_filters(file, dict.fromkeys(rebuilt, aim.sizing), spool, jobs, meter, cross_checks or CrossChecks())
        warnings += statistics_warnings(file, built)
        filters = {**plan.folded, **built}
        patch = plan_filters(file, filters)
        # Whatever fails here must fail before the file is published.
        report = ResizeReport(
            file=file.name,
            output=redact(target),
            dry_run=dry_run,
            old_bytes=file.source.size,
            new_bytes=patch.size,
            filters=tuple(_resized(file, patch, key, plan.old[key], filters[key], key in built) for key in sorted(filters)),
            unchanged=plan.unchanged,
            left=tuple(f"{place_of(file, key)}: {why}" for key, why in plan.unreached.items() if key not in built),
            data_bytes_read=_bytes_read(built),
            cross_checked=sum(one.verdict.is_cross_checked for one in built.values()),
            not_cross_checked=sum(one.verdict.is_undecodable for one in built.values()),
        )
        if not dry_run and (filters or output is not None):
            warnings += publish(file, target, patch, lambda fresh: _compare(file, fresh, patch, plan.folded, built, jobs, meter))
        if allow_table_files:
            warnings += table_warnings(target, is_new=output is not None, added=patch.size - file.source.size)
        return replace(report, warnings=tuple(warnings))


def _stored(file: ParquetFile, columns: list[Column]) -> Iterable[StoredFilter]:
    """The filters of these columns, or of all; RefusedError where there is none, or one that cannot be understood."""
    chosen = {column.index for column in columns or file.footer.columns}
    count = dict.fromkeys(chosen, 0)
    for row_group in range(file.footer.num_row_groups):
        for column in (file.footer.columns[index] for index in sorted(chosen)):
            if file.footer.filter_place(row_group, column.index) is None:
                continue
            place = place_of(file, (row_group, column.index))
            if (encryption := file.encryption_of(row_group, column)) is not None:
                raise RefusedError(encryption, file=file.name, place=place, hint="leave the column out")
            stored = file.stored_filter(row_group, column)
            assert stored is not None
            if stored.header.beyond_us:
                hint = f"sbbf repair --rebuild {shlex.quote(file.name)} --in-place replaces it"
                raise RefusedError(stored.header.beyond_us, file=file.name, place=place, hint=hint)
            count[column.index] += 1
            yield stored
    for column in columns:
        if not count[column.index]:
            raise RefusedError("it has no filter to resize", file=file.name, place=f"column {column.name}")
    if not any(count.values()):
        raise RefusedError("no column has a filter to resize", file=file.name)


def _plan(file: ParquetFile, filters: Iterable[StoredFilter], aim: Aim, spool: Spool) -> _Plan:
    plan = _Plan()
    for stored in filters:
        key = stored.row_group, stored.column
        bloom = BloomFilter(file.read_bitset(stored))
        plan.old[key] = bloom.num_bytes, bloom.fpp
        folded, why = aim.fold(bloom)
        if why is not None:
            plan.unreached[key] = why
        elif folded is bloom:
            plan.unchanged += 1
        else:
            plan.folded[key] = Spooled.of(Built(folded, 0, 0), spool, file.filter_pieces(*key, folded.bitset))
    return plan


def _compare(
    file: ParquetFile,
    fresh: ParquetFile,
    patch: Patch,
    folded: Mapping[ChunkKey, Spooled],
    rebuilt: Iterable[ChunkKey],
    jobs: int | None,
    meter: Meter,
) -> None:
    """Folded filters must be in the new file as they were made; filters that were rebuilt must hold every value."""
    ensure_same_footer(file, fresh, patch.places)
    ensure_written(file, fresh, patch, folded, "is not what it was folded to")
    ensure_holding_all(file, fresh, patch, rebuilt, jobs, meter)


def _bytes_read(built: Mapping[ChunkKey, Spooled]) -> int:
    return sum(one.bytes_read for one in built.values())


def _resized(file: ParquetFile, patch: Patch, key: ChunkKey, old: tuple[int, float], new: Spooled, rebuilt: bool) -> ResizedFilter:
    return ResizedFilter(
        row_group=key[0],
        column=file.footer.columns[key[1]].name,
        way=REBUILT if rebuilt else FOLDED,
        offset=patch.places[key].offset,
        old_bytes=old[0],
        new_bytes=new.num_bytes,
        old_fpp=old[1],
        new_fpp=new.fpp,
    )
