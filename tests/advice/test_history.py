"""`advise --history`: predicates of queries in event logs of Spark and profiles of DuckDB."""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UnreadableError, advise
from sbbf_tool.advice.history import log_file
from sbbf_tool.advice.history.duckdb_profile import list_scans, parse_profile
from sbbf_tool.advice.history.read import read_history
from sbbf_tool.advice.history.spark_log import parse_location, parse_pushed_filters
from sbbf_tool.cli import run
from support.json_schemas import validate
from support.tables import each

SQL = "org.apache.spark.sql.execution.ui."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Ten row groups of numbers, each over the whole range."""
    path = tmp_path / "data.parquet"
    ids = [number * 7919 % 100_003 for number in range(10_000)]
    pq.write_table(pa.table({"id": ids, "name": [f"n{number}" for number in ids]}), path, row_group_size=1000, use_dictionary=False)
    return path


def events(path: Path | str, filters: str = "[IsNotNull(id), EqualTo(id,50001)]", *, execution: int = 1, size: int = 90_000) -> list[Any]:
    """The events of one query, as Spark 4 writes them."""
    metadata = {"Format": "Parquet", "Location": f"InMemoryFileIndex(1 paths)[file:{path}]", "PushedFilters": filters}
    scan = {"nodeName": "Scan parquet ", "metadata": metadata, "children": []}
    scan["metrics"] = [{"name": "size of files read", "accumulatorId": 7 + execution, "metricType": "size"}]
    plan = {"nodeName": "WholeStageCodegen (1)", "metadata": {}, "metrics": [], "children": [scan]}
    stage = 10 + execution
    return [
        {"Event": f"{SQL}SparkListenerSQLExecutionStart", "executionId": execution, "sparkPlanInfo": plan},
        {"Event": f"{SQL}SparkListenerDriverAccumUpdates", "executionId": execution, "accumUpdates": [[7 + execution, 123_456]]},
        {"Event": "SparkListenerJobStart", "Stage IDs": [stage], "Properties": {"spark.sql.execution.id": str(execution)}},
        {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": {"Input Metrics": {"Bytes Read": size}}},
        {"Event": f"{SQL}SparkListenerSQLExecutionEnd", "executionId": execution},
    ]


def write_log(path: Path, items: list[Any]) -> Path:
    path.write_bytes(build_log(items))
    return path


def build_log(items: list[Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in [{"Event": "SparkListenerLogStart"}, *items])


def test_a_filter_would_have_skipped_what_was_read(data: Path, tmp_path: Path) -> None:
    items = [*events(data), *events("/elsewhere/x.parquet", execution=2), *events(data, "[]", execution=3), *events(data, execution=4)]
    report = advise(data, history=[write_log(tmp_path / "log", items)])

    assert [column.column for column in report.columns if column.verdict == "add"] == ["id"]
    history = report.history
    assert history is not None
    assert (history.logs, history.scans, history.scans_without, history.other_scans) == (1, 2, 1, 1)
    assert history.bytes_read == 180_000
    (group,) = history.groups
    assert (group.columns, group.scans, group.sampled_queries) == (("id",), 2, 1)
    assert group.share_skipped > 0.98
    assert history.bytes_skipped == round(group.share_skipped * 180_000)


def test_the_command_prints_the_bytes(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    larger_log = write_log(tmp_path / "other", [*events(data), *events("/elsewhere/x.parquet", execution=2)])
    assert run(["advise", str(data), "--history", str(larger_log)]) == 0
    assert "not counted: 1 scan of other files\n" in capsys.readouterr().out
    log = str(write_log(tmp_path / "log", events(data)))
    assert run(["advise", str(data), "--history", log]) == 0
    assert "of the 90,000 bytes that these queries read (1 scan of these files in 1 log)" in capsys.readouterr().out
    assert run(["advise", str(data), "--history", log, "--format", "json"]) == 0
    validate(json.loads(capsys.readouterr().out))


def test_conditions_that_do_not_fit_are_left_out(data: Path, tmp_path: Path) -> None:
    items = [*events(data, "[EqualTo(id,no number)]"), *events(data, "[EqualTo(gone,1), In(id, [1,2])]", execution=2)]
    report = advise(tmp_path, history=[write_log(tmp_path / "log", items)])

    assert report.history is not None
    assert report.history.scans == 2
    assert {group.columns for group in report.history.groups} == {("id",), ("gone", "id")}


def lz4_java(content: bytes) -> bytes:
    compressed = bytes(cramjam.lz4.compress_block(content, store_size=False))
    block = b"LZ4Block" + bytes([0x20 | 6]) + struct.pack("<iiI", len(compressed), len(content), 0) + compressed
    return block + b"LZ4Block" + bytes([0x10 | 6]) + struct.pack("<iiI", 0, 0, 0)


def zstd(content: bytes) -> bytes:
    half = len(content) // 2
    return b"".join(bytes(cramjam.zstd.compress(part)) for part in (content[:half], content[half:]))


@each("suffix, compress", [("", bytes), (".gz", gzip.compress), (".zstd", zstd), (".zst", zstd), (".lz4", lz4_java)])
def test_compressed_logs(data: Path, tmp_path: Path, suffix: str, compress: Any) -> None:
    path = tmp_path / f"app-1{suffix}"
    path.write_bytes(compress(build_log(events(data))))
    assert read_history([str(path)], [str(data)]).scans == 1


def test_rolled_logs_and_folders(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "eventlog_v2_app-1"
    folder.mkdir(parents=True)
    items = events(data)
    (folder / "appstatus_app-1").touch()
    (folder / "events_10_app-1.zstd").write_bytes(zstd(b"".join(json.dumps(item).encode() + b"\n" for item in items[2:])))
    (folder / "events_9_app-1").write_bytes(build_log(items[:2]))
    write_log(tmp_path / "logs" / "app-2", events(data, execution=2))

    history = read_history([str(tmp_path / "logs")], [str(data)])
    assert (history.logs, history.scans) == (2, 2)
    assert [group.bytes_read for group in history.groups.values()] == [180_000]


@each(
    "name, content, message",
    [
        ("log", b"", "neither an event log of Spark nor a JSON profile"),
        ("log", b"PAR1", "neither an event log of Spark nor a JSON profile"),
        ("log", b"{" * 100_000, "neither an event log of Spark nor a JSON profile"),
        ("log", b'{"Event": 1}\n', "neither an event log of Spark nor a JSON profile"),
        ("log.zstd", b"no zstd", "cannot be decompressed"),
        ("log.lz4", b"LZ4Block\x26" + b"\xff" * 12, "a block has impossible lengths"),
        ("log.lz4", b"other" * 10, "not in the format of lz4-java"),
        ("log.snappy", b"", "compressed with snappy are not supported"),
    ],
)
def test_what_is_no_log_gets_one_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=message) as caught:
        read_history([str(path)], ["x"])
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_files_that_never_end_are_left_out(data: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    os.mkfifo(logs / "fifo")
    (logs / "device").symlink_to("/dev/zero")
    (logs / "eventlog_v2_app-2").mkdir()
    os.mkfifo(logs / "eventlog_v2_app-2" / "events_1_app-2")
    with pytest.raises(UnreadableError, match="the folder has no log"):
        read_history([str(logs)], [str(data)])
    with pytest.raises(UnreadableError, match="neither an event log of Spark nor a JSON profile"):
        read_history([str(logs / "fifo")], [str(data)])
    write_log(logs / "app-1", events(data))
    assert read_history([str(logs)], [str(data)]).scans == 1


def test_a_folder_with_broken_logs(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    write_log(logs / "app-1", events(data))
    (logs / "binary").write_bytes(bytes(range(256)))
    (logs / "cut.gz").write_bytes(gzip.compress(build_log(events(data, execution=2)))[:-20])
    (logs / "gone").symlink_to("nowhere")

    history = read_history([str(logs)], [str(data)])
    assert history.logs == 1
    assert [message.rpartition("/")[2].partition(":")[0] for message in history.unreadable_logs] == ["binary", "cut.gz", "gone"]
    assert run(["advise", str(data), "--history", str(logs)]) == 0
    output = capsys.readouterr().out
    assert f"note: 3 logs could not be read, or not to the end; the first: {logs}/binary: this is neither an event log" in output
    (logs / "app-1").unlink()
    with pytest.raises(UnreadableError, match=r"the logs have no scan of these files; .*binary: this is neither"):
        read_history([str(logs)], [str(data)])


def test_logs_without_scans_of_the_files(data: Path, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", events("/elsewhere/x.parquet"))
    with pytest.raises(UnreadableError, match=r"the logs have no scan of these files; .*file:/elsewhere/x\.parquet"):
        read_history([str(log)], [str(data)])
    with pytest.raises(UnreadableError):
        read_history([str(tmp_path / "none")], [str(data)])


def test_hostile_lines_are_skipped_in_bounded_memory(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MOST_LINE_BYTES", 1 << 20)
    path = tmp_path / "log"
    start = f'{{"Event":"{SQL}SparkListenerSQLExecutionStart",'.encode()
    odd: list[Any] = [
        {"Event": f"{SQL}SparkListenerSQLExecutionStart", "executionId": 9, "sparkPlanInfo": [1]},
        {"Event": f"{SQL}SparkListenerDriverAccumUpdates", "executionId": 9, "accumUpdates": [[1], 2, ["a", None]]},
        {"Event": "SparkListenerJobStart", "Stage IDs": None, "Properties": {"spark.sql.execution.id": "x"}},
        {"Event": "SparkListenerTaskEnd", "Stage ID": [], "Task Metrics": {"Input Metrics": []}},
    ]
    lines = [build_log(odd), start + b"x" * (3 << 20) + b"}\n", start + b"[" * 100_000 + b"\n", build_log(events(data))[:-1]]
    path.write_bytes(b"".join(lines))

    history = read_history([str(path)], [str(data)])
    assert (history.scans, history.skipped_lines) == (1, 2)


@each(
    "text, expected",
    [
        ("[]", []),
        ("[IsNotNull(id), EqualTo(id,77)]", [("id", ("77",))]),
        ("[EqualTo(name,b'c, d), In(id, [1,2])]", [("name", ("b'c, d",)), ("id", ("1", "2"))]),
        ("[EqualTo(s.key,x(y)), GreaterThan(id,3), Or(EqualTo(id,1),EqualTo(id,2))]", [("s.key", ("x(y)",))]),
        ("[EqualNullSafe(at,2024-05-02T20:00:00Z)]", [("at", ("2024-05-02T20:00:00Z",))]),
    ],
)
def test_pushed_filters(text: str, expected: list[Any]) -> None:
    assert [tuple(condition) for condition in parse_pushed_filters(text)] == expected


def test_locations() -> None:
    assert parse_location("InMemoryFileIndex(2 paths)[file:/a/b, s3a://lake/c]") == ("file:/a/b", "s3a://lake/c")
    assert parse_location("InMemoryFileIndex(900 paths)[file:/a/b, ...") == ("file:/a/b",)
    assert parse_location("") == ()


@pytest.mark.engines
def test_profiles_of_duckdb(data: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the Python package duckdb is not installed")
    connection = duckdb.connect()
    connection.execute("SET enable_external_file_cache = false")
    for number, condition in enumerate(["id = 50001", "id IN (50001, 50002) AND name = 'n5''x'", "name = 'n50x' AND id > 3"]):
        (row,) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM '{data}' WHERE {condition}").fetchall()
        (tmp_path / f"profile-{number}.json").write_text(row[1])

    profiles = sorted(tmp_path.glob("profile-*.json"))
    for path in profiles:
        profile = parse_profile(path.read_bytes())
        assert profile is not None
        assert [scan.locations for scan in list_scans(profile)] == [(str(data),)]
    report = advise(data, history=profiles)
    assert report.history is not None
    assert report.history.scans == 3
    assert {"id"} <= {name for group in report.history.groups for name in group.columns}


@pytest.mark.engines
@pytest.mark.slow
def test_logs_of_spark(data: Path, tmp_path: Path) -> None:
    """A Spark of its own, since a session cannot begin a log."""
    import subprocess
    import sys

    pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    logs = tmp_path / "logs"
    logs.mkdir()
    program = (
        "import sys\n"
        "from sbbf_tool.spark.session import session\n"
        "conf = {'spark.eventLog.enabled': 'true', 'spark.eventLog.dir': 'file:' + sys.argv[2], 'spark.eventLog.compress': 'true'}\n"
        "spark = session('local[1]', {**conf, 'spark.sql.catalogImplementation': 'in-memory'})\n"
        "frame = spark.read.parquet(sys.argv[1])\n"
        "frame.where('id = 50001').collect()\n"
        "frame.where(\"name IN ('n1', 'nobody') AND id > 3\").collect()\n"
        "spark.stop()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, str(data), str(logs)], check=True, timeout=600, capture_output=True)

    report = advise(data, history=[logs])
    assert report.history is not None
    assert {group.columns for group in report.history.groups} == {("id",), ("name",)}
    assert report.history.scans == 2
    assert report.history.bytes_read > 0
    assert 0 < report.history.bytes_skipped <= report.history.bytes_read
