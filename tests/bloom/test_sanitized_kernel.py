"""The compiled kernel under AddressSanitizer and UndefinedBehaviorSanitizer: its own tests, and invalid calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import sbbf_tool

HERE = Path(__file__).parent
PACKAGE = Path(sbbf_tool.__path__[0])
SECONDS = 15
TESTS = ("test_kernels.py", "test_hashing.py")

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(sys.platform != "linux", reason="sanitizers are preloaded as Linux does it")]


def runtime(compiler: str, name: str) -> str:
    output = subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(output):
        pytest.skip(f"{compiler} has no {name}")
    return output


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that imports this package with a sanitized kernel."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("sanitized")
    shutil.copytree(PACKAGE, folder / "sbbf_tool", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    kernel = folder / "sbbf_tool" / "bloom" / f"_kernel{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ("-shared", "-fPIC", "-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    include = f"-I{sysconfig.get_paths()['include']}"
    subprocess.run([compiler, *flags, include, str(PACKAGE / "bloom" / "_kernel.c"), "-o", str(kernel)], check=True)
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONMALLOC": "malloc",  # Otherwise small buffers share a block of Python's allocator, and an overrun goes unnoticed.
        "LD_PRELOAD": f"{runtime(compiler, 'libasan.so')} {runtime(compiler, 'libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run(arguments: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


def test_the_sanitizer_sees_what_it_should(sanitized, tmp_path):
    """Without this, the tests below would also pass if nothing were looked at."""
    program = "import ctypes; data = ctypes.create_string_buffer(8); ctypes.memset(data, 1, 64)"
    done = subprocess.run([sys.executable, "-c", program], env=sanitized, capture_output=True, text=True, check=False)
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


@pytest.mark.parametrize("plain", [[], ["plain"]], ids=["fastest", "plain"])
def test_hostile_calls(sanitized, plain):
    kernel, instructions, answers, refused = run(
        [str(HERE.parent / "support" / "hostile_calls.py"), str(SECONDS), "1", *plain], sanitized
    ).split()
    assert kernel.startswith(sanitized["PYTHONPATH"])
    assert not plain or instructions == "plain"
    assert int(answers) > 1000
    assert int(refused) > 1000


def test_the_tests_of_the_kernel(sanitized):
    """On `compiled` and `compiled-plain`, both of the sanitized kernel."""
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not heavy", "-k", "compiled"]
    run_output = run(["-m", "pytest", *options, *(str(HERE / name) for name in TESTS)], sanitized)
    assert " passed" in run_output
