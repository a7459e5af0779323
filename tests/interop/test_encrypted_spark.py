"""Files that Spark encrypts itself, by `PropertiesDrivenCryptoFactory` and a key service: keys
wrapped in the file, or kept beside it.

The key service is MemoryKms.java, compiled by the compiler that Spark brings along.
"""

from __future__ import annotations

import base64
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sbbf_tool import (
    AuthenticationError,
    RefusedError,
    UnreadableError,
    add_filters,
    inspect,
    probe,
    remove_filters,
    verify,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.engines, pytest.mark.heavy]

MASTER_KEYS = {"kf": b"0123456789012345", "k1": b"12345678901234501234567890123450"}
KEYS = {"keys": MASTER_KEYS}
READ = {
    "parquet.crypto.factory.class": (
        "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    ),
    "parquet.encryption.kms.client.class": "MemoryKms",
    **{
        f"sbbf.test.master.key.{name}": base64.b64encode(key).decode()
        for name, key in MASTER_KEYS.items()
    },
}
COLUMN_KEYS = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "k1:name"}
WAYS = {
    "double": {**COLUMN_KEYS},
    "single-signed": {
        **COLUMN_KEYS,
        "parquet.encryption.double.wrapping": "false",
        "parquet.encryption.plaintext.footer": "true",
    },
    "single-beside-ctr": {
        **COLUMN_KEYS,
        "parquet.encryption.double.wrapping": "false",
        "parquet.encryption.key.material.store.internally": "false",
        "parquet.encryption.algorithm": "AES_GCM_CTR_V1",
    },
    "uniform-256": {
        "parquet.encryption.uniform.key": "kf",
        "parquet.encryption.data.key.length.bits": "256",
    },
}


@pytest.fixture(scope="session")
def spark_with_keys(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    folder = tmp_path_factory.mktemp("kms")
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    files = gateway.new_array(jvm.java.io.File, 1)
    files[0] = jvm.java.io.File(str(Path(__file__).with_name("MemoryKms.java")))
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setDestinationDirectory(jvm.java.io.File(str(folder)), False)
    compiler.compile(files)
    with zipfile.ZipFile(folder / "kms.jar", "w") as jar:
        jar.write(folder / "MemoryKms.class", "MemoryKms.class")
    spark.sql(f"ADD JAR '{folder / 'kms.jar'}'")
    return spark


@pytest.fixture(params=list(WAYS))
def table(spark_with_keys: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with one file of 1,000 rows in several row groups, filters on `name`."""
    options = {
        **READ,
        **WAYS[request.param],
        "parquet.bloom.filter.enabled#name": "true",
        "parquet.block.row.count.limit": "300",
    }
    rows = spark_with_keys.range(1000).selectExpr(
        "(id * 7919) % 1000 * 3 as id", "concat('n', id * 37 % 1000) as name"
    )
    rows.repartition(1).write.options(**options).parquet(str(tmp_path / "table"))
    return tmp_path / "table"


def part_of(table: Path) -> Path:
    (path,) = table.glob("part-*.parquet")
    return path


def read(spark: SparkSession, table: Path) -> DataFrame:
    return spark.read.options(**READ).parquet(str(table))


def test_filters_of_spark_and_ours(spark_with_keys: SparkSession, table: Path) -> None:
    path = part_of(table)
    assert verify(path, keys=KEYS).is_sound
    assert {result.column for result in verify(path, keys=KEYS).filters} == {"name"}
    assert not probe(path, "name", ["n42"], keys=KEYS).is_absent
    assert probe(path, "name", ["nobody"], filters_only=True, keys=KEYS).is_absent
    old = path.read_bytes()
    add_filters(path, ["id"], in_place=True, keys=KEYS)
    assert verify(path, keys=KEYS).is_sound
    rows = read(spark_with_keys, table)
    assert (rows.count(), rows.where("id = 30").count(), rows.where("id = 31").count()) == (
        1000,
        1,
        0,
    )
    assert (rows.where("name = 'n42'").count(), rows.where("name = 'nobody'").count()) == (1, 0)
    remove_filters(path, ["id"], in_place=True, keys=KEYS)
    assert path.read_bytes() == old


def test_wrong_and_missing_master_keys(table: Path) -> None:
    path = part_of(table)
    with pytest.raises(
        AuthenticationError,
        match="cannot be unwrapped with master key 'kf': the master key is wrong",
    ):
        inspect(path, keys={"keys": {"kf": bytes(16)}})
    if path.read_bytes().startswith(b"PARE"):
        with pytest.raises(RefusedError, match="the footer is encrypted"):
            inspect(path, keys={"keys": {"k1": MASTER_KEYS["k1"]}})


def test_key_material_beside_a_file_does_not_come_along(
    spark_with_keys: SparkSession, table: Path, tmp_path: Path
) -> None:
    path, copy = part_of(table), tmp_path / "copy" / "file.parquet"
    copy.parent.mkdir()
    material = path.with_name(f"_KEY_MATERIAL_FOR_{path.name}.json")
    report = add_filters(path, ["id"], output=copy, keys=KEYS)
    if not material.exists():
        assert not any("_KEY_MATERIAL_FOR_" in warning for warning in report.warnings)
        return
    (warning,) = [warning for warning in report.warnings if "_KEY_MATERIAL_FOR_" in warning]
    assert str(material) in warning
    with pytest.raises(
        UnreadableError,
        match="the key material of the file is missing; it is stored beside the file",
    ):
        inspect(copy, keys=KEYS)
    shutil.copy(material, copy.with_name("_KEY_MATERIAL_FOR_file.parquet.json"))
    assert verify(copy, keys=KEYS).is_sound
    assert read(spark_with_keys, copy).where("id = 30").count() == 1
