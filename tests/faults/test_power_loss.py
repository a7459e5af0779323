"""After a loss of power at any call, each file is whole, old or new, or the journal restores it;
and what was reported as done is there.

The calls of a command are recorded once and replayed in every state that `faults.power_loss`
allows. As a control, each `fsync` is left out in turn, and a damaged or lost file must be found.
"""

from __future__ import annotations

import hashlib
import io
import random
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.power_loss import HEAD, State, Trace, Write, recorded, write_state
from faults.write_paths import FILE, Before, assert_whole, contents
from sbbf_tool.cli import run
from sbbf_tool.errors import SbbfError
from sbbf_tool.file import interrupted
from sbbf_tool.storage.leftovers import TEMPORARY_SUFFIX
from support.journals import entry_of, place
from support.samples import listing, write_events
from support.tables import each

FEW, MANY = 64, 1000
"""How many combinations of lost and torn operations are replayed after each call, at most, in
`.ci/run` and in `.ci/nightly`."""

Problem = Callable[[State, bool], str | None]


class Replay:
    """The states of traces, each different one of which is checked once. `problem` receives a state
    and whether the command had ended."""

    def __init__(self, problem: Problem, most: int) -> None:
        self._problem, self._most = problem, most
        self._problems: dict[object, str | None] = {}
        self.num_states = 0

    def first_problem(self, trace: Trace) -> str | None:
        chance = random.Random(7)
        for end in range(len(trace.operations) + 1):
            is_done = end == len(trace.operations)
            for state in trace.states(end, self._most, chance):
                self.num_states += 1
                # No command reads a temporary file that another one left.
                key = (
                    is_done,
                    frozenset(
                        (name, digest_of(content) if not is_temporary(name) else b"")
                        for name, content in state.items()
                    ),
                )
                if key not in self._problems:
                    self._problems[key] = self._problem(state, is_done)
                if problem := self._problems[key]:
                    return f"after {end} of {len(trace.operations)} operations: {problem}"
        return None

    def record(self, record_property: Callable[[str, object], None]) -> None:
        record_property("states", self.num_states)
        record_property("different states", len(self._problems))
        print(
            f"{self.num_states:,} states after a loss of power, {len(self._problems):,} of them "
            "different"
        )


