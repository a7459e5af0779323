"""Paimon's Java library 0.9.0 writes tables of many shapes, and uses the indexes added to them.

The jar is inside the source distribution of pypaimon 0.2.0; its Hadoop classes are in the jars
PySpark bundles. SBBF_PAIMON_JAR names it where it is already.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from sbbf_tool.errors import RefusedError
from sbbf_tool.extensions.paimon.commit_plan import IndexChange
from sbbf_tool.extensions.paimon.index_container import parse_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.publish import publish
from sbbf_tool.extensions.paimon.table import PaimonTable, find_index, open_table
from sbbf_tool.extensions.paimon.table_schema import (
    indexed_type,
    parse_indexed_column,
    parse_type_text,
)
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index
from sbbf_tool.extensions.paimon.verbs.build import build
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import parse_literal, probe_container
from sbbf_tool.extensions.paimon.verbs.remove_index import remove_paimon_index
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.storage.folders import LocalFolders
from support.environments import NotInstallableError, install, run

pytestmark = [pytest.mark.nightly, pytest.mark.environment(minutes=2), pytest.mark.timeout(900)]

JAVA_SOURCE = Path(__file__).with_name("PaimonOracle.java")
_HADOOP = ("hadoop-client-api-", "hadoop-client-runtime-", "slf4j-api-", "jcl-over-slf4j-")


class PaimonJava:
    """Paimon's Java library behind a pipe; see PaimonOracle.java for what it answers."""

    def __init__(self, scratch: Path) -> None:
        class_path = os.pathsep.join([str(_jar()), *_hadoop_jars(), str(scratch)])
        if not shutil.which("javac"):
            raise NotInstallableError("paimon-java cannot be compiled: there is no Java compiler")
        run("PaimonOracle", "javac", "-cp", class_path, "-d", str(scratch), str(JAVA_SOURCE))
        self._process = subprocess.Popen(
            ["java", "-Duser.timezone=UTC", "-cp", class_path, "PaimonOracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def ask(self, *fields: str) -> list[str]:
        """Send one command; return the fields of its answer. Raises AssertionError with the
        exception of Java."""
        question: IO[str] | None = self._process.stdin
        answer: IO[str] | None = self._process.stdout
        assert question is not None
        assert answer is not None
        question.write("\t".join(fields) + "\n")
        question.flush()
        state, *rest = answer.readline().rstrip("\n").split("\t")
        assert state == "ok", f"{fields}: {rest}"
        return rest

    def query(self, table: Path, column: str, literal: str) -> tuple[set[str], set[int], set[int]]:
        """Return the planned data files, the ids of the rows that were read, and the ids of the
        matching rows."""
        planned_files, files_read, passed = (
            text.strip("[]") for text in self.ask("query", str(table), column, literal)
        )
        return set(planned_files.split(", ")) - {""}, *(
            ({int(number) for number in text.split(", ") if number})
            for text in (files_read, passed)
        )

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait(timeout=60)


def _jar() -> Path:
    if path := os.environ.get("SBBF_PAIMON_JAR"):
        return Path(path)
    return next(install("paimon-java-0.9.0", _download_jar).glob("*.jar"))


def _download_jar(folder: Path) -> None:
    options = ("-q", "--no-deps", "--no-binary", ":all:")
    run(
        "pypaimon 0.2.0",
        sys.executable,
        "-m",
        "pip",
        "download",
        *options,
        "pypaimon==0.2.0",
        "-d",
        str(folder),
    )
    with tarfile.open(next(folder.glob("pypaimon-0.2.0.tar.gz"))) as archive:
        for member in archive:
            if member.name.endswith(".jar"):
                member.name = Path(member.name).name
                archive.extract(member, folder, filter="data")


def _hadoop_jars() -> list[str]:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise NotInstallableError(
            "paimon-java cannot run: PySpark, whose jars have the Hadoop classes it needs, is "
            "not installed"
        )
    jars = Path(spark.origin).parent / "jars"
    return [str(path) for path in sorted(jars.glob("*.jar")) if path.name.startswith(_HADOOP)]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaimonJava]:
    try:
        engine = PaimonJava(tmp_path_factory.mktemp("classes"))
    except NotInstallableError as error:
        pytest.skip(str(error))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def warehouse(java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    (table_count,) = java.ask("make", str(folder))
    tables = folder / "fx.db"
    assert int(table_count) == len(list(tables.iterdir()))
    return tables


def all_tables(warehouse: Path) -> Iterator[PaimonTable]:
    folders = sorted(warehouse.iterdir())
    assert folders
    for folder in folders:
        yield open_table(LocalFolders(), str(folder))


def test_every_data_file_is_found_and_no_index_loses_anything(warehouse: Path) -> None:
    for table in all_tables(warehouse):
        assert table.live_files
        assert all(Path(live.path).is_file() for live in table.live_files), table.path
        report = verify_paimon(table.path)
        assert not report.has_false_negatives, table.path
        assert not report.problems, table.path
        assert not inspect_paimon(table.path).errors


LITERALS: dict[str, list[tuple[str, str]]] = {
    "STRING": [(text, text) for text in ("", "c1", "c99", "nowhere", "日本")],
    "BYTES": [("0x", ""), ("0x00ff", "00ff")],
    "BIGINT": [
        (text, text) for text in ("0", "1000", "-1", "9223372036854775807", "-9223372036854775808")
    ],
    "INT": [(text, text) for text in ("0", "-2147483648", "7")],
    "SMALLINT": [(text, text) for text in ("0", "-32768", "12")],
    "TINYINT": [(str(each), str(each)) for each in range(-128, 128)],
    "DATE": [("0001-01-01", "-719162"), ("1970-01-01", "0"), ("2024-02-29", "19782")],
    "TIME": [("00:00:00", "0"), ("23:59:59.999", "86399999")],
    "FLOAT": [
        ("NaN", "7fc12345"),
        ("-0", "80000000"),
        ("0", "0"),
        ("0.1", "3dcccccd"),
        ("-Infinity", "ff800000"),
    ],
    "DOUBLE": [
        ("NaN", "fff8000000000001"),
        ("-0", "8000000000000000"),
        ("0.1", "3fb999999999999a"),
    ],
    "TIMESTAMP": [
        ("1969-12-31T23:59:59.999999999", "-1:999999"),
        ("2024-02-29T01:02:03.456789", "1709168523456:789000"),
        ("1970-01-01", "0:0"),
    ],
}

LITERALS["CHAR"] = LITERALS["VARCHAR"] = LITERALS["STRING"]

LITERALS["BINARY"] = LITERALS["VARBINARY"] = LITERALS["BYTES"]

LITERALS["TIMESTAMP_LTZ"] = LITERALS["TIMESTAMP"]


def test_both_readers_answer_alike(java: PaimonJava, warehouse: Path, tmp_path: Path) -> None:
    """Of every container, value for value; the containers of our own making, too."""
    queries = skipped = 0
    path = tmp_path / "x.index"
    for table in all_tables(warehouse):
        for live in table.live_files:
            container = find_index(table.files, live).container
            if container is None:
                continue
            schema = table.schema_of(live.file)
            columns = list(container.indexes)
            own = build(
                table.files, live.path, [IndexRequest(column, fpp=0.3) for column in columns]
            ).container
            for ours in (container, parse_container(own)):
                path.write_bytes(ours.data)
                for column in columns:
                    data_type = indexed_type(schema, parse_indexed_column(column))
                    assert data_type is not None
                    pairs = LITERALS[data_type.root]
                    (theirs,) = java.ask(
                        "container",
                        str(path),
                        column,
                        str(parse_type_text(str(data_type))),
                        *(literal for _, literal in pairs),
                    )
                    mine = [
                        probe_container(ours, column, text, parse_literal(text, data_type)).may_hold
                        for text, _ in pairs
                    ]
                    assert [each == "1" for each in theirs] == mine, f"{live.path} {column}"
                    queries += len(pairs)
                    skipped += mine.count(False)
    assert queries > 1000
    assert skipped > 300


@pytest.mark.parametrize("data_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("place", ["file", "embedded"])
def test_indexes_added_to_its_tables_are_used(
    java: PaimonJava, warehouse: Path, tmp_path: Path, data_format: str, place: str
) -> None:
    """The value ranges of three data files overlap, so that only an index can locate a value."""
    plain = warehouse / f"plain_{data_format}_{place}"
    table = tmp_path / "indexed"
    shutil.copytree(plain, table)
    report = add_paimon_index(str(table), [IndexRequest("s", fpp=0.0001)])
    assert [row.place for row in report.new_indexes] == [place] * 3
    for number in (600, 601, 602):
        _, reached_before, passed_before = java.query(plain, "s", f"value {number}")
        _, files_read, passed = java.query(table, "s", f"value {number}")
        assert passed == passed_before == {number}
        assert files_read == {each for each in reached_before if each % 3 == number % 3}
        assert len(reached_before) > len(files_read)
    planned_files, files_read, _ = java.query(table, "s", "value 600x")
    assert java.query(plain, "s", "value 600x")[1]
    assert files_read == set()
    assert len(planned_files) == (3 if place == "file" else 0)

    assert java.ask("commit", str(table), "5000", "10", "1") == ["5"]
    assert java.query(table, "s", "value 5003")[2] == {5003}
    assert java.query(table, "s", "value 601")[2] == {601}
    after = add_paimon_index(str(table), [IndexRequest("s")])
    assert [len(after.new_indexes), len(after.skipped)] == [1, 3]
    assert java.query(table, "s", "value 5003")[2] == {5003}


@pytest.mark.parametrize("place", ["file", "embedded"])
def test_indexes_that_come_and_go_keep_the_rows(
    java: PaimonJava, warehouse: Path, tmp_path: Path, place: str
) -> None:
    """Paimon expects each entry of a manifest once: it reads and commits on top of tables whose
    entries recur."""
    plain, table = warehouse / f"plain_parquet_{place}", tmp_path / "table"
    shutil.copytree(plain, table)
    before = {number: java.query(plain, "s", f"value {number}") for number in (600, 601, 602)}
    for number in range(2):
        add_paimon_index(str(table), [IndexRequest("s", fpp=0.0001)])
        _, files_read, passed = java.query(table, "s", "value 601")
        assert passed == {601}
        assert len(files_read) < len(before[601][1])
        assert len(remove_paimon_index(str(table)).removed_indexes) == 3 + number
        for value, (_, reached_before, passed_before) in before.items():
            _, files_after, passed = java.query(table, "s", f"value {value}")
            assert passed == passed_before == {value}
            assert files_after >= reached_before
        first = 5000 + 100 * number
        java.ask("commit", str(table), str(first), "10", "1")
        assert java.query(table, "s", f"value {first + 3}")[2] == {first + 3}
        assert java.query(table, "s", "value 602")[2] == {602}
    assert not verify_paimon(table).problems


def test_partitioned_tables_keep_their_rows(
    java: PaimonJava, warehouse: Path, tmp_path: Path
) -> None:
    tables = sorted(warehouse.glob("partitions_*"))
    assert tables
    for plain in tables:
        table = tmp_path / plain.name
        shutil.copytree(plain, table)
        report = add_paimon_index(str(table), [IndexRequest("s")])
        assert not report.skipped
        for number in range(12):
            assert java.query(table, "s", f"value {number}")[2] == {number}


def test_manifests_that_are_not_avro(warehouse: Path, tmp_path: Path) -> None:
    for name in ("manifests_orc", "manifests_parquet"):
        table = open_table(LocalFolders(), str(warehouse / name))
        assert len(table.live_files) == 2
        stripped = tmp_path / name
        shutil.copytree(warehouse / name, stripped)
        with pytest.raises(RefusedError, match="not in Avro"):
            _add_anyway(stripped)


def _add_anyway(path: Path) -> None:
    """Publish as if the data files had no index, to get to the manifests."""
    table = open_table(LocalFolders(), str(path))
    additions = [IndexChange(live.entry, b"", None) for live in table.live_files]
    publish(LocalFolders(), str(path), additions)
