"""Add Bloom filter indexes to all data files of a table that have none, and commit them as Paimon does.

A container of at most `file-index.in-manifest-threshold` bytes is stored in the manifest, a larger one in `<data file>.index`. Present
indexes of other columns and other types are kept in the new container, bit for bit; the old file stays for the snapshots that refer to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from sbbf_tool.bloom import sizing
from sbbf_tool.display import redact
from sbbf_tool.errors import ErrorPlace, OversizedPageError, RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND
from sbbf_tool.extensions.paimon.build_index import BuiltIndex, build_index
from sbbf_tool.extensions.paimon.commit_plan import IndexChange
from sbbf_tool.extensions.paimon.fast_hash import key_of
from sbbf_tool.extensions.paimon.files import FileIO, read_file
from sbbf_tool.extensions.paimon.index_container import Container, build_container, lay_out, parse_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest, index_requests, parse_bloom_columns, why_unused
from sbbf_tool.extensions.paimon.publish import ADDRESS, Placement, carry_out, ensure_changeable
from sbbf_tool.extensions.paimon.reports import AddIndexReport, NewIndex, SkippedFile
from sbbf_tool.extensions.paimon.table import EMBEDDED, FILE, IndexedFile, PaimonTable, find_index, open_table, request_in_file
from sbbf_tool.extensions.paimon.table_schema import TableSchema, resolve_column
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.numbers import format_percent


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
    """Index these columns, by their current names, in every data file that has no Bloom filter for them; with `rebuild="all"`, in
    every one.

    Without columns, the columns in the options of the table are indexed, with the `items` and `fpp` of the options. A dry run builds the
    indexes but writes nothing. A filter whose false-positive rate would be above one half, and above twice its target, is left out
    unless `force`. Data files outside the directory of the table are skipped. With `allow_outside` they are read, and indexed
    if the index fits into the manifest, since nothing is written outside. Raises UsageError for a column that does not exist or cannot be
    indexed, RefusedError for a table whose commits are not supported and if writing is not permitted, WriteError if writing fails, and
    UnreadableError if the table cannot be read; in all these cases the table is unchanged.
    """
    paimon_table = open_table(files, table, allow_outside=allow_outside)
    ensure_changeable(paimon_table)
    with ErrorPlace(paimon_table.path):
        requests = _resolve_requests(paimon_table.schema, index_requests(columns))
    new_indexes: list[NewIndex] = []
    skipped: list[SkippedFile] = []
    changes = _build_changes(paimon_table, requests, new_indexes, skipped, rebuild == "all", force, max_page_bytes)
    snapshot_id, missing = carry_out(paimon_table, changes, dry_run=dry_run)
    skipped += (SkippedFile(name, "another commit deleted or indexed it in the meantime") for name in sorted(missing))
    return AddIndexReport(
        table=paimon_table.path,
        dry_run=dry_run,
        snapshot_before=paimon_table.snapshot_id,
        snapshot_after=snapshot_id,
        new_indexes=tuple(each for each in new_indexes if each.data_file not in missing),
        skipped=tuple(skipped),
        notes=_build_notes(paimon_table.schema, requests),
    )


def _resolve_requests(schema: TableSchema, requests: list[IndexRequest]) -> list[IndexRequest]:
    requests = requests or list(parse_bloom_columns(schema.options).values())
    if not requests:
        raise UsageError("there is no column to index", hint="name one; the options of the table name none")
    for request in requests:
        data_type = resolve_column(schema, request.column)[2]
        if key_of(data_type) is None:
            raise UsageError(f"column {request.column}: Paimon has no Bloom filter for type {data_type}")
    return requests


def _build_changes(
    table: PaimonTable,
    requests: Sequence[IndexRequest],
    new_indexes: list[NewIndex],
    skipped: list[SkippedFile],
    rebuilds: bool,
    force: bool,
    max_page_bytes: MaxPageBytes,
) -> Iterator[IndexChange]:
    """Build the indexes one by one, so that only one container is in memory. Append the result of each file to the lists."""
    placement = Placement(table)
    for live in table.live_files:
        report = _build(table, live, requests, skipped, rebuilds, force, max_page_bytes)
        if report is None:
            continue
        try:
            path = placement.choose_path(live, len(report.container))
        except RefusedError as error:
            skipped.append(SkippedFile(live.file.name, error.message))
            continue
        new_indexes.append(NewIndex(live.file.name, FILE if path else EMBEDDED, path, len(report.container), report.columns))
        yield IndexChange(live.entry, report.container, path)


def _build(
    table: PaimonTable,
    live: IndexedFile,
    requests: Sequence[IndexRequest],
    skipped: list[SkippedFile],
    rebuilds: bool,
    force: bool,
    max_page_bytes: MaxPageBytes,
) -> BuiltIndex | None:
    """Build the container of a data file, with its present indexes; None, with a reason in `skipped`, if it gets no other index."""
    file = live.file
    if reason := _why_skipped(live):
        skipped.append(SkippedFile(file.name, reason))
        return None
    index = find_index(table.files, live)
    if index.problem is not None:
        reason = f"its index cannot be used: {index.problem}; remove unreadable indexes first"
        skipped.append(SkippedFile(file.name, reason, is_unreadable=True))
        return None
    in_file = []
    for request in requests:
        renamed = request_in_file(table, live, request)
        if renamed is None:
            skipped.append(SkippedFile(file.name, f"column {request.column} is newer than the file"))
        elif rebuilds or index.container is None or KIND not in index.container.indexes.get(renamed.column, {}):
            in_file.append(renamed)
    if not in_file:
        if index.container is not None:
            skipped.append(SkippedFile(file.name, "already indexed"))
        return None
    try:
        new_index = build_index(read_file(table.files, live.path), live.path, in_file, max_page_bytes)
        if not force:
            new_index = _leave_out_saturated(new_index, file.name, skipped)
        if not new_index.columns:
            return None
        return new_index if index.container is None else _merge(index.container, new_index)
    except (UnreadableError, UsageError, OversizedPageError) as error:
        error.file = None  # the report names the file
        skipped.append(SkippedFile(file.name, str(error), is_unreadable=not isinstance(error, UsageError)))
        return None


def _leave_out_saturated(index: BuiltIndex, data_file: str, skipped: list[SkippedFile]) -> BuiltIndex:
    """Return the index without the filters that exclude hardly any value; append them to `skipped`."""
    columns = tuple(column for column in index.columns if column.estimated_fpp <= max(2 * column.fpp, sizing.SATURATED_FPP))
    if len(columns) == len(index.columns):
        return index
    for column in index.columns:
        if column not in columns:
            rate = f"would have a false-positive rate of {format_percent(column.estimated_fpp)}: items = {column.items}"
            reason = f"the filter of column {column.column} {rate} for {column.ndv:,} values; it is written only if forced"
            skipped.append(SkippedFile(data_file, reason, is_refused=True))
    bodies = parse_container(index.container).bodies
    return BuiltIndex(columns, build_container(lay_out({column.column: bodies[column.column] for column in columns})))


def _merge(present: Container, index: BuiltIndex) -> BuiltIndex:
    """Return the new filters with all present indexes that they do not replace, bit for bit."""
    new = parse_container(index.container)
    bodies = present.bodies
    for column, kinds in new.bodies.items():
        bodies.setdefault(column, {}).update(kinds)
    container = build_container(lay_out(bodies))
    if parse_container(container).bodies != bodies:
        raise SbbfError("the new index differs from the planned one; nothing was written", hint="please report it")
    if container == build_container(present):
        raise UsageError("the index has the same filters already")
    return BuiltIndex(index.columns, container)


def _why_skipped(live: IndexedFile) -> str | None:
    if live.file.external_path is not None and ADDRESS.match(live.file.external_path):
        return f"the file is in other storage: {redact(live.file.external_path)}"
    return live.outside


def _build_notes(schema: TableSchema, requests: Sequence[IndexRequest]) -> tuple[str, ...]:
    notes = []
    if reason := why_unused(schema):
        notes.append(f"Paimon does not use the indexes: {reason}")
    table_columns = parse_bloom_columns(schema.options)
    if missing := [request.column for request in requests if request.column not in table_columns]:
        names = ", ".join(missing)
        notes.append(
            f"file-index.bloom-filter.columns does not name {names}: data files that Paimon writes later will have no index for it"
        )
    return tuple(notes)
