"""Add Bloom filter indexes to all data files of a table that have no index, and commit them as Paimon does.

A container of at most `file-index.in-manifest-threshold` bytes is stored in the manifest, a larger one in `<data file>.index`. Data files
that have an index are skipped: only Paimon can rewrite an index that is not a Bloom filter.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from sbbf_tool.display import redact
from sbbf_tool.editing.paimon_index import BuiltIndex, build_index
from sbbf_tool.errors import ErrorPlace, OversizedPageError, RefusedError, UnreadableError, UsageError, WriteError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.hints import Hint
from sbbf_tool.paimon.commit_plan import Addition, check_publishable
from sbbf_tool.paimon.fast_hash import key_of
from sbbf_tool.paimon.files import Files, WritableFiles, join, list_names, read_file
from sbbf_tool.paimon.index_options import IndexRequest, parse_bloom_columns, parse_boolean, parse_manifest_threshold
from sbbf_tool.paimon.manifest import INDEX_SUFFIX
from sbbf_tool.paimon.publish import Publication, publish
from sbbf_tool.paimon.reading_rules import why_unused
from sbbf_tool.paimon.requests import index_requests, request_in_file
from sbbf_tool.paimon.table import LiveFile, Table, open_table
from sbbf_tool.paimon.table_schema import TableSchema, resolve_column
from sbbf_tool.reports.paimon import AddIndexReport, NewIndex, SkippedFile
from sbbf_tool.storage.folders import LocalFolders
from sbbf_tool.storage.system_errors import FORBIDDEN, reason_of

_HINT = "let Paimon do it: CALL sys.rewrite_file_index"
_ADDRESS = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:")


def add_paimon_index(
    table: str | os.PathLike[str],
    columns: str | IndexRequest | Iterable[str | IndexRequest] = (),
    *,
    dry_run: bool = False,
    allow_outside: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: Files | None = None,
) -> AddIndexReport:
    """Index these columns, by their current names, in every data file that has no index.

    Without columns, the columns in the options of the table are indexed, with the `items` and `fpp` of the options. A dry run builds the
    indexes but writes nothing. Data files outside the directory of the table are skipped. With `allow_outside` they are read, and indexed
    if the index fits into the manifest, since nothing is written outside. Raises UsageError for a column that does not exist or cannot be
    indexed, RefusedError for a table whose commits are not supported and if writing is not permitted, WriteError if writing fails, and
    UnreadableError if the table cannot be read; in all these cases the table is unchanged.
    """
    files = files or LocalFolders()
    paimon_table = open_table(files, os.fsdecode(table), allow_outside=allow_outside)
    _check_table(paimon_table)
    check_publishable(paimon_table)
    with ErrorPlace(paimon_table.path):
        requests = _resolve_requests(paimon_table.schema, index_requests(columns))
    new_indexes: list[NewIndex] = []
    skipped: list[SkippedFile] = []
    additions = _build_additions(paimon_table, requests, new_indexes, skipped, max_page_bytes)
    publication, missing = None, set[str]()
    if dry_run:
        deque(additions, maxlen=0)  # build each, keep none
    else:
        publication = _commit(paimon_table.files, paimon_table.path, additions)
        missing = set(publication.missing_files) if publication else {each.data_file for each in new_indexes}
    skipped += (SkippedFile(name, "another commit deleted or indexed it in the meantime") for name in sorted(missing))
    return AddIndexReport(
        paimon_table.path,
        dry_run,
        paimon_table.snapshot.id if paimon_table.snapshot else None,
        publication.snapshot_id if publication else None,
        tuple(each for each in new_indexes if each.data_file not in missing),
        tuple(skipped),
        _build_notes(paimon_table.schema, requests),
    )


def _commit(files: WritableFiles, path: str, additions: Iterable[Addition]) -> Publication | None:
    try:
        return publish(files, path, additions)
    except FileExistsError as error:
        message = "the file was created while indexes were built: another process adds indexes, too; nothing was changed"
        raise RefusedError(message, file=error.filename or path, hint="run again") from error
    except OSError as error:
        kind = RefusedError if error.errno in FORBIDDEN else WriteError
        raise kind(f"{reason_of(error)}; nothing was changed", file=error.filename or path) from error


def _check_table(table: Table) -> None:
    """Raise RefusedError for a table whose commits involve more than this tool supports."""
    schema, options = table.schema, table.schema.options
    reasons = (
        ("it has a primary key, so compaction rewrites its files", bool(schema.primary_keys)),
        ("it is a branch", "/branch/branch-" in f"{table.path}/"),
        (f"it is of type {options.get('type')}", options.get("type", "table") != "table"),
        ("each of its data files has only some of the columns", parse_boolean(options, "data-evolution.enabled", default=False)),
        ("each commit also writes Iceberg metadata", options.get("metadata.iceberg.storage", "disabled") != "disabled"),
    )
    for reason, applies in reasons:
        if applies:
            raise RefusedError(f"indexes cannot be added to this table: {reason}", file=table.path, hint=_HINT)
    if not table.files.is_writable or _ADDRESS.match(table.path):
        raise RefusedError("a commit needs a local file system, on which a file can be created atomically", file=table.path, hint=_HINT)


def _resolve_requests(schema: TableSchema, requests: list[IndexRequest]) -> list[IndexRequest]:
    requests = requests or list(parse_bloom_columns(schema.options).values())
    if not requests:
        raise UsageError(
            "there is no column to index", hint=Hint("name one with {columns}; the options of the table name none", columns=...)
        )
    for request in requests:
        data_type = resolve_column(schema, request.column)[2]
        if key_of(data_type) is None:
            raise UsageError(f"column {request.column}: Paimon has no Bloom filter for type {data_type}")
    return requests


def _build_additions(
    table: Table,
    requests: Sequence[IndexRequest],
    new_indexes: list[NewIndex],
    skipped: list[SkippedFile],
    max_page_bytes: MaxPageBytes,
) -> Iterator[Addition]:
    """Build the indexes one by one, so that only one container is in memory. Append the result of each file to the lists."""
    names: dict[str, set[str]] = {}
    threshold = parse_manifest_threshold(table.schema.options)
    for live in table.live_files:
        report = _build(table, live, requests, skipped, max_page_bytes)
        if report is None:
            continue
        path = None
        if len(report.container) > threshold:
            if table.files.find_outside_place(live.directory) is not None:
                skipped.append(SkippedFile(live.file.name, "the index would be written outside the table"))
                continue
            if live.directory not in names:
                names[live.directory] = set(list_names(table.files, live.directory))
            path = join(live.directory, _choose_index_name(live.file.name, names[live.directory]))
        new_indexes.append(NewIndex(live.file.name, "file" if path else "embedded", path, len(report.container), report.columns))
        yield Addition(live.entry, report.container, path)


def _build(
    table: Table, live: LiveFile, requests: Sequence[IndexRequest], skipped: list[SkippedFile], max_page_bytes: MaxPageBytes
) -> BuiltIndex | None:
    """Build the container of a data file; None, with a reason in `skipped`, if it gets no index."""
    file = live.file
    if reason := _why_skipped(live):
        skipped.append(SkippedFile(file.name, reason))
        return None
    in_file = []
    for request in requests:
        renamed = request_in_file(table, live, request)
        if renamed is None:
            skipped.append(SkippedFile(file.name, f"column {request.column} is newer than the file"))
        else:
            in_file.append(renamed)
    if not in_file:
        return None
    try:
        return build_index(read_file(table.files, live.path), live.path, in_file, max_page_bytes)
    except (UnreadableError, UsageError, OversizedPageError) as error:
        error.file = None  # the report names the file
        skipped.append(SkippedFile(file.name, str(error), is_unreadable=not isinstance(error, UsageError)))
        return None


def _why_skipped(live: LiveFile) -> str | None:
    file = live.file
    if file.embedded_index is not None or file.index_files:
        return "already indexed"
    if file.external_path is not None and _ADDRESS.match(file.external_path):
        return f"the file is in other storage: {redact(file.external_path)}"
    return live.outside


def _choose_index_name(data_file: str, existing_names: set[str]) -> str:
    """Return `<data file>.index`, or the next free name in Paimon's numbering: `<data file>-1.index`, `-2.index`, ..."""
    name, at = data_file + INDEX_SUFFIX, 0
    while name in existing_names:
        at += 1
        name = f"{data_file}-{at}{INDEX_SUFFIX}"
    return name


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
