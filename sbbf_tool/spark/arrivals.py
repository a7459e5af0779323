"""What a watched folder's checkpoint remembers: which files have arrived, and which of them could not be done yet.

Spark marks a file as seen when it lists it, and names it once. A file that was still empty then is never in a batch, and one that was
still being written fails; so the list that Spark keeps (`sources/0` of its checkpoint, a JSON line a file below a line `v1`) is compared
with what was done, and what was not done is kept in `unfinished.json` beside it, with length and time that the file had.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from sbbf_tool.errors import UnreadableError, UsageError, WriteError
from sbbf_tool.reports.lake import FileOutcome
from sbbf_tool.reports.rows import FAILED, REFUSED
from sbbf_tool.runner.discover import listed, path_of
from sbbf_tool.storage.whole import write_whole

STREAM, UNFINISHED = "stream", "unfinished.json"

State = tuple[int | None, float | None] | None
"""Bytes and time of change of a file that could not be done; None where another try may help though the file is as it was."""


class Arrivals:
    """A checkpoint: a folder that Spark's driver sees. It is made where there is none."""

    def __init__(self, checkpoint: str) -> None:
        if "://" in checkpoint and not checkpoint.startswith("file://"):
            raise UsageError("a checkpoint is a folder of this machine, or one that is mounted here", file=checkpoint)
        self._folder = Path(path_of(checkpoint)).absolute()
        self._through = -1
        self._unfinished: dict[str, State] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._load()
        except OSError as error:
            raise WriteError(error.strerror or str(error), file=str(self._folder)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableError("not as this command wrote it", file=str(self._folder / UNFINISHED)) from error

    @property
    def stream(self) -> str:
        """Where Spark keeps its part."""
        return str(self._folder / STREAM)

    def arrived(self) -> tuple[list[str], int]:
        """The files that Spark has listed and that are not settled, and the number of its newest list."""
        folder = self._folder / STREAM / "sources" / "0"
        found: dict[str, None] = {}
        newest = self._through
        for log in sorted(folder.iterdir(), key=lambda log: log.name) if folder.is_dir() else ():
            number = log.name.removesuffix(".compact")
            if number.isdigit() and int(number) > self._through:
                newest = max(newest, int(number))
                version, *lines = log.read_text("utf-8").splitlines()
                if version != "v1":
                    raise UnreadableError(f"a list of files of version {version:.20}, which this tool does not know", file=str(log))
                entries = [json.loads(line) for line in lines]
                found.update((path_of(entry["path"]), None) for entry in entries if entry["batchId"] > self._through)
        return list(found), newest

    def settle(self, outcomes: Iterable[FileOutcome], through: int | None = None) -> None:
        """Remember what was not done and, where given, that all is settled up to this list of Spark's. A crash leaves it as it was."""
        for outcome in outcomes:
            if outcome.status in (FAILED, REFUSED):
                file = listed(outcome.path)
                waits = outcome.exit_code == WriteError.exit_code or file.bytes is None
                self._unfinished[outcome.path] = None if waits else (file.bytes, file.modified)
            else:
                self._unfinished.pop(outcome.path, None)
        self._through = self._through if through is None else through
        self._save()

    def to_try_again(self, *, all_of_them: bool = False) -> list[str]:
        """Files that could not be done and have changed since; those that are gone are forgotten."""
        for path in [path for path in self._unfinished if "://" not in path and not os.path.lexists(path)]:
            del self._unfinished[path]
        return [path for path, state in self._unfinished.items() if all_of_them or state is None or _state(path) != state]

    def _load(self) -> None:
        path = self._folder / UNFINISHED
        if path.exists():
            known = json.loads(path.read_text("utf-8"))
            self._through = int(known["through"])
            self._unfinished = {name: state and (state[0], state[1]) for name, state in known["files"].items()}

    def _save(self) -> None:
        text = json.dumps({"through": self._through, "files": self._unfinished})
        with write_whole(self._folder / UNFINISHED, overwrite=True) as stream:
            stream.write(text.encode())


def _state(path: str) -> State:
    file = listed(path)
    return file.bytes, file.modified
