"""The rows of the verbs with Spark are those without it, field by field but for durations: also with fresh, killed and other workers.

This module is also the program of a session of its own: `test_same_rows.py LAKE RESULT SETUP`.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

from sbbf_tool import Policy
from sbbf_tool.editing.edit import Edit
from sbbf_tool.reports.rows import Row
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.selection import Selection
from sbbf_tool.runner.work import Work
from sbbf_tool.verbs.add_filter import AddFilter
from sbbf_tool.verbs.apply import Apply
from sbbf_tool.verbs.check import Check
from sbbf_tool.verbs.inspect import Inspect
from sbbf_tool.verbs.probe import Probe
from sbbf_tool.verbs.verb import Verb, opt
from sbbf_tool.verbs.verify import Verify
from support.lakes import digests, mixed

pytest.importorskip("pyspark")

from sbbf_tool.spark.runner import SparkRunner
from sbbf_tool.spark.shipping import write_zip

pytestmark = [pytest.mark.engines, pytest.mark.heavy(minutes=4)]

REPOSITORY = Path(__file__).parents[2]
SPEC = FilterSpec(("id", "name"))
WORKS = {
    "inspect": lambda: Work(Inspect(), strict=True),
    "probe": lambda: Work(Probe("id", ["7", "-1"]), strict=True),
    "check": lambda: Work(Check(Policy()), strict=True),
    "verify": lambda: Work(Verify(), strict=True),
    "add-filter": lambda: Work(AddFilter(SPEC), edit=Edit(in_place=True), strict=True),
    "apply": lambda: Work(Apply([SPEC]), edit=Edit(in_place=True)),
}
SETUPS: dict[str, dict[str, str]] = {
    "fresh workers": {"spark.python.worker.reuse": "false"},
    "killed workers": {},
}
KNOWN = {"killed workers": {"data_bytes", "data_bytes_read", "estimated_bytes", "estimated_seconds"}}
"""What was read by an attempt that is lost."""


class DieOnce(Verb[object]):
    """Another verb, but the worker dies that is the first to be done with a file of this name."""

    verb: Verb[object] = opt("The verb")
    marker: str = opt("The file that says that a worker has died")

    @property
    def name(self) -> str:
        return self.verb.name

    @property
    def report(self) -> type:
        return self.verb.report

    @property
    def changes(self) -> bool:
        return self.verb.changes

    @property
    def rebuild(self) -> str | None:
        return getattr(self.verb, "rebuild", None)

    def needs(self):
        return self.verb.needs()

    def outcome(self, path, report):
        return self.verb.outcome(path, report)

    def failed(self, path, error):
        return self.verb.failed(path, error)

    def skips(self, path):
        return self.verb.skips(path)

    def carry(self, path, given, jobs=None, progress=None):
        report = self.verb.carry(path, given, jobs, progress)
        if path.endswith("good-2.parquet") and not os.path.exists(self.marker):
            open(self.marker, "x").close()
            os._exit(1)
        return report


def rows_of_works(original: Path, runner, markers: str | None = None) -> Iterator[tuple[str, list[Row], dict[str, str]]]:
    """Run each work on a fresh copy of the lake at one place; yield its name, its rows, and the digests of the files after it."""
    lake = original.with_name("lake")
    for name, make in WORKS.items():
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(original, lake)
        work = make()
        if markers is not None:
            given = work.given
            work = Work(DieOnce(work.verb, f"{markers}-{name}"), edit=given.edit, strict=given.strict)
        rows = [replace(row, seconds=0.0, error=None) for row in runner.run(Selection(str(lake)), work)]
        yield name, sorted(rows, key=lambda row: row.path), digests(lake)


def main(original: str, result: str, setup: str) -> None:
    conf = {**SETUPS[setup], "spark.ui.enabled": "false"}
    with SparkRunner("local[2,4]", conf) as runner:
        found = list(rows_of_works(Path(original), runner, f"{result}-died" if setup == "killed workers" else None))
    Path(result).write_bytes(pickle.dumps(found))


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    return mixed(tmp_path_factory.mktemp("rows") / "original")


@pytest.fixture(scope="module")
def expected(original):
    return {name: (rows, files) for name, rows, files in rows_of_works(original, LocalRunner(1))}


def differences(one: object, other: object, place: str) -> set[str]:
    """Return the fields that differ."""
    if type(one) is type(other) and is_dataclass(one):
        names = [field.name for field in fields(one) if field.compare]
        return {each for name in names for each in differences(getattr(one, name), getattr(other, name), name)}
    if isinstance(one, tuple | list) and isinstance(other, tuple | list) and len(one) == len(other):
        return {each for pair in zip(one, other, strict=True) for each in differences(*pair, place)}
    return set() if one == other else {place}


def variables() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "tests")))}


@pytest.mark.parametrize("setup", SETUPS)
def test_rows_are_the_same(original, expected, tmp_path, setup):
    result = tmp_path / "result"
    command = [sys.executable, __file__, str(original), str(result), setup]
    done = subprocess.run(command, cwd=tmp_path, env=variables(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {name: (rows, files) for name, rows, files in pickle.loads(result.read_bytes())}
    wrong = {name: differences(found[name], expected[name], "rows") - KNOWN.get(setup, set()) for name in expected}
    assert not {name: places for name, places in wrong.items() if places}
    assert wrong.keys() == WORKS.keys()
    assert len(list(tmp_path.glob("*-died-*"))) == (len(WORKS) if setup == "killed workers" else 0)


def test_executors_with_another_version(original, tmp_path):
    source, other, lake = tmp_path / "source.zip", tmp_path / "other.zip", tmp_path / "lake"
    write_zip(source)
    with ZipFile(source) as archive, ZipFile(other, "w") as changed:
        for name in archive.namelist():
            changed.writestr(name, archive.read(name) + (b'__version__ = "9.9"\n' if name == "sbbf_tool/__init__.py" else b""))
    shutil.copytree(original, lake)
    command = [sys.executable, "-m", "sbbf_tool", "add-filter", str(lake), "-c", "id", "--in-place", "--master", "local[1]"]
    command += ["--conf", f"spark.submit.pyFiles={other}"]
    done = subprocess.run(command, cwd=tmp_path, env=variables(), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"sbbf: executors have sbbf-tool 9.9, and the driver has {version('sbbf-tool')}; ")
    assert done.stderr.count("\n") == 1
    assert digests(lake) == digests(original)


if __name__ == "__main__":
    main(*sys.argv[1:])
