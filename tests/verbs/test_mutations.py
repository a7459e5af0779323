"""Footers with bytes changed at random, and with numbers that no writer would write: an error of
ours, or a sound answer.

Seeded, so that a failure is there again at the next run; the number of the mutant is in the
message.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sbbf_tool import SbbfError, add_filters
from sbbf_tool.cli import run
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from support.corpus_edits import edit_footer
from support.damage import damage
from support.samples import footer_start, write_events
from verbs.bad_files import ask_everything

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS = [
    pytest.param(range(40), id="forty"),
    pytest.param(range(1000, 2000), id="a thousand", marks=pytest.mark.nightly),
]


@pytest.fixture
def folder():
    """In memory where there is such a place: each mutant is written, and synced, a dozen times."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A file with filters of two kinds: pyarrow's, and one that was added."""
    path = tmp_path_factory.mktemp("original") / "events.parquet"
    write_events(path, row_group_size=150, bloom_filter_options={"id": {"ndv": 150}})
    add_filters(path, ["name"], in_place=True)
    return path.read_bytes()


def mutants_of_footers(original: bytes, seeds: range) -> Iterator[bytes]:
    start = footer_start(original)
    for number in seeds:
        raw = damage(original[start:-8], random.Random(number))
        yield original[:start] + raw + build_tail(raw)


def mutants_of_bodies(original: bytes, seeds: range) -> Iterator[bytes]:
    start = footer_start(original)
    return (damage(original[:start], random.Random(number)) + original[start:] for number in seeds)


NUMBERS = [
    None,
    0,
    1,
    -1,
    2,
    15,
    16,
    63,
    64,
    150,
    1000,
    2**15,
    2**31 - 1,
    -(2**31),
    2**31,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
]
NAMES = [None, "", "two\nlines", "a.b", "`", "n" * 3000, "id"]


def numbers_and_names(node: Any) -> Iterator[tuple[Any, str, object]]:
    """Every number, name and list of a Thrift object, with the object that it is a field of."""
    for spec in node.thrift_spec:
        if spec is None:
            continue
        value = getattr(node, spec[2])
        if isinstance(value, int | str | list) or value is None:
            yield node, spec[2], value
        for child in value if isinstance(value, list) else [value]:
            if hasattr(child, "thrift_spec"):
                yield from numbers_and_names(child)


def lie(metadata: FileMetaData, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 1, 1, 2])):
        node, name, value = chance.choice(
            [place for place in numbers_and_names(metadata) if place[2] is not None]
        )
        if isinstance(value, bool):
            lied: object = not value
        elif isinstance(value, int):
            lied = chance.choice([*NUMBERS, value + 1, value - 1])
            is_i32 = next(spec[1] for spec in node.thrift_spec if spec and spec[2] == name) == 8
            if is_i32 and lied is not None:
                lied = max(-(2**31), min(2**31 - 1, lied))
        elif isinstance(value, str):
            lied = chance.choice(NAMES)
        else:
            lied = chance.choice([None, [], value[:-1], value + value[-1:], value[::-1]])
        setattr(node, name, lied)


def assert_sound(mutants: Iterator[bytes], path: Path) -> None:
    outcomes: Counter[bool] = Counter()
    for number, data in enumerate(mutants):
        path.write_bytes(data)
        try:
            answers = ask_everything(path, "id", 7, ["name", "tags"])
        except BaseException as error:
            error.add_note(f"mutant {number} of these seeds")
            raise
        outcomes.update(isinstance(answer, SbbfError) for answer in answers.values())
    assert outcomes[True] > 10, "mutants that no reader notices test nothing"
    assert outcomes[False] > 20, "mutants that no reader can open test nothing"


@pytest.mark.parametrize("seeds", SEEDS)
def test_footers_with_damaged_bytes(original, folder, seeds):
    assert_sound(mutants_of_footers(original, seeds), folder / "mutant.parquet")


@pytest.mark.parametrize("seeds", SEEDS)
def test_pages_and_filters_with_damaged_bytes(original, folder, seeds):
    assert_sound(mutants_of_bodies(original, seeds), folder / "mutant.parquet")


@pytest.mark.parametrize("seeds", [pytest.param(range(60), id="sixty"), SEEDS[1]])
def test_well_formed_footers_with_wrong_fields(original, folder, tmp_path, seeds):
    def mutants() -> Iterator[bytes]:
        mutant = tmp_path / "made.parquet"
        for number in seeds:
            mutant.write_bytes(original)
            chance = random.Random(number)
            edit_footer(mutant, lambda metadata, chance=chance: lie(metadata, chance))
            yield mutant.read_bytes()

    assert_sound(mutants(), folder / "mutant.parquet")


COMMANDS: list[Callable[[str], list[str]]] = [
    lambda path: ["inspect", "--all", path],
    lambda path: ["probe", path, "id", "7"],
    lambda path: ["add-filter", path, "-c", "id", "--rebuild", "all", "-n"],
    lambda path: ["remove-filter", path, "-n"],
]


def test_on_the_command_line_each_ends_with_a_line_and_a_code(original, tmp_path, capsys):
    path = tmp_path / "mutant.parquet"
    for number, data in enumerate(mutants_of_footers(original, range(50))):
        path.write_bytes(data)
        for command in COMMANDS:
            code = run(command(str(path)))
            _, complaints = capsys.readouterr()
            assert code in (0, 1, 2, 3, 4), f"mutant {number}"
            lines = complaints.splitlines()
            assert all(line.startswith("sbbf: ") for line in lines), f"mutant {number}"
            if code > 1 and command is not COMMANDS[0]:
                assert len(lines) == 1, f"mutant {number}"
