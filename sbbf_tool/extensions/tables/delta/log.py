"""The log of a table: read a snapshot, follow it to newer versions, create the next version
(PROTOCOL.md, "Delta Log Entries").

`_last_checkpoint` is only a hint for where a listing begins: the names in the log decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter

from sbbf_tool.errors import (
    ErrorPlace,
    SbbfError,
    UncertainWriteError,
    UnreadableError,
)
from sbbf_tool.extensions.tables.delta.actions import (
    Action,
    decode,
    parse_actions,
    read_checkpoint,
    read_files,
)
from sbbf_tool.extensions.tables.delta.snapshot import DeltaSnapshot
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import file_name, optional, parse_object, required
from sbbf_tool.running.table import read_metadata
from sbbf_tool.storage.folders import Folders
from sbbf_tool.storage.system_calls import kind_of

_NAME = re.compile(
    r"(?P<version>\d{20})\.(?:(?P<commit>json)|checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[^./]+))?\.(?P<kind>parquet|json))",
    re.ASCII,
)


class Checkpoint(Frozen):
    version: int
    names: tuple[str, ...]
    """Its files: one, or all parts in order."""


class Segment(Frozen):
    """What gives the table at `version`: a checkpoint, and the commits of all later versions."""

    version: int
    checkpoint: Checkpoint | None

    def commits(self) -> range:
        """Return the versions after the checkpoint."""
        start = 0 if self.checkpoint is None else self.checkpoint.version + 1
        return range(start, self.version + 1)


def commit_name(version: int) -> str:
    """Return the name of the file that commits a version."""
    return f"{version:020d}.json"


def split_names(names: Iterable[str]) -> tuple[list[int], list[Checkpoint]]:
    """Return the versions that a log commits, and its complete checkpoints, both in order; other
    names are ignored."""
    commits = []
    checkpoints = []
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        version = int(match["version"])
        if match["commit"]:
            commits.append(version)
        elif match["part"]:
            if match["kind"] == "parquet":
                parts.setdefault((version, int(match["parts"])), {})[int(match["part"])] = name
        elif match["uuid"] or match["kind"] == "parquet":
            checkpoints.append(Checkpoint(version, (name,)))
    for (version, count), by_number in parts.items():
        numbers = sorted(by_number)
        if len(numbers) == count and numbers[0] == 1 and numbers[-1] == count:
            in_order = tuple(by_number[number] for number in numbers)
            checkpoints.append(Checkpoint(version, in_order))
    checkpoints.sort(key=attrgetter("version", "names"))
    return sorted(commits), checkpoints


def plan_segment(names: Iterable[str]) -> Segment | None:
    """Return the segment of the newest version; None for a log without a version. Raises
    UnreadableError if a commit is missing."""
    commits, checkpoints = split_names(names)
    if not commits and not checkpoints:
        return None
    checkpoint = checkpoints[-1] if checkpoints else None
    newest = max(commits, default=-1)
    if checkpoint is not None:
        newest = max(newest, checkpoint.version)
    segment = Segment(newest, checkpoint)
    present = set(commits)
    for version in segment.commits():
        if version not in present:
            raise UnreadableError(
                f"version {version} is missing in the log", hint=f"restore {commit_name(version)}"
            )
    return segment


def uncovered_checkpoints(
    commits: Iterable[int], checkpoints: Sequence[Checkpoint]
) -> list[Checkpoint]:
    """Return the checkpoints with which all commits of a log that were removed are known: the
    oldest one, and one after each gap."""
    chosen = []
    present = set(commits)
    reach = -1
    for checkpoint in checkpoints:
        while reach < checkpoint.version and reach + 1 in present:
            reach += 1
        if reach < checkpoint.version:
            chosen.append(checkpoint)
            reach = checkpoint.version
    return chosen


_LARGEST_COMMIT = 1 << 30
_LARGEST_HINT = 16 << 20
_READS = 3
"""A log may be cleaned up while it is read; then it is listed again."""
_VERSION_PREFIX = "0"
"""Names of versions have 20 digits, and no version has as many."""
_VERSIONS = 1 << 63

PathAndActions = tuple[str, Iterator[tuple[str, Action]]]
ReadParquet = Callable[[str], Iterator[tuple[str, Action]]]


class Log:
    """The folder `_delta_log` of the table at `location`."""

    def __init__(self, folders: Folders, location: str) -> None:
        self._folders = folders
        self.path = f"{location}/_delta_log"

    def read(self, is_wanted: Callable[[str], bool] | None = None) -> DeltaSnapshot:
        """Read the newest version. Raises UnreadableError, and RefusedError if features of the
        table change how it is read."""
        segment = self._find_segment()
        for _ in range(_READS - 1):
            try:
                return self._replay(segment, is_wanted)
            except UnreadableError:
                again = self._find_segment()
                if again == segment:
                    raise
                segment = again
        return self._replay(segment, is_wanted)

    def follow(self, snapshot: DeltaSnapshot) -> bool:
        """Apply the versions that were committed after a snapshot; return whether it is the newest
        version now.

        It is not if versions between were removed from the log; the snapshot is unchanged then.
        Raises as `read`.
        """
        commits, checkpoints = split_names(self._list(commit_name(snapshot.version)))
        later = [version for version in commits if version > snapshot.version]
        newest = snapshot.version + len(later)
        if later != list(range(snapshot.version + 1, newest + 1)):
            return False
        if any(checkpoint.version > newest for checkpoint in checkpoints):
            return False
        for version in later:
            self._apply_commit(snapshot, version)
        snapshot.ensure_complete()
        return True

    def commit_info(self, version: int) -> Action | None:
        """Return the action `commitInfo` of a version; None if it has none. Raises
        UnreadableError."""
        path = self._path_of(version)
        with ErrorPlace(path):
            for name, fields in self._read_json(path):
                if name == "commitInfo":
                    return fields
        return None

    def create(self, version: int, data: bytes, transaction: str) -> bool:
        """Create a version; return False if another writer created it first. `transaction` is the
        `txnId` in `data`.

        Raises RefusedError and WriteError if nothing was created, and UncertainWriteError if that
        is unknown.
        """
        path = self._path_of(version)
        try:
            self._folders.create(path, data)
        except FileExistsError:
            # It is this commit if an earlier response was lost and the request was repeated.
            return bool(self._is_ours(path, transaction))
        except (UncertainWriteError, OSError) as error:
            is_ours = self._is_ours(path, transaction)
            if is_ours is not None:
                return is_ours
            if isinstance(error, UncertainWriteError):
                raise _uncertain(error.message, path, transaction) from error
            raise kind_of(error)(
                f"cannot be created: {error.strerror or error}",
                file=path,
                hint="nothing was committed",
            ) from error
        return True

    def all_files(self) -> Iterator[Action]:
        """Yield the actions of data files and change files in all retained versions; of
        checkpoints, as `read_files` has them."""
        for path, actions in self._all_actions():
            with ErrorPlace(path):
                for name, fields in actions:
                    if name in ("add", "remove", "cdc"):
                        yield fields

    def _all_actions(self) -> Iterator[PathAndActions]:
        """Yield the files of the checkpoints and commits of all retained versions."""
        commits, checkpoints = split_names(self._list())
        for checkpoint in uncovered_checkpoints(commits, checkpoints):
            yield from self._checkpoint_files(checkpoint, read_files)
        for version in commits:
            path = self._path_of(version)
            yield path, self._read_json(path)

    def _find_segment(self) -> Segment:
        hint = self._read_hint()
        if hint is not None:
            # The name of the hint's version without an ending sorts before those of its files.
            with suppress(UnreadableError):
                segment = plan_segment(self._list(f"{hint:020d}"))
                if segment is not None and segment.checkpoint is not None:
                    return segment
        with ErrorPlace(self.path):
            segment = plan_segment(self._list())
        if segment is None:
            raise UnreadableError(
                "the log has no version", file=self.path, hint="name the folder of a Delta table"
            )
        return segment

    def _read_hint(self) -> int | None:
        """Return the version of a checkpoint from `_last_checkpoint`; None if there is no such
        file, or it is damaged."""
        try:
            data = self._folders.read(f"{self.path}/_last_checkpoint", _LARGEST_HINT)
            version = optional(parse_object(data, "the hint"), "version", int)
        except (OSError, ValueError, SbbfError):
            return None
        if version is None or not 0 <= version < _VERSIONS:
            return None
        return version

    def _replay(self, segment: Segment, is_wanted: Callable[[str], bool] | None) -> DeltaSnapshot:
        snapshot = DeltaSnapshot(is_wanted)
        if segment.checkpoint is not None:
            read_parquet = partial(read_checkpoint, is_wanted=is_wanted)
            for path, actions in self._checkpoint_files(segment.checkpoint, read_parquet):
                with ErrorPlace(path):
                    snapshot.apply(actions)
        for version in segment.commits():
            self._apply_commit(snapshot, version)
        snapshot.version = segment.version
        with ErrorPlace(self.path):
            snapshot.ensure_complete()
        return snapshot

    def _path_of(self, version: int) -> str:
        return f"{self.path}/{commit_name(version)}"

    def _apply_commit(self, snapshot: DeltaSnapshot, version: int) -> None:
        path = self._path_of(version)
        with ErrorPlace(path):
            snapshot.apply(self._read_json(path))
        snapshot.version = version

    def _checkpoint_files(
        self, checkpoint: Checkpoint, read_parquet: ReadParquet
    ) -> Iterator[PathAndActions]:
        """Yield the files of a checkpoint and then its sidecars. The actions of each must be
        consumed before the next one is requested."""
        sidecars = _Sidecars()
        for name in checkpoint.names:
            path = f"{self.path}/{name}"
            read = read_parquet if name.endswith(".parquet") else self._read_json
            yield path, sidecars.divert(read(path))
        for name in sidecars.names:
            path = f"{self.path}/_sidecars/{name}"
            yield path, (action for action in read_parquet(path) if action[0] in ("add", "remove"))

    def _read_json(self, path: str) -> Iterator[tuple[str, Action]]:
        yield from parse_actions(read_metadata(self._folders, path, _LARGEST_COMMIT))

    def _list(self, after: str = "") -> Sequence[str]:
        try:
            return self._folders.list(self.path, _VERSION_PREFIX, after)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnreadableError(f"cannot be listed: {reason}", file=self.path) from error

    def _is_ours(self, path: str, transaction: str) -> bool | None:
        """Return whether a version is the commit of this transaction; None if it does not exist.

        Raises UncertainWriteError if it cannot be read: taken for the commit of another writer, its
        files would be deleted.
        """
        try:
            data = self._folders.read(path, _LARGEST_COMMIT)
        except FileNotFoundError:
            return None
        except (OSError, SbbfError) as error:
            raise _uncertain(str(error), path, transaction) from error
        try:
            for name, fields in parse_actions(data):
                if name == "commitInfo" and fields.get("txnId") == transaction:
                    return True
        except UnreadableError:
            pass
        return False


class _Sidecars:
    """The sidecars that the files of a checkpoint name."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def divert(self, actions: Iterable[tuple[str, Action]]) -> Iterator[tuple[str, Action]]:
        """Yield the other actions. Sidecars are always in one folder, even if the log has a whole
        path."""
        for name, fields in actions:
            if name == "sidecar":
                path = decode(required(fields, "path", str))
                self.names.append(file_name(path.rpartition("/")[2]))
            else:
                yield name, fields


def _uncertain(reason: str, path: str, transaction: str) -> UncertainWriteError:
    hint = f"check whether the file exists and contains {transaction}"
    return UncertainWriteError(
        f"{reason}; it is unknown whether the commit succeeded", file=path, hint=hint
    )
