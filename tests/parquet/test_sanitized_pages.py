"""Runs of pages under AddressSanitizer and UndefinedBehaviorSanitizer: bytes that libFuzzer finds,
guided by coverage."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from parquet.made_pages import write_files
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData
from sbbf_tool.parquet.pages import page_range
from support.damage import damage
from support.sanitized import MOST_BYTES, build_fuzzer, build_sanitized, run_fuzzer, run_sanitized

HERE = Path(__file__).parent
PARAMETERS = 8

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="clang of Debian has libFuzzer")


@pytest.fixture(scope="module", params=["pages_fuzzer", "confirm_fuzzer"])
def fuzzer(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A fuzzer, compiled with sanitizers: of runs of pages, or of the rows that a scan reads."""
    return build_fuzzer(tmp_path_factory.mktemp("fuzzer"), HERE / f"{request.param}.c")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first pages of chunks of every form, each with several parameters."""
    choose = random.Random(1)
    folder = tmp_path_factory.mktemp("corpus")
    for path in write_files(tmp_path_factory.mktemp("made"), rows=300):
        with ParquetFile.open(path) as file:
            for column in file.footer.columns:
                meta = file.footer.chunk(0, column.index)
                assert meta is not None
                start, end = page_range(meta)
                # The pages are those of a whole chunk, or begin after the dictionary.
                for first in {start, meta.data_page_offset or start}:
                    pages = file.source.read(first, min(end - first, MOST_BYTES - PARAMETERS))
                    for number, parameters in enumerate(parameters_of(column, meta, choose)):
                        name = f"{path.stem}-{column.index}-{first}-{number}"
                        (folder / name).write_bytes(parameters + pages)
    return folder


def parameters_of(column: Column, meta: ColumnMetaData, choose: random.Random) -> list[bytes]:
    """Return parameters of both fuzzers by which they read a chunk, and others."""
    codec = meta.codec % 2
    levels = (column.max_definition, column.max_repetition)
    width = (None, 4, 8, 5).index(column.width) if column.width in (None, 4, 8, 5) else 0
    of_runs = ((None, 4, 8).index(column.width) if column.width in (None, 4, 8) else 0, *levels)
    return [
        bytes([codec, *of_runs, 255, 0, 0, 9]),
        bytes([codec, *of_runs, 255, 0, 1, 9]),
        bytes([width, levels[0], *meta.num_values.to_bytes(2, "little"), codec, 0, 1, 0]),
        choose.randbytes(PARAMETERS),
    ]


@pytest.mark.parametrize(
    ("inputs", "seed"),
    [
        pytest.param(300_000, 1, marks=pytest.mark.heavy),
        pytest.param(20_000_000, 2, marks=pytest.mark.nightly(60)),
    ],
)
def test_inputs_found_by_coverage(fuzzer, corpus, tmp_path, inputs, seed):
    (tmp_path / "found").mkdir()
    folders = (str(tmp_path / "found"), str(corpus))
    assert "DONE" in run_fuzzer(fuzzer, f"-runs={inputs}", f"-seed={seed}", *folders)


@pytest.mark.heavy
def test_damaged_pages(fuzzer, corpus, tmp_path):
    """Without guidance, whole chunks with few damaged bytes come far."""
    choose = random.Random(3)
    files = sorted(corpus.iterdir())
    for number in range(3000):
        data = choose.choice(files).read_bytes()
        (tmp_path / f"{number}").write_bytes(damage(data, choose))
    run_fuzzer(fuzzer, "-runs=0", str(tmp_path))


@pytest.mark.nightly
def test_the_tests_of_runs(tmp_path):
    """Calls from Python."""
    sanitized = build_sanitized(tmp_path / "sanitized")
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not heavy"]
    tests = HERE / "test_page_runs.py"
    assert " passed" in run_sanitized(["-m", "pytest", *options, str(tests)], sanitized)
