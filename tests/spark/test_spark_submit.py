"""The job that docs/how-to/spark-job.md shows for `spark-submit`, run as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engines, pytest.mark.heavy]
pyspark = pytest.importorskip("pyspark")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "spark-job.md"


def test_the_job_of_the_page(tmp_path, fixtures):
    (line,) = re.findall(r"`(from sbbf_tool\.cli import main; .*)`", PAGE.read_text())
    (tmp_path / "job.py").write_text(line)
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    variables = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(PAGE.parents[2])}
    for path, code, words in ((fixtures / "pyarrow-filters.parquet", 0, "filter"), (tmp_path / "missing.parquet", 3, "no such file")):
        command = [*submit, "job.py", "inspect", str(path), "--runner", "spark"]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stderr[-3000:]
        assert words in done.stdout + done.stderr
        assert "TypeError" not in done.stderr
