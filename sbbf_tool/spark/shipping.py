"""This package as a zip that Python can import, for executors that do not have it.

Compiled modules cannot be imported from a zip, so executors use the numpy kernel. The dependencies
of the package (numpy, pyarrow, cramjam, thrift, xxhash) must be installed on the executors.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import sbbf_tool
from sbbf_tool.spark import register
from sbbf_tool.spark.functions import register_functions
from sbbf_tool.spark.java import scratch_folder
from sbbf_tool.spark.session import FIRST_WITH_DATA_SOURCES, spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZIP_NAME = "sbbf-tool.zip"
_SHIPPED = (".py", ".pyi", ".toml")
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def ship(spark: SparkSession) -> None:
    """Send this package to the executors of a session of classic Spark or Spark Connect, and
    register the format and functions there."""
    # Classic Spark serves the file from this path while the session lives.
    spark.addArtifacts(write_zip(scratch_folder("shipping") / ZIP_NAME), pyfile=True)
    if spark_version() >= FIRST_WITH_DATA_SOURCES:
        register(spark)
    else:
        register_functions(spark)


def write_zip(path: str | os.PathLike[str]) -> str:
    """Write the package to a zip, for `spark-submit --py-files`, and return its path. The zip is
    reproducible."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _modules():
            archive.writestr(zipfile.ZipInfo(name, _NO_TIME), content, zipfile.ZIP_DEFLATED)
    return os.fspath(path)


def _modules() -> Iterator[tuple[str, bytes]]:
    for package in ("sbbf_tool", "pyspark_sbbf"):
        spec = find_spec(package)  # the second cannot be imported with PySpark 3.5
        assert spec is not None
        assert spec.submodule_search_locations
        folder = Path(spec.submodule_search_locations[0])
        for file in sorted(folder.rglob("*")):
            if file.suffix in _SHIPPED:
                yield str(Path(package) / file.relative_to(folder)), file.read_bytes()
    if (number := sbbf_tool.__version__) != "unknown":
        yield (
            f"sbbf_tool-{number}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: sbbf-tool\nVersion: {number}\n".encode(),
        )
