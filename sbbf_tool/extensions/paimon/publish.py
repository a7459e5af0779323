"""Commits of changed indexes of existing data files: which tables take them, where containers go,
and how a commit is written.

The commit takes effect when the snapshot file exists. The file is created atomically, and only if
no other commit has taken its number; otherwise the commit is planned again. LATEST is a hint and is
written last. Files that were written for a failed commit are deleted.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from sbbf_tool import log
from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.extensions.paimon.commit_plan import CommitPlan, IndexChange, plan_commit
from sbbf_tool.extensions.paimon.files import FileIO, join, list_names
from sbbf_tool.extensions.paimon.index_options import parse_boolean, parse_manifest_threshold
from sbbf_tool.extensions.paimon.known_fields import check_publishable
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX
from sbbf_tool.extensions.paimon.reports import SkippedFile
from sbbf_tool.extensions.paimon.snapshots import snapshot_path
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable, open_table
from sbbf_tool.running.table import NewFiles, attempts, overtaken_error
from sbbf_tool.storage.system_calls import kind_of, reason_of

Row = TypeVar("Row")

_ATTEMPTS = 10
_FIRST_WAIT = 0.02
"""Seconds; the wait doubles per attempt."""
_LONGEST_WAIT = 0.5


def publish(
    files: FileIO, path: str, changes: Iterable[IndexChange]
) -> tuple[int | None, set[str]]:
    """Write these indexes one by one and commit the changes to the latest state of the table.

    Return the number of the snapshot, None if no data file is as it was, and the data files that
    another commit deleted, or whose index it changed, in the meantime.

    Raises RefusedError if the table has fields that this tool cannot preserve, or other commits
    come first in every attempt, and OSError if writing fails; in these cases, the written files are
    deleted. Raises WriteError, and deletes nothing, if it is unknown whether the commit succeeded.
    """
    with NewFiles(files) as index_files:
        pending = []
        for change in changes:
            if change.path is not None and change.container is not None:
                index_files.create(change.path, change.container)
            pending.append(change if change.path is None else replace(change, container=b""))
        for _ in attempts(_ATTEMPTS, _FIRST_WAIT, _LONGEST_WAIT):
            table = open_table(files, path)
            present, missing = _split_by_presence(table, pending)
            if table.snapshot is None or not present:
                return None, _names_of(pending)
            now_millis = time.time_ns() // 1_000_000
            unique = str(uuid.uuid4())
            plan = plan_commit(table, table.snapshot, present, now_millis, unique)
            if not _write_commit(files, table, plan, index_files):
                continue
            latest = str(plan.snapshot_id).encode()
            with contextlib.suppress(OSError):  # the table is valid if these steps fail
                files.replace(join(path, "snapshot", "LATEST"), latest)
                for change in missing:
                    if change.path is not None:
                        files.remove(change.path)
            log.info("published snapshot %s of %s", plan.snapshot_id, redact(path))
            return plan.snapshot_id, _names_of(missing)
    raise overtaken_error(_ATTEMPTS, path)


def _names_of(changes: Iterable[IndexChange]) -> set[str]:
    return {change.entry.file.name for change in changes}


def _split_by_presence(
    table: PaimonTable, changes: Iterable[IndexChange]
) -> tuple[list[IndexChange], list[IndexChange]]:
    """Split into the changes of data files that are as they were, and those of the other files."""
    live = {indexed_file.entry.identity for indexed_file in table.live_files}
    present = []
    missing = []
    for change in changes:
        if change.entry.identity in live:
            present.append(change)
        else:
            missing.append(change)
    return present, missing


def _write_commit(
    files: FileIO, table: PaimonTable, plan: CommitPlan, index_files: NewFiles
) -> bool:
    """Write the manifests and the snapshot; return whether the snapshot is this commit's.

    If it is, or that is unknown, the manifests and `index_files` are kept.
    """
    with NewFiles(files) as manifests:
        for name, data in plan.manifests:
            manifests.create(table.manifest_path(name), data)
        # From here on a snapshot may refer to them.
        index_files.keep = manifests.keep = True
        try:
            path = snapshot_path(table.path, plan.snapshot_id)
            is_ours = _create_snapshot(files, path, plan.snapshot)
        except OSError:
            index_files.keep = manifests.keep = False
            raise
        if not is_ours:
            index_files.keep = manifests.keep = False
        return is_ours


def _create_snapshot(files: FileIO, path: str, data: bytes) -> bool:
    """Create the snapshot; return whether it is this commit's.

    It is if the file is new, or has the same bytes (a response may get lost). Raises OSError if the
    file does not exist, and WriteError if that is unknown.
    """
    try:
        files.create(path, data)
    except OSError as error:
        try:
            existing_bytes = files.read(path)
        except FileNotFoundError:
            raise error from None
        except OSError:
            raise WriteError(
                f"{error.strerror or error}; it is unknown whether the commit succeeded",
                file=path,
                hint="check whether the file exists",
            ) from error
        return existing_bytes == data
    return True


REWRITE = "let Paimon do it: CALL sys.rewrite_file_index"
ADDRESS = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:")
"""The beginning of the address of a file in other storage."""


def open_changeable(
    files: FileIO | None, path: str | os.PathLike[str], allow_outside: bool
) -> PaimonTable:
    """Open a table to change its indexes.

    Raises RefusedError if commits of the table involve more than this tool supports.
    """
    table = open_table(files, path, allow_outside=allow_outside)
    reason = _why_unchangeable(table)
    if reason is not None:
        raise RefusedError(
            f"the indexes of this table cannot be changed: {reason}", file=table.path, hint=REWRITE
        )
    if not table.files.is_writable or ADDRESS.match(table.path):
        raise RefusedError(
            "a commit needs a local file system, on which a file can be created atomically",
            file=table.path,
            hint=REWRITE,
        )
    check_publishable(table)
    return table


def _why_unchangeable(table: PaimonTable) -> str | None:
    """Return why the indexes of a table cannot be changed; None if they can."""
    options = table.schema.options
    if table.schema.primary_keys:
        return "it has a primary key, so compaction rewrites its files"
    if "/branch/branch-" in f"{table.path}/":
        return "it is a branch"
    if options.get("type", "table") != "table":
        return f"it is of type {options['type']}"
    if parse_boolean(options, "data-evolution.enabled", default=False):
        return "each of its data files has only some of the columns"
    if options.get("metadata.iceberg.storage", "disabled") != "disabled":
        return "each commit also writes Iceberg metadata"
    return None


class Placement:
    """The places of new containers: in the manifest, or in a file with a free name.

    The table has a threshold, up to which containers are in the manifest.
    """

    def __init__(self, table: PaimonTable) -> None:
        self._table = table
        self._threshold = parse_manifest_threshold(table.schema.options)
        self._names: dict[str, set[str]] = {}
        """The names in each directory."""

    def put(self, live: IndexedFile, container: bytes) -> IndexChange:
        """Return the change that gives a data file this container.

        Raises RefusedError if the file of the container would be outside the table.
        """
        if len(container) <= self._threshold:
            return IndexChange(live.entry, container, None)
        directory = live.directory
        if self._table.files.find_outside_place(directory) is not None:
            raise RefusedError("the index would be written outside the table")
        if directory not in self._names:
            self._names[directory] = set(list_names(self._table.files, directory))
        name = _choose_index_name(live.file.name, self._names[directory])
        return IndexChange(live.entry, container, join(directory, name))


def _choose_index_name(data_file: str, existing_names: set[str]) -> str:
    """Return `<data file>.index`, or the next free name in Paimon's numbering.

    The numbered names are `<data file>-1.index`, `-2.index`, ...
    """
    name = f"{data_file}{INDEX_SUFFIX}"
    number = 0
    while name in existing_names:
        number += 1
        name = f"{data_file}-{number}{INDEX_SUFFIX}"
    return name


def carry_out(
    table: PaimonTable, changes: Iterable[tuple[IndexChange, Row]], *, dry_run: bool
) -> tuple[int | None, tuple[Row, ...], tuple[SkippedFile, ...]]:
    """Publish the changes as one commit: see `publish`.

    Return the number of the new snapshot, the rows of the changes that were made, and the files
    that another commit changed in the meantime. A dry run only plans each of the changes, and keeps
    none. Raises RefusedError or WriteError; except for an unknown outcome, nothing is then changed.
    """
    rows: dict[str, Row] = {}

    def take_rows() -> Iterator[IndexChange]:
        for change, row in changes:
            rows[change.entry.file.name] = row
            yield change

    snapshot_id = None
    missing = set[str]()
    try:
        if dry_run:
            deque(take_rows(), maxlen=0)
        else:
            snapshot_id, missing = publish(table.files, table.path, take_rows())
    except FileExistsError as error:
        raise RefusedError(
            "the file was created while indexes were built: another process adds indexes, too; "
            "nothing was changed",
            file=error.filename or table.path,
            hint="run again",
        ) from error
    except OSError as error:
        raise kind_of(error)(
            f"{reason_of(error)}; nothing was changed", file=error.filename or table.path
        ) from error
    reason = "another commit deleted it, or changed its index, in the meantime"
    skipped = tuple(SkippedFile(name, reason) for name in sorted(missing))
    return snapshot_id, tuple(rows[name] for name in rows if name not in missing), skipped
