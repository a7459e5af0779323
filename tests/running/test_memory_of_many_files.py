"""Many files on this machine: what the parent process holds does not grow with their number. Bytes
are counted, and no time."""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sbbf_tool.cli import run
from sbbf_tool.storage.listing import entries, sort_names
from support.lakes import linked_files
from support.tables import each

pytestmark = pytest.mark.slow

FEW, MANY = 100, 400
_BYTES_PER_FILE = 150
_BYTES_PER_CHECKED_FILE = 1_000
"""A kept row takes 1,500 bytes, a kept name 200, and a kept report of `check` more than 10,000.
What is in flight varies by some rows."""


@pytest.fixture(scope="module")
def lakes(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("lakes")
    return linked_files(folder / "few", FEW), linked_files(folder / "many", MANY)


def peak_bytes(arguments: list[str]) -> int:
    """Run a command; return the most bytes that this process, the parent of the workers, held of
    what Python allocates."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        gc.collect()
        tracemalloc.start()
        try:
            run([*arguments, "--jobs", "2"])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    "command",
    [
        ["inspect"],
        ["probe", "-c", "id", "--value", "7"],
        pytest.param(["probe", "-c", "id", "--value", "no number"], marks=pytest.mark.heavy),
        pytest.param(["check", "--quick", "--require", "id"], marks=pytest.mark.heavy),
        pytest.param(
            ["check", "--quick", "--require", "id", "--format", "junit"], marks=pytest.mark.heavy
        ),
        pytest.param(
            ["check", "--quick", "--require", "id", "--format", "sarif"], marks=pytest.mark.heavy
        ),
        pytest.param(["add-filter", "-c", "id", "--in-place", "-n"], marks=pytest.mark.heavy),
    ],
    ids=" ".join,
)
def test_memory_does_not_grow_with_files(lakes, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    # These constants bound what is in memory at once, so less of it makes growth visible with fewer
    # files.
    for name, value in {
        "sbbf_tool.storage.listing._RUN": 100,
        "sbbf_tool.running.local._FILES_PER_TASK": 5,
        "sbbf_tool.running.local._FILES_WITHOUT_PROCESSES": 10,
        # Without threads: tracemalloc is not safe to fork while another thread ends.
        "sbbf_tool.running.local._FILES_OF_TRIAL": 40,
        "sbbf_tool.running.local._FILES_PER_SEGMENT": 40,
        "sbbf_tool.running.local.FILES_PER_SCAN": 10,
        "sbbf_tool.cli.report._MOST_IN_MEMORY": 50,
        "sbbf_tool.cli.formats.ci.MOST_RESULTS": 20,
    }.items():
        monkeypatch.setattr(name, value)
    few, many = lakes
    peak_bytes([*command, str(few)])  # whose imports and caches are not counted
    growth = peak_bytes([*command, str(many)]) - peak_bytes([*command, str(few)])
    limit = _BYTES_PER_CHECKED_FILE if command[0] == "check" else _BYTES_PER_FILE
    assert growth < limit * (MANY - FEW), f"{growth / (MANY - FEW):.0f} bytes per file"


def test_a_flat_folder_takes_few_bytes_per_name():
    count = 100_000
    tracemalloc.start()
    try:
        names = sort_names(
            (f"part-{number * 7919 % count:08d}.snappy.parquet", False, False)
            for number in range(count)
        )
        in_order = (
            name == f"part-{number:08d}.snappy.parquet" for number, (name, *_) in enumerate(names)
        )
        assert sum(in_order) == count
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / count < 40, "a list of strings takes a hundred"


def test_names_in_runs_have_the_order_of_a_list(tmp_path, monkeypatch):
    for number in range(57):
        folder = tmp_path / (f"dt={number % 3}" if number % 2 else f"dt={number % 3}.x")
        folder.mkdir(exist_ok=True)
        (folder / f"{number % 7}-{number}.parquet").touch()
    (tmp_path / os.fsdecode(b"\xff.parquet")).touch()
    (tmp_path / "link.parquet").symlink_to("57")

    def list_names() -> list[str]:
        return [
            *(entry.path for entry in entries(str(tmp_path))),
            *(entry.path for entry in entries(f"{tmp_path}/**/*.parquet")),
        ]

    expected = list_names()
    assert len(expected) == 2 * 59
    monkeypatch.setattr("sbbf_tool.storage.listing._RUN", 2)
    assert list_names() == expected


@each("count", [0, 1, 3])
def test_documents_that_are_written_in_parts_are_whole(tmp_path, capsys, count):
    lake = linked_files(tmp_path / "lake", count) if count else tmp_path
    others = [tmp_path / f"no-parquet-{number}.parquet" for number in range(1 if count else 2)]
    for path in others:
        path.write_bytes(b"PAR1")
    paths = [str(path) for path in ([lake, *others] if count else others)]
    assert run(["check", *paths, "--quick", "--require", "name", "--format", "junit"]) in (1, 3)
    suites = ElementTree.fromstring(capsys.readouterr().out).findall("testsuite")
    assert len(suites) == (count + 1 if count else 2)
    assert run(["check", *paths, "--quick", "--require", "name", "--format", "sarif"]) in (1, 3)
    (document,) = json.loads(capsys.readouterr().out)["runs"]
    assert [result["ruleId"] for result in document["results"]] == ["missing-filter"] * count
    (invocation,) = document["invocations"]
    assert len(invocation["toolExecutionNotifications"]) == (1 if count else 2)
    assert not invocation["executionSuccessful"]
