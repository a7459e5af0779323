"""Bytes of all kinds into the parsers: thousands of seeded mutations each time, a million guided by
coverage in the heavy run."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
import tracemalloc
from pathlib import Path

import pytest

from faults import fuzz_parsers
from sbbf_tool.errors import SbbfError
from support.damage import damage
from support.environments import NotInstallableError, install_python
from support.tables import each

TESTS = Path(__file__).parents[1]
GUIDED_RUNS = {
    "tail": 100_000,
    "filter_header": 500_000,
    "page_header": 200_000,
    "chunk": 300_000,
    "compact_struct": 150_000,
    "footer": 50_000,
    "indexed_footer": 50_000,
    "container": 200_000,
    "manifest": 20_000,
    "key_material": 50_000,
}
"""More than a million in all, more of what is quick."""

UNPACKED = {"chunk": 64 << 20}
"""Bytes that a page may claim to decompress to, which no parser can know better beforehand; nothing
larger is begun."""


def mutated(choose: random.Random, seeds: list[bytes]) -> bytes:
    data = choose.choice(seeds)
    if choose.random() < 0.2:
        donor, at = choose.choice(seeds), choose.randrange(len(data) + 1)
        start = choose.randrange(len(donor) + 1)
        data = (
            data[:at]
            + donor[start : start + choose.randrange(1, 40)]
            + data[at + choose.randrange(9) :]
        )
    return damage(data, choose)


@each("name", list(fuzz_parsers.TARGETS))
def test_the_corpus_is_what_parses(name):
    """All but one: mutations of what is refused at once would seldom come far."""
    refused = []
    for path in fuzz_parsers.corpus_of(name).iterdir():
        try:
            fuzz_parsers.TARGETS[name](path.read_bytes())
        except SbbfError:
            refused.append(path.name)
    assert refused == (["too-long"] if name == "tail" else [])


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.heavy)])
@each("name", list(fuzz_parsers.TARGETS))
def test_mutations(name, count):
    choose, seeds = random.Random(name), fuzz_parsers.seeds(name)
    slowest = 0.0
    for number in range(count):
        data = mutated(choose, seeds)
        start = time.thread_time()
        try:
            fuzz_parsers.feed(fuzz_parsers.TARGETS[name], data)
        except BaseException as error:
            error.add_note(f"mutation {number}: {data.hex()}")
            raise
        slowest = max(slowest, time.thread_time() - start)
    assert slowest < 1


@each("name", list(fuzz_parsers.TARGETS))
def test_memory_stays_within_a_multiple_of_the_bytes(name):
    choose, seeds = random.Random(f"memory of {name}"), fuzz_parsers.seeds(name)
    tracemalloc.start()
    try:
        for _ in range(100):
            data = mutated(choose, seeds)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            fuzz_parsers.feed(fuzz_parsers.TARGETS[name], data)
            assert tracemalloc.get_traced_memory()[1] - before < 2_000_000 + 2_000 * len(
                data
            ) + UNPACKED.get(name, 0), data.hex()
    finally:
        tracemalloc.stop()


@pytest.mark.nightly(minutes=3)
@pytest.mark.environment(minutes=1)
@pytest.mark.parametrize("name", fuzz_parsers.TARGETS)
def test_guided_by_coverage(name, tmp_path):
    try:
        python = install_python("atheris", "atheris", shared=True)
    except NotInstallableError as error:
        pytest.skip(str(error))
    corpus = shutil.copytree(fuzz_parsers.corpus_of(name), tmp_path / "corpus")
    limits = ["-max_len=8192", "-timeout=10", "-rss_limit_mb=2048", f"-artifact_prefix={tmp_path}/"]
    command = [
        python,
        "-m",
        "faults.fuzz_guided",
        name,
        str(corpus),
        f"-runs={GUIDED_RUNS[name]}",
        "-seed=1",
        *limits,
    ]
    # Linux counts the memory of the process that starts another one as memory of the latter, so the
    # shell has to start the fuzzer.
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command], cwd=TESTS, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"Done {GUIDED_RUNS[name]}" in done.stderr
