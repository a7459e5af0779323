"""The compiled walker of footers under AddressSanitizer and UndefinedBehaviorSanitizer: damaged
footers, and invalid calls."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.sanitized import build_sanitized, run_sanitized

HERE = Path(__file__).parent
CORPUS = HERE.parent / "faults" / "corpus" / "footer"
SECONDS = 15

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="sanitizers are preloaded as Linux does it"),
]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that imports this package with a sanitized walker."""
    return build_sanitized(tmp_path_factory.mktemp("sanitized"))


def test_hostile_calls(sanitized):
    footers = [str(path) for path in sorted(CORPUS.iterdir())]
    program = str(HERE / "hostile_walks.py")
    walker, answers, refused = run_sanitized(
        [program, str(SECONDS), "1", *footers], sanitized
    ).split()
    assert walker.startswith(sanitized["PYTHONPATH"])
    assert int(answers) > 1000
    assert int(refused) > 1000


def test_the_tests_of_the_index_and_of_fuzzing(sanitized):
    options = [
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-m",
        "not heavy",
        "-k",
        "test_chunk_index or indexed_footer",
    ]
    tests = (HERE / "test_chunk_index.py", HERE.parent / "faults" / "test_fuzz.py")
    run_output = run_sanitized(["-m", "pytest", *options, *map(str, tests)], sanitized)
    assert " passed" in run_output
