"""Real readers, held to the conformance corpus: query engines, whose rows are the answers, and
parquet-java, whose filters are queried.

What each of them gets wrong is listed; a change of the list is news about the reader.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sbbf_tool.extensions.conformance import make_corpus, run_conformance
from support.environments import NotInstallableError, install_npm
from support.tables import each

pytestmark = [pytest.mark.engines, pytest.mark.nightly(3), pytest.mark.timeout(900)]

ENGINES = Path(__file__).with_name("conformance_engine.py")
HYPARQUET = Path(__file__).parent / "hyparquet"
JAVA = Path(__file__).parent / "ConformanceReader.java"

LOSES_ROWS: dict[str, set[str]] = {
    # DuckDB reads FLOAT16 as FLOAT, and hashes four bytes.
    "duckdb": {
        "types/float16.parquet",
        *(
            f"floats/float16-{name}.parquet"
            for name in ("both-zeros", "positive-zero", "negative-zero")
        ),
    }
    | {"floats/float16-nan.parquet", "floats/float16-nan-payload.parquet"},
    # arrow-rs takes bloom_filter_length for the size of the bitset, not numBytes of the header.
    "datafusion": {f"lengths/{name}.parquet" for name in ("short", "long", "bitset-only")}
    | {
        f"damaged/{name}.parquet"
        for name in ("zero-bytes", "negative-bytes", "31-bytes", "2-gib", "into-footer")
    },
    "clickhouse": set(),
    # parquet-java reads as many bytes as the length states, checks neither size nor place, and
    # queries the empty filters of BOOLEAN.
    "parquet-java": {
        "booleans/empty.parquet",
        "damaged/31-bytes.parquet",
        "damaged/into-footer.parquet",
    }
    | {"lengths/bitset-only.parquet", "lengths/short.parquet"},
    "hyparquet": set(),
}
CRASHES = {"parquet-java": {"damaged/offset-after-file.parquet"}}
"""It reads at an offset behind the end of the file until the memory is full."""

SUPPORTED = [
    "types/int32.parquet", "types/int64.parquet", "types/string.parquet",
    "sizes/8192-bytes.parquet", "headers/without-length.parquet",
    "places/backwards.parquet", "contents/folded.parquet",
]  # fmt: skip
"""Files that every reader answers without a defect."""


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("conformance") / "corpus")
    make_corpus(folder)
    return folder


def command_of_engine(engine: str) -> str:
    pytest.importorskip("chdb" if engine == "clickhouse" else engine)
    return f"{sys.executable} {ENGINES} {engine}"


def command_of_parquet_java(scratch: Path) -> str:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None or not shutil.which("javac"):
        pytest.skip("there is no javac, or no PySpark with the jars of parquet-java")
    class_path = f"{scratch}:{Path(spark.origin).parent / 'jars'}/*"
    subprocess.run(
        ["javac", "-cp", class_path, "-d", str(scratch), str(JAVA)], check=True, capture_output=True
    )
    return f"java -Xmx1g -cp {class_path} {JAVA.stem}"


def command_of_hyparquet(scratch: Path) -> str:
    try:
        installed = install_npm("hyparquet", (HYPARQUET / "package.json").read_text())
    except NotInstallableError as error:
        pytest.skip(str(error))
    for name in ("package.json", "conformance.mjs"):
        shutil.copy(HYPARQUET / name, scratch)
    (scratch / "node_modules").symlink_to(installed / "node_modules")
    return f"node {scratch / 'conformance.mjs'}"


COMMANDS: dict[str, Callable[[Path], str]] = {
    "parquet-java": command_of_parquet_java,
    "hyparquet": command_of_hyparquet,
}


@each("name", sorted(LOSES_ROWS))
def test_the_rows_that_a_reader_loses(name: str, corpus_folder: str, tmp_path: Path) -> None:
    command = COMMANDS[name](tmp_path) if name in COMMANDS else command_of_engine(name)
    report = run_conformance(corpus_folder, reader=f"{command} {{questions}}", timeout=600)
    by_verdict = {
        verdict: {each.file for each in report.problems if each.verdict == verdict}
        for verdict in ("wrong", "failed")
    }
    assert by_verdict == {"wrong": LOSES_ROWS[name], "failed": CRASHES.get(name, set())}
    results = {result.file: result for result in report.results}
    for file in SUPPORTED:
        result = results[file]
        assert result.correct, file
        assert result.unused + result.noted + result.wrong + result.failed == 0, file
    assert report.count("correct") > 600
