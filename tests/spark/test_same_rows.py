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
from functools import partial
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

from sbbf_tool import Policy
from sbbf_tool.editing.edit import Edit
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.runner import works
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.selection import Selection
from sbbf_tool.runner.works import Work
from support.lakes import digests, mixed

pytest.importorskip("pyspark")

from sbbf_tool.spark.runner import SparkRunner
from sbbf_tool.spark.shipping import write_zip

pytestmark = [pytest.mark.engines, pytest.mark.heavy(minutes=4)]

REPOSITORY = Path(__file__).parents[2]
SPEC = FilterSpec(("id", "name"))
WORKS = {
    "inspect": lambda: works.inspect(),
    "probe": lambda: works.probe("id", ["7", "-1"]),
    "check": lambda: works.check(Policy()),
    "verify": lambda: works.verify(),
    "add-filter": lambda: works.add(SPEC, Edit(in_place=True)),
    "apply": lambda: works.apply([SPEC], Edit(in_place=True)),
}
SETUPS: dict[str, dict[str, str]] = {
    "fresh workers": {"spark.python.worker.reuse": "false"},
    "killed workers": {},
}
KNOWN = {"killed workers": {"data_bytes", "data_bytes_read", "estimated_bytes", "estimated_seconds"}}
"""What was read by an attempt that is lost."""


def die_once(work: Work[FileRow], marker: str) -> None:
    """Let the worker die that is the first to be done with a file of this name."""
    done = work.fields

    def call(path, **options):
        result = done(path, **options)
        if path.endswith("good-2.parquet") and not os.path.exists(marker):
            open(marker, "x").close()
            os._exit(1)
        return result

    work.fields = partial(call, **done.keywords)


def rows_of_works(original: Path, runner, markers: str | None = None) -> Iterator[tuple[str, list[FileRow], dict[str, str]]]:
    """Run each work on a fresh copy of the lake at one place; yield its name, its rows, and the digests of the files after it."""
    lake = original.with_name("lake")
    for name, make in WORKS.items():
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(original, lake)
        work = make()
        if markers is not None:
            die_once(work, f"{markers}-{name}")
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
