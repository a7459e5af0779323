"""Event logs of Spark: each scan has the bytes that it read, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import advise
from sbbf_tool.advice.history.log_file import find_logs, read_lines
from sbbf_tool.advice.history.read import read_history
from sbbf_tool.advice.history.scans import Scan
from sbbf_tool.advice.history.spark_log import SparkLog, parse_pushed_filters
from sbbf_tool.cli import run
from support.tables import each

SQL = "org.apache.spark.sql.execution.ui."
TESTS = Path(__file__).parents[1]


def list_scans(events: list[dict[str, Any]]) -> list[Scan]:
    log = SparkLog()
    return [*log.scans(json.dumps(event).encode() for event in events), *log.remaining_scans()]


def scan_node(
    path: str, first: int, *, form: str = "Parquet", filters: str = "[EqualTo(id,1)]", name: str = "Scan parquet "
) -> dict[str, Any]:
    metrics = [{"name": "number of output rows", "accumulatorId": first}, {"name": "size of files read", "accumulatorId": first + 1}]
    metadata = {"Format": form, "Location": f"InMemoryFileIndex(1 paths)[{path}]", "PushedFilters": filters} if form else {}
    return {"nodeName": name, "metadata": metadata, "metrics": metrics, "children": []}


def start(*nodes: dict[str, Any], execution: int = 1, stages: tuple[int, ...] = (1,)) -> list[dict[str, Any]]:
    plan = {"nodeName": "Union", "metadata": {}, "metrics": [], "children": list(nodes)}
    return [
        {"Event": f"{SQL}SparkListenerSQLExecutionStart", "executionId": execution, "sparkPlanInfo": plan},
        {"Event": "SparkListenerJobStart", "Stage IDs": list(stages), "Properties": {"spark.sql.execution.id": str(execution)}},
    ]


def sizes(*pairs: tuple[int, int], execution: int = 1) -> dict[str, Any]:
    return {"Event": f"{SQL}SparkListenerDriverAccumUpdates", "executionId": execution, "accumUpdates": [list(pair) for pair in pairs]}


def task(size: int, *metrics: int, partition: int = 0, stage: int = 1, reason: str = "Success", rows: int = 10) -> dict[str, Any]:
    info = {"Index": partition, "Partition ID": partition, "Accumulables": [{"ID": number, "Update": "10"} for number in metrics]}
    inputs = {"Bytes Read": size, "Records Read": rows}
    end = {"Task End Reason": {"Reason": reason}, "Task Metrics": {"Input Metrics": inputs}}
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Info": info, **end}


def end(execution: int = 1) -> dict[str, Any]:
    return {"Event": f"{SQL}SparkListenerSQLExecutionEnd", "executionId": execution}


def test_tasks_of_one_stage_count_for_the_scan_whose_metrics_they_change() -> None:
    nodes = scan_node("s3://lake/a", 10), scan_node("s3://lake/b", 20)
    scans = list_scans([*start(*nodes), sizes((11, 900), (21, 100)), task(700, 10), task(50, 20, partition=1), end()])
    assert {scan.locations[0]: scan.bytes_read for scan in scans} == {"s3://lake/a": 700, "s3://lake/b": 50}


def test_a_task_that_reads_two_scans_counts_once() -> None:
    nodes = scan_node("s3://lake/a", 10), scan_node("s3://lake/b", 20)
    scans = list_scans([*start(*nodes), sizes((11, 900), (21, 100)), task(500, 10, 20), end()])
    assert {scan.locations[0]: scan.bytes_read for scan in scans} == {"s3://lake/a": 450, "s3://lake/b": 50}


def test_several_attempts_for_a_partition_count_once() -> None:
    attempts = [
        task(400, 10, reason="ExceptionFailure"),
        task(500, 10),
        task(600, 10),
        task(300, 10, reason="TaskKilled"),
        task(5, 10, partition=1),
    ]
    (scan,) = list_scans([*start(scan_node("s3://lake/a", 10)), sizes((11, 900)), *attempts, end()])
    assert scan.bytes_read == 505


def test_a_scan_that_a_plan_lists_twice_counts_once() -> None:
    node = scan_node("s3://lake/a", 10)
    reused = {"nodeName": "ReusedExchange", "metadata": {}, "metrics": [], "children": [node]}
    (scan,) = list_scans([*start(node, reused), sizes((11, 900)), task(500, 10), end()])
    assert scan.bytes_read == 500


def test_an_adaptive_plan_replaces_scans_that_have_not_run() -> None:
    plan = {"nodeName": "Join", "metrics": [], "metadata": {}, "children": [scan_node("s3://lake/a", 30), scan_node("s3://lake/b", 20)]}
    update = {"Event": f"{SQL}SparkListenerSQLAdaptiveExecutionUpdate", "executionId": 1, "sparkPlanInfo": plan}
    first = [*start(scan_node("s3://lake/a", 10), scan_node("s3://lake/b", 20)), sizes((21, 100)), task(80, 20)]
    scans = list_scans([*first, update, sizes((31, 900)), task(500, 30, partition=1), end()])
    assert {scan.locations[0]: scan.bytes_read for scan in scans} == {"s3://lake/a": 500, "s3://lake/b": 80}


def test_bytes_of_other_formats_and_of_caches_are_left_out() -> None:
    csv = scan_node("s3://lake/c", 20, form="CSV", name="Scan csv ")
    cache = scan_node("", 30, form="", name="InMemoryTableScan")
    nodes = scan_node("s3://lake/a", 10), csv, cache
    tasks = [task(500, 10), task(9000, 20, partition=1), task(8000, 30, partition=2), task(40, 10, 30, partition=3)]
    (scan,) = list_scans([*start(*nodes), sizes((11, 900), (21, 100)), *tasks, end()])
    assert scan.bytes_read == 540


def test_a_scan_of_cached_rows_has_not_run() -> None:
    cache = scan_node("", 30, form="", name="InMemoryTableScan")
    cache["children"] = [scan_node("s3://lake/a", 10)]
    assert list_scans([*start(cache), task(8000, 30), end()]) == []


def test_a_task_without_rows_changes_no_metric() -> None:
    (scan,) = list_scans([*start(scan_node("s3://lake/a", 10)), sizes((11, 900)), task(30, rows=0), end()])
    assert (scan.bytes_read, scan.is_file_size) == (30, False)


def test_a_plan_that_runs_again_has_the_sizes_of_its_first_run() -> None:
    node = scan_node("s3://lake/a", 10)
    again = [*start(node, execution=2, stages=(2,)), task(0, 10, stage=2), end(2)]
    scans = list_scans([*start(node), sizes((11, 900)), task(500, 10), end(), *again])
    assert [(scan.bytes_read, scan.is_file_size) for scan in scans] == [(500, False), (900, True)]


@each(
    "version, setting, path, expected",
    [
        ("4.0.1", None, "file:/lake/a", (500, False)),
        ("4.1.0", None, "file:/lake/a", (90_000, True)),
        ("4.1.0", "false", "file:/lake/a", (500, False)),
        ("3.5.1", "true", "file:/lake/a", (90_000, True)),
        ("4.1.0", None, "s3a://lake/a", (500, False)),
    ],
)
def test_local_reads_that_tasks_do_not_count(version: str, setting: str | None, path: str, expected: tuple[int, bool]) -> None:
    """Hadoop's statistics leave out vectored reads of local files, the default since parquet-java 1.16."""
    properties = {} if setting is None else {"spark.hadoop.parquet.hadoop.vectored.io.enabled": setting}
    head = [
        {"Event": "SparkListenerLogStart", "Spark Version": version},
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties},
    ]
    (scan,) = list_scans([*head, *start(scan_node(path, 10)), sizes((11, 90_000)), task(500, 10), end()])
    assert (scan.bytes_read, scan.is_file_size) == expected