def digest_of(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def is_temporary(name: str) -> bool:
    return name.endswith(TEMPORARY_SUFFIX)


def lay_out(state: State, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    for name in state:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    write_state(state, folder)
    return folder


def is_readable(content: bytes) -> bool:
    try:
        pq.read_metadata(io.BytesIO(content))
    except (pa.ArrowException, OSError):
        return False
    return True


def quietly(arguments: list[str]) -> int:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return run(arguments)


def problem_of(before: Before, folder: Path) -> Problem:
    """Return the check of one command that writes one file."""
    whole: dict[object, None] = {}

    def problem(state: State, is_done: bool) -> str | None:
        if (
            FILE in state
            and state[FILE] not in (before.old, before.new)
            and is_readable(state[FILE])
        ):
            return "readers that do not know the journal take the file for whole"
        lay_out(state, folder)
        try:
            if before.path.appends:
                interrupted.undo(str(folder / FILE), str(folder / FILE), None)
            actual = contents(folder)
            if is_done and actual.get(before.path.target) != before.new:
                return "the command had ended, but its result is lost"
            key = frozenset(
                (name, digest_of(content) if not is_temporary(name) else b"")
                for name, content in actual.items()
            )
            if key not in whole:
                assert_whole(before, folder)
                whole[key] = None
        except (AssertionError, SbbfError) as error:
            return f"{type(error).__name__}: {str(error)[:80]}"
        return None

    return problem


def trace_of(before: Before, folder: Path) -> Trace:
    before.lay_out(folder)
    with recorded(folder) as recorder:
        assert before.path.act(folder) == 0
    trace = recorder.trace()
    assert (
        trace.state(len(trace.operations), {})
        == contents(folder)
        == before.expected(folder, done=True)
    )
    return trace


@pytest.mark.parametrize("most", [FEW, pytest.param(MANY, marks=pytest.mark.nightly(10))])
def test_power_lost_at_any_call(before, tmp_path, record_property, most):
    trace = trace_of(before, tmp_path / "it")
    replay = Replay(problem_of(before, tmp_path / "replay"), most)
    assert replay.first_problem(trace) is None
    replay.record(record_property)
    assert replay.num_states >= 3 * len(trace.operations)


def test_each_missing_sync_is_found(before, tmp_path):
    trace = trace_of(before, tmp_path / "it")
    assert trace.num_syncs == (5 if before.path.appends else 2)
    for number in range(trace.num_syncs):
        replay = Replay(problem_of(before, tmp_path / "replay"), FEW)
        assert replay.first_problem(trace.without_sync(number)), f"sync number {number}"


@each("length", [4, 8, 20, 63, 64])
def test_only_the_last_bytes_of_an_append_reached_the_disk(befores, tmp_path, length):
    """They are a magic, or a footer that parses: the file still is the append that was interrupted,
    not the work of another writer."""
    before, path = befores["append"], tmp_path / FILE
    path.write_bytes(
        before.old + bytes(len(before.new) - len(before.old) - length) + before.new[-length:]
    )
    place(path, entry_of(before.old, before.new))
    assert interrupted.undo(str(path), str(path), None)[1] == len(before.old)
    assert contents(tmp_path) == {FILE: before.old}


@pytest.mark.parametrize("most", [FEW, pytest.param(MANY, marks=pytest.mark.nightly(10))])
def test_power_lost_again_while_an_append_is_undone(befores, tmp_path, record_property, most):
    before, folder = befores["append"], tmp_path / "it"
    append = trace_of(before, folder)
    last = max(
        number for number, operation in enumerate(append.operations) if isinstance(operation, Write)
    )
    lay_out(append.state(last + 1, {last: HEAD}), folder)
    assert len(contents(folder)) == 2
    with recorded(folder) as recorder:
        assert quietly(["repair", str(folder / FILE), "--quick", "--in-place"]) == 0
    trace = recorder.trace()
    assert trace.state(len(trace.operations), {}) == contents(folder) == {FILE: before.old}

    def problem(state: State, is_done: bool) -> str | None:
        lay_out(state, tmp_path / "replay")
        interrupted.undo(*[str(tmp_path / "replay" / FILE)] * 2, None)
        return (
            None
            if contents(tmp_path / "replay") == {FILE: before.old}
            else "the file is not the old one"
        )

    replay = Replay(problem, most)
    assert replay.first_problem(trace) is None
    replay.record(record_property)
    # The last one makes only the removal of the journal last.
    assert trace.num_syncs == 2
    assert Replay(problem, most).first_problem(trace.without_sync(0))


def small_files(folder: Path, count: int) -> list[str]:
    """Write files into two folders; return the arguments that give each of them filters, in this
    process."""
    for number in range(count):
        path = folder / "ab"[number % 2] / f"part-{number:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_events(path)
    return ["add-filter", str(folder), "-c", "id", "-c", "name", "--in-place", "--jobs", "1"]


@pytest.mark.parametrize(
    ("count", "most"), [(3, 8), pytest.param(70, 4, marks=pytest.mark.nightly(5))]
)
def test_power_lost_in_a_run_over_many_files(tmp_path, record_property, count, most):
    folder, again = tmp_path / "it", tmp_path / "replay"
    arguments = small_files(folder, count)
    old = listing(folder)
    with recorded(folder) as recorder:
        assert quietly(arguments) == 0
    new, trace = listing(folder), recorder.trace()
    assert trace.state(len(trace.operations), {}) == new
    assert all(old[name] != new[name] for name in old)
    runs_again = iter(range(3))

    def problem(state: State, is_done: bool) -> str | None:
        for name in old:
            if state.get(name) not in ((new[name],) if is_done else (old[name], new[name])):
                return f"{name} is damaged or lost"
        if {name for name in state if not is_temporary(name)} != old.keys():
            return f"there are other files: {sorted(state)}"
        if any(map(is_temporary, state)) and next(runs_again, None) is not None:
            lay_out(state, again)
            if quietly([*arguments[:1], str(again), *arguments[2:]]) != 0 or listing(again) != new:
                return "the next run does not finish the work"
        return None

    replay = Replay(problem, most)
    assert replay.first_problem(trace) is None
    replay.record(record_property)
    assert next(runs_again, None) is None, "no state with a temporary file was tried"
    nodes = sorted(
        {operation.node for operation in trace.operations if operation == (operation.node,)}
    )
    assert len(nodes) == count + 2
    for node in nodes[:: max(1, count // 5)]:
        assert Replay(problem, most).first_problem(trace.without_syncs_of(node)), (
            f"without a sync of {node}"
        )
