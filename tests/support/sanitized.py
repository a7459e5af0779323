"""The package with its extensions compiled under AddressSanitizer and UndefinedBehaviorSanitizer,
for processes that tests start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import sbbf_tool

PACKAGE = Path(sbbf_tool.__path__[0])
EXTENSIONS = (
    Path("bloom", "_kernel.c"),
    Path("parquet", "_compact.c"),
    Path("parquet", "_pages.c"),
    Path("parquet", "_scan.c"),
)
_FLAGS = (
    "-shared",
    "-fPIC",
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)


def build_sanitized(folder: Path) -> dict[str, str]:
    """Build the package in `folder`; return the environment of a process that imports it. Skips the
    test without compiler or sanitizers."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    shutil.copytree(
        PACKAGE, folder / "sbbf_tool", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    include = f"-I{sysconfig.get_paths()['include']}"
    for source in EXTENSIONS:
        extension = (
            folder
            / "sbbf_tool"
            / source.parent
            / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
        )
        subprocess.run(
            [compiler, *_FLAGS, include, str(PACKAGE / source), "-o", str(extension)], check=True
        )
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Otherwise small buffers share a block of Python's allocator, and an overrun goes
        # unnoticed.
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": f"{_runtime(compiler, 'libasan.so')} {_runtime(compiler, 'libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


MOST_BYTES = 20_000
"""The longest input of a fuzzer."""


def build_fuzzer(folder: Path, source: Path) -> Path:
    """Compile a target of libFuzzer with sanitizers in `folder`, which may have headers for it.
    Skips the test without clang."""
    compiler = shutil.which("clang")
    if compiler is None:
        pytest.skip("clang is not installed")
    options = [
        "-g",
        "-O1",
        "-w",
        "-fsanitize=fuzzer,address,undefined",
        "-fno-sanitize-recover=all",
        f"-I{sysconfig.get_paths()['include']}",
        f"-I{PACKAGE / 'parquet'}",
        f"-I{folder}",
    ]
    fuzzer = folder / "fuzzer"
    subprocess.run([compiler, *options, str(source), "-o", str(fuzzer)], check=True)
    return fuzzer


def run_fuzzer(fuzzer: Path, *arguments: str) -> str:
    """Run it; return what it prints."""
    done = subprocess.run(
        [str(fuzzer), f"-max_len={MOST_BYTES}", "-rss_limit_mb=4096", *arguments],
        cwd=fuzzer.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stderr


def _runtime(compiler: str, name: str) -> str:
    output = subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not os.path.isabs(output):
        pytest.skip(f"{compiler} has no {name}")
    return output


def run_sanitized(arguments: list[str], environment: dict[str, str]) -> str:
    """Run Python with these arguments; return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout
