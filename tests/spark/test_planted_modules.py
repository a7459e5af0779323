"""A folder that others may write to holds modules with the names of Python's own: no worker may
import them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engines, pytest.mark.heavy]
pytest.importorskip("pyspark")

PLANTED = (
    "socket",
    "json",
    "random",
    "pandas",
    "pyarrow",
    "select",
    "signal",
    "shutil",
    "sbbf_tool",
)
DATA_SOURCE = """\
import sys
from sbbf_tool.spark.session import session
spark = session("local[1]")
assert spark.read.format("sbbf").load(sys.argv[1]).count() > 0
spark.stop()
"""


@pytest.fixture
def lake(tmp_path: Path, fixtures: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    shutil.copyfile(fixtures / "pyarrow-filters.parquet", folder / "a.parquet")
    for name in PLANTED:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\nraise "
            "ImportError('planted')\n"
        )
    return folder


def run_in(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not (folder.parent / "imported").exists()


def test_workers_of_a_command(lake):
    run_in(
        lake, str(Path(sys.executable).with_name("sbbf")), "inspect", ".", "--on", "spark:local[1]"
    )


def test_workers_of_the_data_source(lake, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(DATA_SOURCE)
    run_in(lake, sys.executable, str(program), str(lake / "a.parquet"))


def test_own_workers(lake):
    run_in(
        lake,
        str(Path(sys.executable).with_name("sbbf")),
        "verify",
        *["a.parquet"] * 200,
        "--jobs",
        "2",
    )
