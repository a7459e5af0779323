"""What the operations that change the indexes of a table share: which tables they may change, where a container goes, and the commit."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.extensions.paimon.commit_plan import IndexChange, check_publishable
from sbbf_tool.extensions.paimon.files import WritableFiles, join, list_names
from sbbf_tool.extensions.paimon.index_options import parse_boolean, parse_manifest_threshold
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX
from sbbf_tool.extensions.paimon.publish import CommittedIndexes, publish
from sbbf_tool.extensions.paimon.reports import NewIndex, RemovedIndex
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable
from sbbf_tool.storage.system_calls import FORBIDDEN, reason_of

REWRITE = "let Paimon do it: CALL sys.rewrite_file_index"
ADDRESS = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:")
"""The beginning of the address of a file in other storage."""


def ensure_changeable(table: PaimonTable) -> None:
    """Raise RefusedError for a table whose commits involve more than this tool supports, before any index is built."""
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
            raise RefusedError(f"the indexes of this table cannot be changed: {reason}", file=table.path, hint=REWRITE)
    if not table.files.is_writable or ADDRESS.match(table.path):
        raise RefusedError("a commit needs a local file system, on which a file can be created atomically", file=table.path, hint=REWRITE)
    check_publishable(table)


class Placement:
    """The places of new containers: in the manifest up to the table's threshold, otherwise in a file with a free name."""

    def __init__(self, table: PaimonTable) -> None:
        self._table = table
        self._threshold = parse_manifest_threshold(table.schema.options)
        self._names: dict[str, set[str]] = {}
        """The names in each directory."""

    def choose_path(self, live: IndexedFile, size: int) -> str | None:
        """Return the path of the `.index` file for a container of `size` bytes; None if it goes into the manifest.

        Raises RefusedError if the file would be outside the table.
        """
        if size <= self._threshold:
            return None
        if self._table.files.find_outside_place(live.directory) is not None:
            raise RefusedError("the index would be written outside the table")
        if live.directory not in self._names:
            self._names[live.directory] = set(list_names(self._table.files, live.directory))
        return join(live.directory, _choose_index_name(live.file.name, self._names[live.directory]))


def _choose_index_name(data_file: str, existing_names: set[str]) -> str:
    """Return `<data file>.index`, or the next free name in Paimon's numbering: `<data file>-1.index`, `-2.index`, ..."""
    name, at = data_file + INDEX_SUFFIX, 0
    while name in existing_names:
        at += 1
        name = f"{data_file}-{at}{INDEX_SUFFIX}"
    return name


def carry_out(
    table: PaimonTable, changes: Iterable[IndexChange], results: Sequence[NewIndex] | Sequence[RemovedIndex], *, dry_run: bool
) -> tuple[int | None, set[str]]:
    """Publish the changes as one commit; a dry run only plans each of them, and keeps none.

    `results` has an entry for each change once it is planned. Returns the id of the new snapshot, or None, and the names of the data files
    that the commit left out because another one changed them. Raises what `publish` of the table raises, as RefusedError or WriteError.
    """
    if dry_run:
        deque(changes, maxlen=0)
        return None, set()
    publication = _commit(table.files, table.path, changes)
    if publication is None:
        return None, {each.data_file for each in results}
    return publication.snapshot_id, set(publication.missing_files)


def _commit(files: WritableFiles, path: str, changes: Iterable[IndexChange]) -> CommittedIndexes | None:
    """Publish the changes as one commit. Raises RefusedError or WriteError; except for an unknown outcome, nothing is then changed."""
    try:
        return publish(files, path, changes)
    except FileExistsError as error:
        message = "the file was created while indexes were built: another process adds indexes, too; nothing was changed"
        raise RefusedError(message, file=error.filename or path, hint="run again") from error
    except OSError as error:
        kind = RefusedError if error.errno in FORBIDDEN else WriteError
        raise kind(f"{reason_of(error)}; nothing was changed", file=error.filename or path) from error
