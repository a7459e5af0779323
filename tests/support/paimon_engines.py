"""Other readers and writers of Paimon tables: its Java library 0.9.0, and pypaimon-rust 0.4.0.

Both come from PyPI: the jar is inside the source distribution of pypaimon 0.2.0 (its Hadoop classes are in the jars PySpark bundles),
the other is a wheel. SBBF_PAIMON_JAR and SBBF_PAIMON_RUST_PYTHON name them where they are already.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import IO, Any

from support.environments import NotInstallableError, install, install_python, run

JAVA_SOURCE = Path(__file__).with_name("PaimonOracle.java")
RUST_DRIVER = Path(__file__).with_name("paimon_rust_driver.py")
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
        """Send one command; return the fields of its answer. Raises AssertionError with the exception of Java."""
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
        """Return the planned data files, the ids of the rows that were read, and the ids of the matching rows."""
        planned_files, files_read, passed = (text.strip("[]") for text in self.ask("query", str(table), column, literal))
        return set(planned_files.split(", ")) - {""}, *(
            ({int(number) for number in text.split(", ") if number}) for text in (files_read, passed)
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
    run("pypaimon 0.2.0", sys.executable, "-m", "pip", "download", *options, "pypaimon==0.2.0", "-d", str(folder))
    with tarfile.open(next(folder.glob("pypaimon-0.2.0.tar.gz"))) as archive:
        for member in archive:
            if member.name.endswith(".jar"):
                member.name = Path(member.name).name
                archive.extract(member, folder, filter="data")


def _hadoop_jars() -> list[str]:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise NotInstallableError("paimon-java cannot run: PySpark, whose jars have the Hadoop classes it needs, is not installed")
    jars = Path(spark.origin).parent / "jars"
    return [str(path) for path in sorted(jars.glob("*.jar")) if path.name.startswith(_HADOOP)]


def rust_python() -> Path:
    """Return the interpreter of an environment with pypaimon-rust."""
    if path := os.environ.get("SBBF_PAIMON_RUST_PYTHON"):
        return Path(path)
    return install_python("pypaimon-rust-0.4.0", "pypaimon-rust==0.4.0", "pyarrow")


def run_rust(**question: Any) -> Any:
    """Send one request to paimon_rust_driver.py in a separate process; return its answer."""
    done = subprocess.run([rust_python(), str(RUST_DRIVER)], input=json.dumps(question), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