def test_the_report_says_for_how_many_scans_a_log_has_no_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_numbers(tmp_path / "a.parquet")
    events: list[dict[str, Any]] = [{"Event": "SparkListenerLogStart", "Spark Version": "4.1.0"}]
    events += [*start(scan_node(f"file:{data}", 10, filters="[EqualTo(id,501)]")), sizes((11, 90_000)), task(500, 10), end()]
    second = start(scan_node(f"file:{data}", 20, filters="[EqualTo(id,503)]"), execution=2, stages=(2,))
    events += [*second, sizes((21, 90_000), execution=2), end(2)]
    log = tmp_path / "log"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in events))

    report = advise(data, history=[log])
    assert report.history is not None
    assert (report.history.scans, report.history.scans_by_file_size, report.history.scans_without_bytes) == (2, 1, 1)
    assert run(["advise", str(data), "--history", str(log)]) == 0
    output = capsys.readouterr().out
    assert "of the 90,000 bytes that these queries read (2 scans of these files in 1 log)\n" in output
    assert "note: 1 scan counted with all bytes of the files, as the logs do not say how many were read\n" in output
    assert "note: 1 scan counted as 0 bytes, as the logs do not say how many were read\n" in output


def test_the_value_of_a_subquery_is_unknown() -> None:
    assert list(parse_pushed_filters("[IsNotNull(name), EqualTo(name,ScalarSubquery#215)]")) == []


