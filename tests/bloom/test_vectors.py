"""Which vector instructions the compiled kernel finds, compiled by each compiler, against the list
of the system; and warnings of compilers."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import sbbf_tool
from support.sanitized import EXTENSIONS
from support.tables import each

SOURCES = Path(__file__).parents[2] / "sbbf_tool" / "bloom"  # a wheel has no headers
CPU_LIST = Path("/proc/cpuinfo")
PROGRAM = """
#include <stdio.h>
#include "_cpu.h"

int main(void)
{
    struct vectors vectors = find_vectors();
    return printf("%d %d", vectors.avx2, vectors.avx512) < 0;
}
"""

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not CPU_LIST.exists(),
    reason="the machine is not x86-64 with Linux",
)


def expected_output() -> str:
    """Return what the program has to print, by the flags that Linux reports: those that processor
    and system support."""
    line = next(line for line in CPU_LIST.read_text().splitlines() if line.startswith("flags"))
    flags = set(line.split())
    avx2 = {"avx2", "popcnt"} <= flags
    return f"{avx2:d} {avx2 and {'avx512f', 'avx512dq', 'avx512vl'} <= flags:d}"


def run_compiled(compiler: list[str], folder: Path) -> str:
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM)
    command = [
        *compiler,
        "-std=c11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{SOURCES}",
        str(source),
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


@each("name", ["gcc", "clang"])
def test_a_compiler_finds_the_listed_instructions(name: str, tmp_path: Path) -> None:
    compiler = shutil.which(name)
    if compiler is None:
        pytest.skip(f"{name} is not installed")
    assert run_compiled([compiler], tmp_path) == expected_output()


@each("name, optimisation", [("clang", "-O0")], heavy=[("gcc", "-O3")])
@each("source", EXTENSIONS)
def test_a_compiler_has_nothing_to_say_about_an_extension(
    name: str, optimisation: str, source: Path, tmp_path: Path
) -> None:
    compiler = shutil.which(name)
    if compiler is None:
        pytest.skip(f"{name} is not installed")
    include = f"-I{sysconfig.get_paths()['include']}"
    options = [optimisation, "-fPIC", "-Wall", "-Wextra", "-Wno-psabi", "-Werror", include]
    compiled = ["-c", str(SOURCES.parent / source), "-o", str(tmp_path / "extension.o")]
    done = subprocess.run([compiler, *options, *compiled], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_extension_loads_with_old_versions_of_glibc() -> None:
    """The wheels are for manylinux 2.17."""
    newer = {}
    extensions = list(Path(sbbf_tool.__file__).parent.rglob("*.so"))
    if not extensions:
        pytest.skip("no extension was built")
    for extension in extensions:
        versions = re.findall(rb"GLIBC_2\.(\d+)", extension.read_bytes())
        newer[extension.name] = [int(version) for version in versions if int(version) > 17]
    assert not any(newer.values()), newer


def test_no_source_calls_the_function_of_the_compilers_library() -> None:
    assert [
        path.name
        for path in SOURCES.glob("*.[ch]")
        if "__builtin_cpu_supports(" in path.read_text()
    ] == []
