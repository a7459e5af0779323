"""parquet-java itself, through PySpark's gateway to the JVM: encrypted files written, and read back
with their filters.

Spark's own reader shows rows only. These are the classes below it: the example writer,
`ParquetFileReader.readBloomFilter`, and the row groups that remain for a predicate when only
filters are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """message rows {
  required int64 id;
  optional binary name (STRING);
  required double score;
  optional group nested { required int32 code; repeated binary tag (STRING); }
}"""
COLUMNS = ("id", "name", "score", "nested.code", "nested.tag")
ROW_GROUPS = 3
FIRST_ID = 1 << 40  # py4j passes smaller numbers as 32 bits
ROWS_A_GROUP = 100


@dataclass(frozen=True)
class Row:
    id: int
    name: str | None
    score: float
    code: int
    tags: tuple[str, ...]


ROWS = [
    Row(
        FIRST_ID + (i * 7919) % 1000 * 3,
        None if i % 7 == 6 else f"name-{(i * 31) % 1000}",
        (i * 37 % 900) / 4,
        i * 17 % 700,
        (f"t{i % 90}", f"u{i}"),
    )
    for i in range(ROW_GROUPS * ROWS_A_GROUP)
]


def values_of(column: str, row_group: int) -> list[object]:
    """The values of a column in one row group, in their order, without nulls."""
    rows = ROWS[row_group * ROWS_A_GROUP : (row_group + 1) * ROWS_A_GROUP]
    if column == "nested.tag":
        return [tag for row in rows for tag in row.tags]
    return [
        value for row in rows if (value := getattr(row, column.removeprefix("nested."))) is not None
    ]


@dataclass(frozen=True)
class Encryption:
    """The encryption of a file, which parquet-java takes as `FileEncryptionProperties`."""

    footer_key: bytes
    column_keys: Mapping[str, bytes] = field(default_factory=dict)
    """If empty, the footer key encrypts everything."""
    footer_key_columns: tuple[str, ...] = ()
    plaintext_footer: bool = False
    ctr: bool = False
    aad_prefix: bytes | None = None
    store_prefix: bool = True
    key_ids: Mapping[bytes, str] = field(default_factory=dict)
    """Return the key metadata that the file stores for a key."""

    def keys(self) -> dict[str, Any]:
        """Return the same keys in the form that our tool takes."""
        options: dict[str, Any] = {"footer_key": self.footer_key, "columns": dict(self.column_keys)}
        if self.aad_prefix is not None and not self.store_prefix:
            options["aad_prefix"] = self.aad_prefix
        return options


class ParquetJava:
    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._conf = spark._jsc.hadoopConfiguration()
        self._hadoop = self._jvm.org.apache.parquet.hadoop
        self._crypto = self._jvm.org.apache.parquet.crypto

    def write(
        self,
        path: Path,
        encryption: Encryption,
        *,
        filters: Iterable[str] = (),
        v2: bool = False,
        dictionary: bool = True,
        codec: str = "SNAPPY",
    ) -> Path:
        """Write ROWS in three row groups with several pages per chunk."""
        schema = self._jvm.org.apache.parquet.schema.MessageTypeParser.parseMessageType(SCHEMA)
        builder = (
            self._hadoop.example.ExampleParquetWriter.builder(self._path(path))
            .withType(schema)
            .withConf(self._conf)
        )
        builder = (
            builder.withRowGroupRowCountLimit(ROWS_A_GROUP)
            .withPageRowCountLimit(40)
            .withDictionaryEncoding(dictionary)
        )
        builder = builder.withCompressionCodec(
            getattr(self._hadoop.metadata.CompressionCodecName, codec)
        )
        version = self._jvm.org.apache.parquet.column.ParquetProperties.WriterVersion
        builder = builder.withWriterVersion(version.PARQUET_2_0 if v2 else version.PARQUET_1_0)
        for column in filters:
            builder = builder.withBloomFilterEnabled(column, True).withBloomFilterNDV(column, 200)
        writer = builder.withEncryption(self._encryption(encryption)).build()
        groups = self._jvm.org.apache.parquet.example.data.simple.SimpleGroupFactory(schema)
        for row in ROWS:
            group = groups.newGroup().append("id", row.id).append("score", row.score)
            if row.name is not None:
                group.append("name", row.name)
            nested = group.addGroup("nested").append("code", row.code)
            for tag in row.tags:
                nested.append("tag", tag)
            writer.write(group)
        writer.close()
        return path

    def rows(self, path: Path, encryption: Encryption) -> list[Row]:
        support = self._hadoop.example.GroupReadSupport()
        builder = self._hadoop.ParquetReader.builder(support, self._path(path)).withConf(self._conf)
        reader = builder.withDecryption(self._decryption(encryption)).build()
        records = []
        while (group := reader.read()) is not None:
            nested = group.getGroup("nested", 0)
            tags = tuple(
                nested.getString("tag", at) for at in range(nested.getFieldRepetitionCount("tag"))
            )
            name = group.getString("name", 0) if group.getFieldRepetitionCount("name") else None
            records.append(
                Row(
                    group.getLong("id", 0),
                    name,
                    group.getDouble("score", 0),
                    nested.getInteger("code", 0),
                    tags,
                )
            )
        reader.close()
        return records

    def filters(self, path: Path, encryption: Encryption) -> dict[tuple[int, str], Any]:
        """Return parquet-java's filter objects by row group and column; each has `findHash` and
        `hash`."""
        reader = self._open(path, encryption)
        filter_by_place = {}
        for number, block in enumerate(reader.getRowGroups()):
            source = reader.getBloomFilterDataReader(block)
            for chunk in block.getColumns():
                bloom = source.readBloomFilter(chunk)
                if bloom is not None:
                    filter_by_place[number, chunk.getPath().toDotString()] = bloom
        reader.close()
        return filter_by_place

    def row_groups_read(
        self, path: Path, encryption: Encryption, column: str, value: object
    ) -> int:
        """Count the row groups that remain for `column = value` by filters alone, without
        statistics and dictionaries."""
        reader = self._open(path, encryption, self._equals(column, value))
        count = reader.getRowGroups().size()
        reader.close()
        return int(count)

    def holds(self, bloom: Any, value: object) -> bool:
        if isinstance(value, str):
            value = self._jvm.org.apache.parquet.io.api.Binary.fromString(value)
        elif isinstance(value, int):
            value = self._jvm.java.lang.Long.valueOf(value)
        return bool(bloom.findHash(bloom.hash(value)))

    def _equals(self, column: str, value: object) -> Any:
        api = self._jvm.org.apache.parquet.filter2.predicate.FilterApi
        if isinstance(value, str):
            return api.eq(
                api.binaryColumn(column),
                self._jvm.org.apache.parquet.io.api.Binary.fromString(value),
            )
        if isinstance(value, float):
            return api.eq(api.doubleColumn(column), value)
        return api.eq(api.longColumn(column), self._jvm.java.lang.Long.valueOf(value))

    def _open(self, path: Path, encryption: Encryption, predicate: Any = None) -> Any:
        options = self._jvm.org.apache.parquet.HadoopReadOptions.builder(self._conf).withDecryption(
            self._decryption(encryption)
        )
        options = options.useStatsFilter(False).useDictionaryFilter(False).useBloomFilter(True)
        if predicate is not None:
            options = options.withRecordFilter(
                self._jvm.org.apache.parquet.filter2.compat.FilterCompat.get(predicate)
            )
        file = self._hadoop.util.HadoopInputFile.fromPath(self._path(path), self._conf)
        return self._hadoop.ParquetFileReader.open(file, options.build())

    def _encryption(self, how: Encryption) -> Any:
        builder = self._crypto.FileEncryptionProperties.builder(how.footer_key)
        if how.footer_key in how.key_ids:
            builder = builder.withFooterKeyID(how.key_ids[how.footer_key])
        cipher = self._crypto.ParquetCipher
        builder = builder.withAlgorithm(cipher.AES_GCM_CTR_V1 if how.ctr else cipher.AES_GCM_V1)
        if how.plaintext_footer:
            builder = builder.withPlaintextFooter()
        if how.aad_prefix is not None:
            builder = builder.withAADPrefix(how.aad_prefix)
            if not how.store_prefix:
                builder = builder.withoutAADPrefixStorage()
        if how.column_keys or how.footer_key_columns:
            columns = self._jvm.java.util.HashMap()
            for name, key in how.column_keys.items():
                column = self._crypto.ColumnEncryptionProperties.builder(
                    self._column(name)
                ).withKey(key)
                columns[self._column(name)] = (
                    column.withKeyID(how.key_ids[key]) if key in how.key_ids else column
                ).build()
            for name in how.footer_key_columns:
                columns[self._column(name)] = self._crypto.ColumnEncryptionProperties.builder(
                    self._column(name)
                ).build()
            builder = builder.withEncryptedColumns(columns)
        return builder.build()

    def _decryption(self, how: Encryption) -> Any:
        builder = self._crypto.FileDecryptionProperties.builder().withFooterKey(how.footer_key)
        if how.aad_prefix is not None and not how.store_prefix:
            builder = builder.withAADPrefix(how.aad_prefix)
        if how.column_keys:
            columns = self._jvm.java.util.HashMap()
            for name, key in how.column_keys.items():
                columns[self._column(name)] = (
                    self._crypto.ColumnDecryptionProperties.builder(self._column(name))
                    .withKey(key)
                    .build()
                )
            builder = builder.withColumnKeys(columns)
        return builder.build()

    def _column(self, name: str) -> Any:
        return self._hadoop.metadata.ColumnPath.fromDotString(name)

    def _path(self, path: Path) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path.as_uri())
