"""The implementations that this installation uses, and for a bug report the environment that it
runs in."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version

from sbbf_tool.bloom import kernels
from sbbf_tool.parquet import footer_structs, structs

_REQUIRED = ("pyarrow", "numpy", "click", "rich", "xxhash", "cramjam")
_OF_DEVELOPERS = ("docs", "unit", "test")
"""Extras of this package that its users do not need."""
_SECONDS_FOR_JAVA = 3.0


def describe(*, whole: bool) -> Iterator[str]:
    """Yield a line each for this package and its implementations, with `whole` also Python, the
    platform, packages, extras and Java."""
    yield from (
        f"sbbf {find_version('sbbf-tool')}",
        kernels.describe(),
        structs.describe(),
        footer_structs.describe(),
    )
    if not whole:
        return
    yield f"Python: {platform.python_version()} ({platform.python_implementation()})"
    yield f"platform: {platform.platform()}"
    yield from (f"{name}: {find_version(name)}" for name in _REQUIRED)
    for extra, names in _find_extras().items():
        if extra not in _OF_DEVELOPERS:
            versions = ", ".join(f"{name} {find_version(name)}" for name in names)
            yield f"extra {extra}: {versions}"
    yield f"Java: {_describe_java()}"


def _find_extras() -> dict[str, list[str]]:
    """Return the packages of each extra; empty for a frozen program."""
    extras: dict[str, list[str]] = {}
    with suppress(PackageNotFoundError):
        for requirement in requires("sbbf-tool") or ():
            match = re.match(r'([\w.-]+).*extra == "(\w+)"', requirement)
            if match is not None:
                extras.setdefault(match[2], []).append(match[1])
    return extras


def find_version(package: str) -> str:
    """Return the version of an installed package, or `not installed`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _describe_java() -> str:
    from shutil import which

    from sbbf_tool.spark.java import query_java

    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else which("java")
    if program is None:
        return "none by JAVA_HOME or on PATH"
    java = query_java(program, _SECONDS_FOR_JAVA)
    return f"{program} does not answer" if java is None else str(java).removeprefix("Java ")
