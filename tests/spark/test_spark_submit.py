"""What docs/how-to shows, run by `spark-submit` as it stands: the job of spark-job.md, and the
examples of spark.md as one job."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import blocks_of

pytestmark = [pytest.mark.engines, pytest.mark.heavy]
pyspark = pytest.importorskip("pyspark")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "spark-job.md"


def submit(folder: Path, job: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.py").write_text(job)
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    command = [
        program,
        "--master",
        "local[2]",
        "--conf",
        "spark.ui.enabled=false",
        "job.py",
        *words,
    ]
    variables = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(PAGE.parents[2]),
    }
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=600
    )


def test_the_job_of_the_page(tmp_path, fixtures):
    (line,) = re.findall(r"`(from sbbf_tool\.cli import main; .*)`", PAGE.read_text())
    for path, code, words in (
        (fixtures / "pyarrow-filters.parquet", 0, "filter"),
        (tmp_path / "missing.parquet", 3, "no such file"),
    ):
        done = submit(tmp_path, line, "inspect", str(path), "--on", "spark")
        assert done.returncode == code, done.stderr[-3000:]
        assert words in done.stdout + done.stderr
        assert "TypeError" not in done.stderr


def test_the_examples_in_one_job(tmp_path, fixtures):
    shutil.copytree(fixtures, tmp_path / "fixtures")
    blocks = [
        block
        for block in blocks_of(PAGE.with_name("spark.md"))
        if block.kind == "python" and block.reason is None
    ]
    done = submit(tmp_path, "\n".join(block.body for block in blocks))
    assert done.returncode == 0, done.stderr[-3000:]
    assert list((tmp_path / "arrivals").rglob("*.parquet"))
