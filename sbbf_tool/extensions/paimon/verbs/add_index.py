"""Add Bloom filter indexes to all data files of a table that have none, and commit them as Paimon
does.

A container of at most `file-index.in-manifest-threshold` bytes is stored in the manifest, a larger
one in `<data file>.index`. Present indexes of other columns and other types are kept in the new
container, bit for bit; the old file stays for the snapshots that refer to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sbbf_tool.bloom import sizing
from sbbf_tool.display import redact
from sbbf_tool.errors import (
    ErrorPlace,
    OversizedPageError,
    RefusedError,
    UnreadableError,
    UsageError,
)
from sbbf_tool.extensions.paimon.bloom64 import KIND
from sbbf_tool.extensions.paimon.commit_plan import IndexChange
from sbbf_tool.extensions.paimon.fast_hash import key_of
from sbbf_tool.extensions.paimon.file_in_table import request_in_file
from sbbf_tool.extensions.paimon.files import FileIO
from sbbf_tool.extensions.paimon.index_container import Bodies
from sbbf_tool.extensions.paimon.index_options import (
    IndexRequest,
    index_requests,
    parse_bloom_columns,
    why_unused,
)
from sbbf_tool.extensions.paimon.publish import ADDRESS, Placement, carry_out, open_changeable
from sbbf_tool.extensions.paimon.reports import AddIndexReport, BuiltColumn, NewIndex, SkippedFile
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable, find_index
from sbbf_tool.extensions.paimon.table_schema import TableSchema, resolve_column
from sbbf_tool.extensions.paimon.verbs.build import BuiltIndex, build_index, build_verified
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.numbers import format_percent
from sbbf_tool.running.table import read_metadata


def add_paimon_index(
    table: str | os.PathLike[str],
    columns: str | IndexRequest | Iterable[str | IndexRequest] = (),
    *,
    rebuild: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    allow_outside: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: FileIO | None = None,
) -> AddIndexReport:
    """Index these columns, by their current names, in every data file that has no Bloom filter for
    them; with `rebuild="all"`, in every one.

    Without columns, the columns in the options of the table are indexed, with the `items` and `fpp`
    of the options. A dry run builds the indexes but writes nothing. A filter whose false-positive
    rate would be above one half, and above twice its target, is left out unless `force`. Data files
    outside the directory of the table are skipped. With `allow_outside` they are read, and indexed
    if the index fits into the manifest, since nothing is written outside. Raises UsageError for a
    column that does not exist or cannot be indexed, RefusedError for a table whose commits are not
    supported and if writing is not permitted, WriteError if writing fails, and UnreadableError if
    the table cannot be read; in all these cases the table is unchanged.
    """
    paimon_table = open_changeable(files, table, allow_outside)
    with ErrorPlace(paimon_table.path):
        requests = _resolve_requests(paimon_table.schema, index_requests(columns))
    adding = _Adding(paimon_table, requests, rebuild == "all", force, max_page_bytes)
    snapshot_after, new_indexes, missing = carry_out(
        paimon_table, adding.build_changes(), dry_run=dry_run
    )
    return AddIndexReport(
        table=paimon_table.path,
        dry_run=dry_run,
        snapshot_before=paimon_table.snapshot_id,
        snapshot_after=snapshot_after,
        skipped=(*adding.skipped, *missing),
        notes=_build_notes(paimon_table.schema, requests),
        new_indexes=new_indexes,
    )


def _resolve_requests(schema: TableSchema, requests: list[IndexRequest]) -> list[IndexRequest]:
    """Return the requests, by default those of the table's options.

    Raises UsageError without any, or for a column that cannot be indexed.
    """
    if not requests:
        requests = list(parse_bloom_columns(schema.options).values())
    if not requests:
        raise UsageError(
            "there is no column to index", hint="name one; the options of the table name none"
        )
    for request in requests:
        _, _, data_type = resolve_column(schema, request.column)
        if key_of(data_type) is None:
            raise UsageError(
                f"column {request.column}: Paimon has no Bloom filter for type {data_type}"
            )
    return requests


@dataclass
class _Adding:
    """The addition of indexes to the data files of a table; `skipped` are those without one."""

    table: PaimonTable
    requests: Sequence[IndexRequest]
    rebuilds: bool
    force: bool
    max_page_bytes: MaxPageBytes
    skipped: list[SkippedFile] = field(default_factory=list)

    def build_changes(self) -> Iterator[tuple[IndexChange, NewIndex]]:
        """Build the indexes one by one, so that only one container is in memory."""
        placement = Placement(self.table)
        for live in self.table.live_files:
            planned = self._build_change(live, placement)
            if planned is not None:
                yield planned

    def _build_change(
        self, live: IndexedFile, placement: Placement
    ) -> tuple[IndexChange, NewIndex] | None:
        """Build the index of a data file; None if the file gets none."""
        reason = _why_skipped(live)
        if reason is not None:
            self._skip(live, reason)
            return None
        present = find_index(self.table.files, live)
        if present.problem is not None:
            reason = f"its index cannot be used: {present.problem}; remove unreadable indexes first"
            self._skip(live, reason, is_unreadable=True)
            return None
        bodies = present.container.bodies if present.container is not None else {}
        requests = self._find_requests(live, bodies)
        if not requests:
            if bodies:
                self._skip(live, "already indexed")
            return None
        try:
            data = read_metadata(self.table.files, live.path)
            index = build_index(data, live.path, requests, self.max_page_bytes)
            columns = self._leave_out_saturated(live, index)
            if not columns:
                return None
            filters = {column.column: index.filters[column.column] for column in columns}
            change = placement.put(live, _merge(bodies, filters))
        except (UnreadableError, UsageError, RefusedError) as error:
            error.file = None  # the report names the file
            is_unreadable = isinstance(error, UnreadableError | OversizedPageError)
            self._skip(live, str(error), is_unreadable=is_unreadable)
            return None
        return change, NewIndex(live.file.name, *change.place, columns)

    def _skip(
        self,
        live: IndexedFile,
        reason: str,
        *,
        is_unreadable: bool = False,
        is_refused: bool = False,
    ) -> None:
        self.skipped.append(SkippedFile(live.file.name, reason, is_unreadable, is_refused))

    def _find_requests(self, live: IndexedFile, present: Bodies) -> list[IndexRequest]:
        """Return the requests for columns that get a filter, by their names in the data file."""
        requests = []
        for request in self.requests:
            renamed = request_in_file(self.table, live, request)
            if renamed is None:
                self._skip(live, f"column {request.column} is newer than the file")
            elif self.rebuilds or KIND not in present.get(renamed.column, {}):
                requests.append(renamed)
        return requests

    def _leave_out_saturated(self, live: IndexedFile, index: BuiltIndex) -> tuple[BuiltColumn, ...]:
        """Return the columns without those whose filters exclude hardly any value."""
        columns = []
        for column in index.columns:
            if self.force or column.estimated_fpp <= max(2 * column.fpp, sizing.SATURATED_FPP):
                columns.append(column)
                continue
            reason = (
                f"the filter of column {column.column} would have a false-positive rate of "
                f"{format_percent(column.estimated_fpp)}: items = {column.items} for "
                f"{column.ndv:,} values; it is written only if forced"
            )
            self._skip(live, reason, is_refused=True)
        return tuple(columns)


def _merge(present: Bodies, filters: Mapping[str, bytes]) -> bytes:
    """Return the container of the new filters and of the present indexes.

    Present indexes that the filters do not replace are kept, bit for bit.
    """
    bodies = {column: dict(kinds) for column, kinds in present.items()}
    for column, body in filters.items():
        bodies.setdefault(column, {})[KIND] = body
    if bodies == present:
        raise UsageError("the index has the same filters already")
    return build_verified(bodies)


def _why_skipped(live: IndexedFile) -> str | None:
    if live.file.external_path is not None and ADDRESS.match(live.file.external_path):
        return f"the file is in other storage: {redact(live.file.external_path)}"
    return live.outside


def _build_notes(schema: TableSchema, requests: Sequence[IndexRequest]) -> tuple[str, ...]:
    notes = []
    reason = why_unused(schema)
    if reason is not None:
        notes.append(f"Paimon does not use the indexes: {reason}")
    table_columns = parse_bloom_columns(schema.options)
    missing = [request.column for request in requests if request.column not in table_columns]
    if missing:
        names = ", ".join(missing)
        notes.append(
            f"file-index.bloom-filter.columns does not name {names}: data files that Paimon "
            "writes later will have no index for it"
        )
    return tuple(notes)
