"""The recipe for Spark Structured Streaming: spark-submit runs the job of the page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import sbbf_tool
from support.pages import FIXTURES
from support.recipes import break_filter, run, write_recipe

pytestmark = [
    pytest.mark.nightly(minutes=2),
    pytest.mark.environment(minutes=0),
    pytest.mark.timeout(900),
]


class Stream:
    """A folder that gets files, and the job that writes their rows to a lake."""

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
        from sbbf_tool.errors import UsageError
        from sbbf_tool.spark.java import find_java
        from sbbf_tool.spark.session import spark_version

        try:
            java = find_java(spark_version())
        except UsageError as error:
            pytest.skip(str(error))
        self._folder = folder
        self._variables = (
            {"MASTER": "local[2]", "JAVA_HOME": str(java)} if java else {"MASTER": "local[2]"}
        )
        self._variables |= {
            name: str(folder / name.lower()) for name in ("SOURCE", "LAKE", "CHECKPOINT")
        }
        (folder / "source").mkdir()
        write_recipe("spark_streaming", folder)

    def arrive(self, name: str) -> None:
        shutil.copy(FIXTURES / "events.parquet", self._folder / "source" / name)

    def files(self) -> list[Path]:
        return sorted((self._folder / "lake").rglob("*.parquet"))

    def submit(self) -> subprocess.CompletedProcess[str]:
        return run(["sh", "submit.sh"], self._folder, self._variables)


def test_new_files_get_filters_and_a_broken_filter_stops_the_query(tmp_path):
    stream = Stream(tmp_path)
    stream.arrive("a.parquet")
    done = stream.submit()
    assert done.returncode == 0, done.stdout
    first = stream.files()
    assert len(first) > 1
    for path in first:
        assert [filter.column for filter in sbbf_tool.inspect(path).filters] == ["user_id"]
        assert sbbf_tool.verify(path).is_sound
    before = {path: path.read_bytes() for path in first}

    stream.arrive("b.parquet")
    done = stream.submit()
    assert done.returncode == 0, done.stdout
    assert {path: path.read_bytes() for path in first} == before
    second = set(stream.files()) - set(first)
    assert second
    assert all(len(sbbf_tool.inspect(path).filters) == 1 for path in second)

    break_filter(first[0])
    stream.arrive("c.parquet")
    done = stream.submit()
    assert done.returncode != 0
    assert f"{first[0]}" in done.stdout
    assert "false-negatives" in done.stdout
    assert str(first[1]) not in done.stdout
