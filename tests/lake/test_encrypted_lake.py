"""A lake with encrypted files: with keys all is done to them as to others, without keys they are told of, and no key is ever shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.parquet_java import FIRST_ID
from interop.shown_keys import KEYS, assert_no_key
from lakes import digests, small_files

from sbbf_tool import inspect, verify
from sbbf_tool.cli import run
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.keys import read_keys
from sbbf_tool.runner import local_engine
from sbbf_tool.runner.discover import discover
from sbbf_tool.runner.fill import build_piece, publish_file
from sbbf_tool.runner.plan import plan_file

REPOSITORY = Path(__file__).parents[2]
COLUMNS = ("id", "name")

pytest.importorskip("cryptography", reason="the Python package cryptography is not installed")


@pytest.fixture
def lake(tmp_path, fixtures) -> Path:
    """`java` has an encrypted footer, and filters; `signed` a plain footer, encrypted columns, no filter; `plain` is as most files are."""
    folder = small_files(tmp_path / "lake", 1)
    (folder / "part-00000.parquet").rename(folder / "plain.parquet")
    for name, fixture in (("java", "java-columns"), ("signed", "java-signed")):
        shutil.copy(fixtures / "encrypted" / f"{fixture}.parquet.encrypted", folder / f"{name}.parquet")
    return folder


@pytest.fixture(params=["local", pytest.param("spark", marks=[pytest.mark.engines, pytest.mark.heavy])])
def sbbf(request, capfd, monkeypatch) -> Callable[..., tuple[int, list[dict], str]]:
    """Runs `sbbf lake` on an engine: exit code, rows, what was said on standard error. No key is in any of it."""
    engine = ("--engine", "local", "--jobs", "2")
    monkeypatch.setattr(local_engine, "_FILES_WITHOUT_PROCESSES", 0)
    if request.param == "spark":
        request.getfixturevalue("spark")
        engine = ("--engine", "spark")

    def sbbf(command: str, lake: Path, *arguments: object) -> tuple[int, list[dict], str]:
        capfd.readouterr()
        code = run(["lake", command, str(lake), *map(str, arguments), *engine, "--json"])
        said = capfd.readouterr()
        assert_no_key(said.out + said.err)
        return code, sorted(map(json.loads, said.out.splitlines()), key=lambda row: row.get("path", "")), said.err

    return sbbf


def statuses(rows: list[dict]) -> dict[str, str]:
    return {Path(row["path"]).stem: row["status"] for row in rows}


def test_without_keys_encrypted_files_are_told_of(lake, sbbf):
    before = digests(lake)
    code, rows, said = sbbf("add-filter", lake, "-c", "id", "-c", "name")
    assert (code, statuses(rows)) == (4, {"java": "refused", "plain": "ok", "signed": "refused"})
    assert "java.parquet: its footer is encrypted" in said
    assert "signed.parquet: its footer is signed" in said
    assert {name for name, digest in digests(lake).items() if digest != before[name]} == {"plain.parquet"}
    for command in (["inspect"], ["verify"], ["probe", "-c", "id", "--value", "1"]):
        code, rows, said = sbbf(command[0], lake, *command[1:])
        assert (code, statuses(rows)) == (4, {"java": "refused", "plain": "ok", "signed": "ok"})
        assert f"{lake}/java.parquet: " in said


def test_with_keys_they_are_files_as_others_are(lake, sbbf):
    with_keys = ("--keys", KEYS)
    code, rows, _ = sbbf("add-filter", lake, "-c", "id", "-c", "name", "-n", *with_keys)
    assert (code, {Path(row["path"]).stem: row["filters"] for row in rows}) == (0, {"java": 0, "plain": 2, "signed": 6})
    code, rows, said = sbbf("add-filter", lake, "-c", "id", "-c", "name", *with_keys)
    assert (code, statuses(rows), said) == (0, {"java": "skipped", "plain": "ok", "signed": "ok"}, "")
    signed = inspect(lake / "signed.parquet", ["name"], keys=read_keys(str(KEYS)))
    assert [row.encrypted for row in signed.filters] == [True] * 3

    code, rows, _ = sbbf("verify", lake, *with_keys)
    assert (code, statuses(rows)) == (0, dict.fromkeys(("java", "plain", "signed"), "ok"))
    assert all(proof["unproven"] is None and not proof["missed"] for row in rows for proof in row["report"]["filters"])
    code, rows, _ = sbbf("inspect", lake, "-c", "name", *with_keys)
    assert (code, [len(row["report"]["filters"]) for row in rows]) == (0, [3, 1, 3])
    code, rows, _ = sbbf("probe", lake, "-c", "name", "--value", "name-0", "--value", "u7", *with_keys)
    assert code == 0
    hits = [{hit["value"] for hit in row["report"]["hits"]} for row in rows]
    assert all(sought in found for sought, found in zip(("name-0", "u7", "name-0"), hits, strict=True))
    assert [row["report"]["unanswered"] for row in rows] == [[], [], []]
    code, reports, said = sbbf("check", lake, "--fail-on", "error", *with_keys)
    assert (code, len(reports), said) == (0, 3, "")
    code, (report,), said = sbbf("advise", lake, "--query", f"id = {FIRST_ID}", *with_keys)
    assert (code, report["files"], report["unread"]) == (0, 3, [])


def test_keys_of_the_environment(lake, sbbf, monkeypatch):
    monkeypatch.setenv("SBBF_KEYS", KEYS.read_text())
    code, rows, _ = sbbf("verify", lake)
    assert (code, statuses(rows)) == (0, dict.fromkeys(("java", "plain", "signed"), "ok"))


def test_filters_of_encrypted_columns_are_handed_to_nobody(lake):
    """They are built by whoever publishes, since the bits tell who is in the column."""
    path, spec = str(lake / "signed.parquet"), FilterSpec(COLUMNS)
    edit = Edit(in_place=True, jobs=1, keys=read_keys(str(KEYS)))
    planned = plan_file(path, spec, edit, piece_bytes=1)
    assert [piece.row_groups for piece in planned.pieces] == [(0, 1, 2)]
    chunks = list(build_piece(path, planned.fingerprint, (0, 1, 2), spec, edit))
    assert {(chunk.column, chunk.status, chunk.bitset is None) for chunk in chunks} == {(0, "ok", False), (1, "skipped", True)}
    assert (outcome := publish_file(path, chunks, spec, edit)).status == "ok", outcome
    assert len(outcome.report.filters) == 6
    assert verify(path, keys=edit.keys).is_sound


def test_an_encrypted_file_is_proven_in_pieces(lake):
    keys = read_keys(str(KEYS))
    rows = list(local_engine.verify_files(discover([str(lake)]), keys=keys, jobs=2, task_cost=1, piece_bytes=1))
    assert [row.report for row in rows] == [verify(path, keys=keys) for path in sorted(lake.iterdir())]
    assert all(proof.is_proven for proof in rows[0].report.filters)


@pytest.mark.engines
def test_plans_and_settings_of_spark_hold_no_key(spark, lake):
    from sbbf_tool.spark import pipeline

    keys = read_keys(str(KEYS))
    spec, edit = FilterSpec(COLUMNS), Edit(in_place=True, keys=keys)
    assert_no_key(repr(edit))
    files = pipeline.discover(spark, str(lake))
    planned = pipeline.plan(files, spec, edit)
    for frame in (planned, pipeline.publish(pipeline.build(planned, spec, edit), spec, edit), pipeline.verify(files, keys=keys)):
        plan = frame._jdf.queryExecution().toString()
        assert "MapInArrow" in plan
        assert_no_key(plan)
    assert_no_key(repr(spark.sparkContext.getConf().getAll()) + repr(spark.conf.getAll))


@pytest.mark.engines
@pytest.mark.heavy
def test_what_spark_logs_of_a_run_holds_no_key(lake, tmp_path):
    """The event log is all that the UI and a history server show: plans, settings, environment, tasks, accumulators."""
    pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    events = tmp_path / "events"
    events.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events,
        "spark.eventLog.compress": "false",
        "spark.local.dir": tmp_path,
    }
    command = [sys.executable, "-m", "sbbf_tool", "lake", "add-filter", str(lake), "-c", "id", "-c", "name", "--master", "local[2]"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([*command, "--keys", str(KEYS)], cwd=tmp_path, env=environment, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    logs = [path for path in events.rglob("*") if path.is_file() and not path.name.endswith(".crc")]
    said = b"".join([done.stdout, done.stderr, *(path.read_bytes() for path in logs)]).decode("latin-1")
    assert "SparkListenerSQLExecutionStart" in said
    assert_no_key(said)
