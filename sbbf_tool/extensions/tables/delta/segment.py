"""Which files of a log make up a version (PROTOCOL.md, "Delta Log Entries", "Checkpoints"): names only, nothing is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sbbf_tool.errors import UnreadableError

_NAME = re.compile(
    r"(?P<version>\d{20})\.(?:(?P<commit>json)|checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[^./]+))?\.(?P<kind>parquet|json))",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    version: int
    names: tuple[str, ...]
    """Its files: one, or all parts in order."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that give the table at `version`: a checkpoint, and all later commits."""

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[tuple[int, str], ...]
    """Version and name."""


def commit_name(version: int) -> str:
    """Return the name of the file that commits a version."""
    return f"{version:020d}.json"


def split_names(names: Iterable[str]) -> tuple[dict[int, str], list[Checkpoint]]:
    """Return the commits of a log by version, and its complete checkpoints in order; other names are ignored."""
    commits: dict[int, str] = {}
    checkpoints: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        version = int(match["version"])
        if match["commit"]:
            commits[version] = name
        elif match["part"]:
            if match["kind"] == "parquet":
                parts.setdefault((version, int(match["parts"])), {})[int(match["part"])] = name
        elif match["uuid"] or match["kind"] == "parquet":
            checkpoints.append(Checkpoint(version, (name,)))
    for (version, count), by_number in parts.items():
        if len(by_number) == count and min(by_number) == 1 and max(by_number) == count:
            checkpoints.append(Checkpoint(version, tuple(by_number[number] for number in sorted(by_number))))
    return commits, sorted(checkpoints, key=lambda checkpoint: (checkpoint.version, checkpoint.names))


def plan_segment(names: Iterable[str]) -> Segment | None:
    """Return the segment of the newest version; None for a log without a version. Raises UnreadableError if a commit is missing."""
    commits, checkpoints = split_names(names)
    if not commits and not checkpoints:
        return None
    checkpoint = checkpoints[-1] if checkpoints else None
    first = checkpoint.version + 1 if checkpoint else 0
    later = sorted(version for version in commits if version >= first)
    for expected, version in enumerate(later, first):
        if version != expected:
            raise UnreadableError(f"version {expected} is missing in the log", hint=f"restore {commit_name(expected)}")
    return Segment(later[-1] if later else first - 1, checkpoint, tuple((version, commits[version]) for version in later))


def uncovered_checkpoints(commits: Iterable[int], checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Return the checkpoints with which all commits of a log that were removed are known: the oldest one, and one after each gap."""
    chosen: list[Checkpoint] = []
    present = set(commits)
    reach = -1
    for checkpoint in checkpoints:
        while reach < checkpoint.version and reach + 1 in present:
            reach += 1
        if reach < checkpoint.version:
            chosen.append(checkpoint)
            reach = checkpoint.version
    return chosen
