"""What a loss of power may leave on a disk: the calls of a command are recorded, and replayed
without what was not synced.

After any call the power may fail. What an `fsync` of its file or folder covers is then on the disk.
Each later operation is lost or kept, in any combination and independently of the others, and a
write may be torn: a part of its bytes arrives, or only the new length of the file. File systems
keep more order than this, so a state that is whole here is whole on each of them.

Attributes of files are not part of the model, and starting to write (`sync_file_range`,
`posix_fadvise`) guarantees nothing.
"""

from __future__ import annotations

import fcntl
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from faults.failing_system import module_of

SECTOR = 512
NONE, WHOLE, LENGTH, HEAD, TAIL = "none", "whole", "length", "head", "tail"


class Write(NamedTuple):
    node: int
    offset: int
    data: bytes
    outcomes = (NONE, WHOLE, LENGTH, HEAD, TAIL)


class Truncate(NamedTuple):
    node: int
    size: int
    outcomes = (NONE, WHOLE)


class Enter(NamedTuple):
    """A name that a folder gets: of a new file, or one more of a file."""

    node: int
    name: str
    file: int
    outcomes = (NONE, WHOLE)


class Rename(NamedTuple):
    node: int
    name: str
    new_name: str
    file: int
    outcomes = (NONE, WHOLE)


class Exchange(NamedTuple):
    node: int
    name: str
    other_name: str
    file: int
    other_file: int
    """Files that had these names before."""
    outcomes = (NONE, WHOLE)


class Leave(NamedTuple):
    node: int
    name: str
    outcomes = (NONE, WHOLE)


class Sync(NamedTuple):
    node: int
    """File or folder."""


Operation = Write | Truncate | Enter | Rename | Exchange | Leave | Sync
State = dict[str, bytes]
"""Content by path, relative to the recorded folder."""


@dataclass(frozen=True)
class Trace:
    """The folder before a command, and the operations of the command. Files and folders have
    numbers."""

    contents: dict[int, bytes]
    entries: dict[int, dict[str, int]]
    """Names in each folder."""
    folders: dict[int, str]
    """Path of each folder, relative to the recorded one."""
    operations: tuple[Operation, ...]

    @property
    def num_syncs(self) -> int:
        return sum(isinstance(operation, Sync) for operation in self.operations)

    def without_sync(self, number: int) -> Trace:
        """Return the trace of a command that does not make one of its calls of `fsync`."""
        syncs = [at for at, operation in enumerate(self.operations) if isinstance(operation, Sync)]
        operations = self.operations[: syncs[number]] + self.operations[syncs[number] + 1 :]
        return Trace(self.contents, self.entries, self.folders, operations)

    def without_syncs_of(self, node: int) -> Trace:
        """Return the trace of a command that never syncs this file or folder."""
        return Trace(
            self.contents,
            self.entries,
            self.folders,
            tuple(each for each in self.operations if each != Sync(node)),
        )

    def pending(self, end: int) -> list[int]:
        """Return the operations among the first `end` that no later `fsync` covers, by their
        numbers."""
        numbers, synced = [], set[int]()
        for number in reversed(range(end)):
            operation = self.operations[number]
            if isinstance(operation, Sync):
                synced.add(operation.node)
            elif operation.node not in synced:
                numbers.append(number)
        return numbers[::-1]

    def state(self, end: int, outcomes: dict[int, str]) -> State:
        """Return the files after the first `end` operations; `outcomes` has those that are not
        whole."""
        contents = {node: bytearray(content) for node, content in self.contents.items()}
        entries = {folder: dict(names) for folder, names in self.entries.items()}
        for number, operation in enumerate(self.operations[:end]):
            outcome = outcomes.get(number, WHOLE)
            if outcome != NONE:
                _apply(operation, outcome, contents, entries)
        return {
            os.path.join(self.folders[folder], name): bytes(contents[node])
            for folder, names in entries.items()
            for name, node in names.items()
            if node not in self.folders
        }

    def states(self, end: int, most: int, chance: random.Random) -> Iterator[State]:
        """Yield the states in which a loss of power after the first `end` operations may leave the
        folder.

        If there are more than `most` combinations, yield those in which one operation differs from
        all others, and a random choice. Of either, `most` at most.
        """
        numbers = self.pending(end)
        choices = [self.operations[number].outcomes for number in numbers]  # type: ignore[union-attr]
        for combination in _combinations(choices, most, chance):
            yield self.state(end, dict(zip(numbers, combination, strict=True)))


