"""Publication of changed indexes of existing data files: writing a planned commit.

The commit takes effect when the snapshot file exists. The file is created atomically, and only if no other commit has taken its number;
otherwise the commit is planned again. LATEST is a hint and is written last. Files that were written for a failed commit are deleted.
"""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sbbf_tool import log
from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.extensions.paimon.commit_plan import IndexChange, plan_commit
from sbbf_tool.extensions.paimon.files import WritableFiles, join
from sbbf_tool.extensions.paimon.table import open_table, snapshot_path

_ATTEMPTS = 10
_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.5
"""Seconds; the wait doubles per attempt."""


@dataclass(frozen=True, slots=True)
class CommittedIndexes:
    snapshot_id: int
    missing_files: tuple[str, ...]
    """Data files that another commit deleted, or whose index it changed, in the meantime."""


def publish(files: WritableFiles, path: str, changes: Iterable[IndexChange]) -> CommittedIndexes | None:
    """Write these indexes one by one and commit the changes to the latest state of the table; None if no data file is as it was.

    Raises RefusedError if the table has fields that this tool cannot preserve, or other commits come first in every attempt, and OSError if
    writing fails; in these cases, the written files are deleted. Raises WriteError, and deletes nothing, if it is unknown whether the
    commit succeeded.
    """
    with _NewFiles(files) as index_files:
        pending = []
        for change in changes:
            if change.path is not None and change.container is not None:
                index_files.create(change.path, change.container)
            pending.append(change if change.path is None else replace(change, container=b""))
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)))  # rival commits must not retry in step
            table = open_table(files, path)
            live = {each.entry.identity for each in table.live_files}
            present = [change for change in pending if change.entry.identity in live]
            if table.snapshot is None or not present:
                return None
            plan = plan_commit(table, table.snapshot, present, time.time_ns() // 1_000_000, str(uuid.uuid4()))
            with _NewFiles(files) as manifests:
                for name, data in plan.manifests:
                    manifests.create(table.manifest_path(name), data)
                index_files.keep = manifests.keep = True  # from here on a snapshot may refer to them
                try:
                    ours = _create_snapshot(files, snapshot_path(path, plan.snapshot_id), plan.snapshot)
                except OSError:
                    index_files.keep = manifests.keep = False
                    raise
                if not ours:
                    index_files.keep = manifests.keep = False
                    continue
            missing = [change for change in pending if change.entry.identity not in live]
            with contextlib.suppress(OSError):  # the table is valid if these steps fail
                files.replace(join(path, "snapshot", "LATEST"), str(plan.snapshot_id).encode())
                for change in missing:
                    if change.path is not None:
                        files.remove(change.path)
            log.info("published snapshot %s of %s", plan.snapshot_id, redact(path))
            return CommittedIndexes(plan.snapshot_id, tuple(change.entry.file.name for change in missing))
    raise RefusedError(
        f"other commits came first in all {_ATTEMPTS} attempts; nothing was changed", file=path, hint="try again when fewer writers commit"
    )


def _create_snapshot(files: WritableFiles, path: str, data: bytes) -> bool:
    """Create the snapshot; return whether it is this commit's: the file is new, or has the same bytes (a response may get lost).

    Raises OSError if the file does not exist, and WriteError if that is unknown.
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
                f"{error.strerror or error}; it is unknown whether the commit succeeded", file=path, hint="check whether the file exists"
            ) from error
        return existing_bytes == data
    return True


class _NewFiles:
    """Files that are deleted at the end unless `keep` is set."""

    def __init__(self, files: WritableFiles) -> None:
        self.files = files
        self.paths: list[str] = []
        self.keep = False

    def create(self, path: str, data: bytes) -> None:
        try:
            self.files.create(path, data)
        except FileExistsError:
            raise
        except OSError:
            # The file may exist without being durable.
            with contextlib.suppress(OSError):
                if self.files.read(path) == data:
                    self.paths.append(path)
            raise
        self.paths.append(path)

    def __enter__(self) -> _NewFiles:
        return self

    def __exit__(self, *exception: object) -> None:
        for path in () if self.keep else self.paths:
            with contextlib.suppress(OSError):
                self.files.remove(path)