def write_numbers(path: Path, rows: int = 20_000) -> Path:
    ids = [number * 7919 % 100_003 * 2 for number in range(rows)]
    table = pa.table({"id": ids, "name": [f"n{number}" for number in ids], "other": [number // 2 % 9 for number in ids]})
    pq.write_table(table, path, row_group_size=2000, use_dictionary=False)
    return path


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    write_numbers(folder / "a.parquet")
    write_numbers(folder / "b.parquet", 9000)
    (folder / "text").write_text("n1\n" * 20_000)
    return folder


def run_spark(lake: Path, logs: Path, settings: dict[str, str]) -> list[Scan]:
    """Return the scans in the log of a Spark of its own, since a session cannot begin a log."""
    logs.mkdir()
    program = [sys.executable, "-W", "ignore", "-m", "support.spark_log_program", str(lake), str(logs), json.dumps(settings)]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    result = subprocess.run(program, timeout=900, capture_output=True, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert result.returncode == 0, result.stderr.decode()[-3000:]
    (files,) = find_logs(str(logs))
    log = SparkLog()
    return [scan for file in files for scan in log.scans(read_lines(file))]


VECTORED = "spark.hadoop.parquet.hadoop.vectored.io.enabled"


@pytest.mark.engines
@pytest.mark.slow
@each("codec, is_adaptive, is_rolled", {"adaptive-rolled-zstd": ("zstd", True, True), "static-lz4": ("lz4", False, False)})
def test_each_scan_of_real_queries_has_its_bytes_once(codec: str, is_adaptive: bool, is_rolled: bool, lake: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    settings = {VECTORED: "false", "spark.eventLog.compress": "true", "spark.eventLog.compression.codec": codec}
    settings |= {"spark.sql.adaptive.enabled": str(is_adaptive).lower(), "spark.eventLog.rolling.enabled": str(is_rolled).lower()}
    scans = run_spark(lake, tmp_path / "logs", settings)

    assert not any(scan.is_file_size for scan in scans)
    read: dict[tuple[str, str], set[int | None]] = {}
    for scan in scans:
        name = scan.locations[0].rpartition("/")[2]
        read.setdefault((name, " ".join(f"{column}={','.join(values)}" for column, values in scan.conditions)), set()).add(scan.bytes_read)
    counts = Counter(
        (scan.locations[0].rpartition("/")[2], *(f"{column}={','.join(values)}" for column, values in scan.conditions)) for scan in scans
    )
    assert counts == {
        ("a.parquet", "id=501"): 2,
        ("a.parquet", "name=n1,nobody"): 1,
        ("a.parquet", "id=15838"): 1,
        ("b.parquet", "other=8", "id=15838"): 1,
        ("a.parquet", "id=503"): 1,
        ("b.parquet", "id=503"): 1,
        ("a.parquet", "id=504"): 1,
        ("a.parquet", "id=505"): 1,
        ("a.parquet", "other=6"): 1,
        ("b.parquet", "other=8"): 1,
        ("a.parquet",): 1,
        ("a.parquet", "other=5"): 1,
    }
    size = {name: (lake / name).stat().st_size for name in ("a.parquet", "b.parquet")}
    (whole,) = read["a.parquet", "id=501"]
    assert whole is not None
    assert size["a.parquet"] * 0.9 < whole < size["a.parquet"] * 1.2
    for key in ("id=15838", "id=503", "id=505", "other=6", "other=5"):
        assert read["a.parquet", key] == {whole}, key
    for key, conditions in (("b.parquet", "id=503"), ("b.parquet", "other=8 id=15838")):
        (number,) = read[key, conditions]
        assert number is not None
        assert number < size["b.parquet"] * 1.2
    (columns,) = read["a.parquet", "name=n1,nobody"]
    assert columns is not None
    assert columns < whole


@pytest.mark.engines
@pytest.mark.slow
def test_vectored_reads_of_local_files_count_with_the_size_of_the_files(lake: Path, tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    scans = run_spark(lake, tmp_path / "logs", {VECTORED: "true", "spark.eventLog.compress": "false"})

    whole = [scan.bytes_read for scan in scans if scan.conditions and scan.conditions[0].values == ("501",)]
    assert whole == [(lake / "a.parquet").stat().st_size] * 2, pyspark.__version__
    history = read_history([str(tmp_path / "logs")], [str(lake / "a.parquet")])
    assert history.scans_by_file_size == history.scans > 0