def _combinations(
    choices: Sequence[tuple[str, ...]], most: int, chance: random.Random
) -> Iterator[tuple[str, ...]]:
    if prod(map(len, choices)) <= most:
        yield from product(*choices)
        return
    for rest in (NONE, WHOLE):
        yield (rest,) * len(choices)
    differences = [
        (rest, number, outcome)
        for rest in (NONE, WHOLE)
        for number, outcomes in enumerate(choices)
        for outcome in outcomes
        if outcome != rest
    ]
    for rest, number, outcome in chance.sample(differences, min(most, len(differences))):
        yield (*(rest,) * number, outcome, *(rest,) * (len(choices) - number - 1))
    for _ in range(most):
        yield tuple(chance.choice(outcomes) for outcomes in choices)


def _apply(
    operation: Operation,
    outcome: str,
    contents: dict[int, bytearray],
    entries: dict[int, dict[str, int]],
) -> None:
    match operation:
        case Write(node, offset, data):
            content = contents.setdefault(node, bytearray())
            end = offset + len(data)
            # Bytes that do not arrive are those from before, or zeros after the old end.
            content.extend(bytes(max(0, end - len(content))))
            middle = min(len(data), max(1, len(data) // 2 // SECTOR * SECTOR))
            start, stop = {
                WHOLE: (0, len(data)),
                LENGTH: (0, 0),
                HEAD: (0, middle),
                TAIL: (middle, len(data)),
            }[outcome]
            content[offset + start : offset + stop] = data[start:stop]
        case Truncate(node, size):
            content = contents.setdefault(node, bytearray())
            del content[size:]
            content.extend(bytes(size - len(content)))
        case Enter(folder, name, file):
            entries[folder][name] = file
            contents.setdefault(file, bytearray())
        case Rename(folder, name, new_name, file):
            if entries[folder].get(name) == file:
                del entries[folder][name]
            entries[folder][new_name] = file
            contents.setdefault(file, bytearray())
        case Exchange(folder, name, other_name, file, other_file):
            entries[folder] |= {name: other_file, other_name: file}
        case Leave(folder, name):
            entries[folder].pop(name, None)


class _Recorder:
    """The calls of this process that change a folder, as they happen; only those of the module `os`
    are seen."""

    def __init__(self, root: Path) -> None:
        self._lock = RLock()
        self._nodes: dict[int, int] = {}
        """Number by inode; the system may use an inode again."""
        self._count = 0
        self.operations: list[Operation] = []
        self.contents: dict[int, bytes] = {}
        self.entries: dict[int, dict[str, int]] = {}
        self.folders: dict[int, str] = {}
        for folder, names, files in os.walk(root):
            node = self._number(os.stat(folder).st_ino)
            self.folders[node] = "" if folder == str(root) else os.path.relpath(folder, root)
            self.entries[node] = {
                name: self._number(os.stat(os.path.join(folder, name)).st_ino)
                for name in names + files
            }
            self.contents |= {
                self.entries[node][name]: Path(folder, name).read_bytes() for name in files
            }

    def trace(self) -> Trace:
        return Trace(self.contents, self.entries, self.folders, tuple(self.operations))

    def _number(self, inode: int, *, is_new: bool = False) -> int:
        if is_new or inode not in self._nodes:
            self._nodes[inode] = self._count
            self._count += 1
        return self._nodes[inode]

    def _of(self, fd: int) -> int | None:
        """Return the number of an open file or folder; None if it is none of the recorded ones."""
        return self._nodes.get(os.fstat(fd).st_ino)

    def _folder_of(self, path: Any) -> int | None:
        return self._nodes.get(os.stat(os.path.dirname(os.path.abspath(os.fsdecode(path)))).st_ino)

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        record = getattr(self, f"_{name}")

        def recorded(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                return record(call, *arguments, **options)

        return recorded

    def _open(
        self, call: Callable[..., int], path: Any, flags: int, *mode: int, **options: Any
    ) -> int:
        has_no_name = flags & os.O_TMPFILE == os.O_TMPFILE
        is_new = bool(flags & os.O_CREAT) and not has_no_name and not os.path.lexists(path)
        fd = call(path, flags, *mode, **options)
        if has_no_name:
            self._number(os.fstat(fd).st_ino, is_new=True)
        elif is_new and (folder := self._folder_of(path)) is not None:
            file = self._number(os.fstat(fd).st_ino, is_new=True)
            self.operations.append(Enter(folder, os.path.basename(path), file))
        elif flags & os.O_TRUNC and (node := self._of(fd)) is not None:
            self.operations.append(Truncate(node, 0))
        return fd

    def _write(self, call: Callable[..., int], fd: int, data: Any) -> int:
        node = self._of(fd)
        if node is None:
            return call(fd, data)
        appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        offset = os.fstat(fd).st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
        done = call(fd, data)
        self.operations.append(Write(node, offset, bytes(memoryview(data).cast("B")[:done])))
        return done

    def _pwrite(self, call: Callable[..., int], fd: int, data: Any, offset: int) -> int:
        done = call(fd, data, offset)
        if (node := self._of(fd)) is not None:
            self.operations.append(Write(node, offset, bytes(memoryview(data).cast("B")[:done])))
        return done

    def _copy_file_range(
        self, call: Callable[..., int], source: int, fd: int, length: int, start: int, to: int
    ) -> int:
        done = call(source, fd, length, start, to)
        if (node := self._of(fd)) is not None and done:
            self.operations.append(Write(node, to, os.pread(fd, done, to)))
        return done

    def _ftruncate(self, call: Callable[..., None], fd: int, size: int) -> None:
        call(fd, size)
        if (node := self._of(fd)) is not None:
            self.operations.append(Truncate(node, size))

    def _fsync(self, call: Callable[..., None], fd: int) -> None:
        call(fd)
        if (node := self._of(fd)) is not None:
            self.operations.append(Sync(node))

    def _fdatasync(self, call: Callable[..., None], fd: int) -> None:
        self._fsync(call, fd)

    def _rename(self, call: Callable[..., None], old: Any, new: Any) -> None:
        folder, file = self._folder_of(old), self._nodes.get(os.lstat(old).st_ino)
        call(old, new)
        if folder is not None and file is not None:
            assert self._folder_of(new) == folder, (
                "the model has no names that move to another folder"
            )
            self.operations.append(
                Rename(folder, os.path.basename(old), os.path.basename(new), file)
            )

    def _replace(self, call: Callable[..., None], old: Any, new: Any) -> None:
        self._rename(call, old, new)

    def _exchange(self, call: Callable[..., None], name: str, other_name: str) -> None:
        folder, file, other_file = (
            self._folder_of(name),
            *(self._nodes[os.lstat(each).st_ino] for each in (name, other_name)),
        )
        call(name, other_name)
        assert folder is not None
        self.operations.append(
            Exchange(folder, os.path.basename(name), os.path.basename(other_name), file, other_file)
        )

    def _link(self, call: Callable[..., None], old: Any, new: Any) -> None:
        call(old, new)
        if (folder := self._folder_of(new)) is not None:
            self.operations.append(
                Enter(folder, os.path.basename(new), self._nodes[os.lstat(new).st_ino])
            )

    def _unlink(self, call: Callable[..., None], path: Any) -> None:
        folder = self._folder_of(path)
        call(path)
        if folder is not None:
            self.operations.append(Leave(folder, os.path.basename(path)))


_CALLS = (
    "open", "write", "pwrite", "copy_file_range", "ftruncate", "fsync", "fdatasync", "rename",
    "replace", "exchange", "link", "unlink",
)  # fmt: skip


@contextmanager
def recorded(root: Path) -> Iterator[_Recorder]:
    """Record what the block does to the files of a folder, which other processes must not change
    meanwhile."""
    recorder = _Recorder(root)
    functions = {name: getattr(module_of(name), name) for name in _CALLS}
    for name, call in functions.items():
        setattr(module_of(name), name, recorder.wrap(name, call))
    try:
        yield recorder
    finally:
        for name, call in functions.items():
            setattr(module_of(name), name, call)


def write_state(state: State, folder: Path) -> None:
    """Write the files of a state; the folders exist."""
    for name, content in state.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
