"""Find a Java on this machine that Spark supports.

Spark 3.5 runs on Java 8, 11 and 17; Spark 4 on Java 17 and 21; Spark 4.2 and newer also run on Java
25, from 25.0.3 (https://spark.apache.org/docs/latest/).

Spark's launcher requests the module `jdk.incubator.vector`, which Spark uses only for machine
learning. Java prints a warning about it, and small runtimes do not include it; so a script in place
of `bin/java` removes that argument.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sbbf_tool.errors import UsageError

Version = tuple[int, ...]

_SINCE_4_2: Version = (25, 0, 3)
_SECONDS_TO_ANSWER = 60
_VERSION = re.compile(r'version "(?:1\.)?(\d+(?:\.\d+)*)')
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)

_JAVA_WITHOUT_VECTOR_MODULE = """\
#!/usr/bin/env bash
kept=()
for argument in "$@"; do
  [[ $argument == --add-modules=jdk.incubator.vector ]] || kept+=("$argument")
done
exec "{java}" "${{kept[@]}}"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """Home and version of an installed Java that starts."""

    home: str
    version: Version

    def __str__(self) -> str:
        return f"Java {'.'.join(map(str, self.version))} in {self.home}"


def find_java(spark: Version) -> str:
    """Find the home of a Java for this version of Spark, such as (4, 3): in JAVA_HOME, then on
    PATH.

    Raises UsageError, with the Javas on this machine and what to do, if Spark supports none of
    them.
    """
    javas = list(_find_installed())
    for java in javas:
        if accepts(spark, java.version):
            return java.home
    if spark >= (4, 2):
        versions = "17, 21 or 25 (from 25.0.3)"
    elif spark >= (4, 0):
        versions = "17 or 21"
    else:
        versions = "8, 11 or 17"
    machine = "there is none by JAVA_HOME or on PATH"
    if javas:
        machine = f"there is only {', '.join(map(str, javas))}"
    release = ".".join(map(str, spark[:2]))
    raise UsageError(
        f"Spark {release} needs Java {versions}, but {machine}",
        hint="install one, or set JAVA_HOME to it",
    )


def accepts(spark: Version, java: Version) -> bool:
    """Return whether this version of Spark runs on this version of Java."""
    if spark < (4, 0):
        return java[0] in (8, 11, 17)
    major = java[0]
    if major == _SINCE_4_2[0]:
        return java >= _SINCE_4_2 and spark >= (4, 2)
    return major in (17, 21)


def query_java(java: str | os.PathLike[str], seconds: float = _SECONDS_TO_ANSWER) -> Java | None:
    """Run the program `java` to get its home and version; return None if it does not answer within
    `seconds`, or is not a Java.

    The program on PATH may be a link, or the script of a version manager, so its path does not
    determine the home.
    """
    try:
        # The properties are printed to standard error too. A Java without this option fails, but it
        # is too old for Spark anyway.
        done = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=seconds,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(done.stderr)
    if version is None:
        return None
    numbers = tuple(map(int, version[1].split(".")))
    stated_home = _HOME.search(done.stderr)
    if stated_home is not None:
        return Java(stated_home[1], numbers)
    return Java(str(Path(java).resolve().parent.parent), numbers)


def _find_installed() -> Iterator[Java]:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(os.path.join(home, "bin", "java"))
    if on_path := shutil.which("java"):
        candidates.append(on_path)
    for candidate in candidates:
        if java := query_java(candidate):
            yield java


@cache
def home_without_vector_module(home: str) -> str:
    """Create a home for the Java in `home` that starts it without `jdk.incubator.vector`; it exists
    until this process ends."""
    wrapper = scratch_folder("quiet-java") / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_JAVA_WITHOUT_VECTOR_MODULE.format(java=os.path.join(home, "bin", "java")))
    wrapper.chmod(0o755)
    return str(wrapper.parent.parent)


def scratch_folder(name: str) -> Path:
    """Create an empty folder with this name, for what Spark needs while this process runs; it is
    removed when the process ends."""
    folder = _root(os.getpid()) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@cache
def _root(process: int) -> Path:
    """Create the root folder of a process. A forked process gets its own, because the parent
    removes the parent's folder."""
    folder = tempfile.mkdtemp(prefix="sbbf-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
