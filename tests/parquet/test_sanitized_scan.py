"""The scan of plain files under AddressSanitizer and UndefinedBehaviorSanitizer: bytes that
libFuzzer finds, guided by coverage."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from sbbf_tool.parquet.footer_structs import table_of_structs
from support.damage import damage
from support.sanitized import MOST_BYTES, build_fuzzer, build_sanitized, run_fuzzer, run_sanitized

HERE = Path(__file__).parent
PARAMETERS = 72

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="clang of Debian has libFuzzer")


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fuzzer, compiled with sanitizers."""
    folder = tmp_path_factory.mktemp("fuzzer")
    numbers = ",".join(map(str, table_of_structs()))
    (folder / "table.h").write_text(f"static const uint8_t table[] = {{{numbers}}};\n")
    return build_fuzzer(folder, HERE / "scan_fuzzer.c")


def make_corpus(folder: Path, fixtures: Path) -> None:
    """Write the small fixtures, each with several judgments."""
    choose = random.Random(1)
    folder.mkdir()
    for path in fixtures.rglob("*.parquet"):
        if not path.is_file() or path.stat().st_size > MOST_BYTES - PARAMETERS:
            continue
        for number in range(6):
            data = choose.randbytes(PARAMETERS) + path.read_bytes()
            (folder / f"{path.stem}-{number}").write_bytes(data)


@pytest.mark.parametrize(
    ("inputs", "seed"),
    [
        pytest.param(200_000, 1, marks=pytest.mark.heavy),
        pytest.param(10_000_000, 2, marks=pytest.mark.nightly(60)),
    ],
)
def test_inputs_found_by_coverage(fuzzer, fixtures, tmp_path, inputs, seed):
    make_corpus(tmp_path / "corpus", fixtures)
    output = run_fuzzer(fuzzer, f"-runs={inputs}", f"-seed={seed}", str(tmp_path / "corpus"))
    assert "DONE" in output


@pytest.mark.heavy
def test_damaged_files(fuzzer, fixtures, tmp_path):
    """Without guidance, whole files with few damaged bytes come far."""
    choose = random.Random(3)
    make_corpus(tmp_path / "corpus", fixtures)
    files = sorted((tmp_path / "corpus").iterdir())
    (tmp_path / "damaged").mkdir()
    for number in range(3000):
        data = choose.choice(files).read_bytes()
        (tmp_path / "damaged" / f"{number}").write_bytes(damage(data, choose))
    run_fuzzer(fuzzer, "-runs=0", str(tmp_path / "damaged"))


@pytest.mark.nightly
def test_the_tests_of_the_scan(tmp_path):
    """Calls from Python, in threads too, with files and with arguments that are none."""
    sanitized = build_sanitized(tmp_path / "sanitized")
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not heavy"]
    tests = HERE.parent / "file" / "test_scan.py"
    assert " passed" in run_sanitized(["-m", "pytest", *options, str(tests)], sanitized)
