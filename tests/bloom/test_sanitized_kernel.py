"""The compiled kernel under AddressSanitizer and UndefinedBehaviorSanitizer: its own tests, and
invalid calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.sanitized import build_sanitized, run_sanitized
from support.tables import each

HERE = Path(__file__).parent
SECONDS = 15
TESTS = ("test_kernels.py", "test_hashing.py")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="sanitizers are preloaded as Linux does it"),
]


def can_use(instructions: str) -> bool:
    _kernel = pytest.importorskip(
        "sbbf_tool.bloom._kernel", reason="the compiled kernel was not built", exc_type=ImportError
    )
    fastest = _kernel.instructions()
    try:
        _kernel.use(instructions)
    except ValueError:
        return False
    _kernel.use(fastest)
    return True


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that imports this package with a sanitized kernel."""
    return build_sanitized(tmp_path_factory.mktemp("sanitized"))


def test_the_sanitizer_sees_what_it_should(sanitized, tmp_path):
    """Without this, the tests below would also pass if nothing were looked at."""
    program = "import ctypes; data = ctypes.create_string_buffer(8); ctypes.memset(data, 1, 64)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=sanitized, capture_output=True, text=True, check=False
    )
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


@each("instructions", ["AVX-512", "AVX2", "plain"])
def test_hostile_calls(sanitized, instructions):
    if not can_use(instructions):
        pytest.skip(f"this machine has no {instructions}")
    kernel, active, answers, refused = run_sanitized(
        [str(HERE / "hostile_calls.py"), str(SECONDS), "1", instructions], sanitized
    ).split()
    assert kernel.startswith(sanitized["PYTHONPATH"])
    assert active == instructions
    assert int(answers) > 1000
    assert int(refused) > 1000


def test_the_tests_of_the_kernel(sanitized):
    """On the three that are `compiled`, all of the sanitized kernel."""
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not heavy", "-k", "compiled"]
    run_output = run_sanitized(
        ["-m", "pytest", *options, *(str(HERE / name) for name in TESTS)], sanitized
    )
    assert " passed" in run_output
