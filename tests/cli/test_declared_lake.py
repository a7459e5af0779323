"""A lake with several schemas and filters of every quality: applied, changed by another writer, applied again, and undone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.nightly(minutes=3)

NUM_FILES = int(os.environ.get("SBBF_TEST_LAKE_FILES", "180"))
ROWS = 500
QUALITIES = ("none", "right", "weak", "large", "without values", "unreadable")
CONFIGURATION = """
[[filters]]
paths = "lake/**"
columns = ["user_id", "session"]
fpp = 0.01
"""


def columns_of(schema: int, number: int) -> dict[str, Any]:
    """Return the columns of a file: the first schema lacks `session`, the last stores `user_id` as text."""
    ids = np.random.default_rng(number).integers(0, 1 << 60, ROWS)
    amounts = pa.array(ids % 1000 * 0.5)
    if schema == 0:
        return {"user_id": ids, "amount": amounts}
    session = [f"{value:016x}" for value in ids[::-1]]
    if schema == 1:
        return {"user_id": ids, "session": session, "amount": amounts}
    return {"session": session, "country": ["de", "fr"] * (ROWS // 2), "user_id": [str(value) for value in ids]}


def quality_of(number: int) -> str:
    return QUALITIES[number // 3 % len(QUALITIES)]


def write(path: Path, number: int) -> None:
    """Write a file whose filters, by pyarrow, have the quality that its number selects; the broken ones are damaged by hand."""
    schema, quality = number % 3, quality_of(number)
    data = pa.table(columns_of(schema, number))
    options = {"ndv": 60 if quality == "weak" else ROWS, "fpp": 1e-12 if quality == "large" else 0.01}
    names = [name for name in ("user_id", "session") if name in data.column_names and quality != "none"]
    pq.write_table(data, path, bloom_filter_options=dict.fromkeys(names, options))
    if quality in ("without values", "unreadable"):
        meta = pq.read_metadata(path).row_group(0).column(data.column_names.index("user_id"))
        offset, length = meta.bloom_filter_offset, meta.bloom_filter_length
        content = bytearray(path.read_bytes())
        if quality == "unreadable":
            content[offset : offset + 16] = b"\xff" * 16
        else:
            content[offset + 16 : offset + length] = bytes(length - 16)
        path.write_bytes(content)


def digests(lake: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in lake.rglob("*.parquet")}


class Lake:
    """A folder in which commands run as processes, which strace watches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str, code: int = 0) -> tuple[Counter[str], dict[str, Any]]:
        """Run a command; return how often it opened each file of the lake, and the summary that it printed."""
        log = self.folder / "strace.log"
        tracer = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=openat", "-s", "200", "-o", str(log)]
        done = subprocess.run(
            [*tracer, sys.executable, "-m", "sbbf_tool", *words, "--format", "json"], cwd=self.folder, capture_output=True, text=True
        )
        assert done.returncode == code, (done.returncode, done.stderr[-2000:], done.stdout[-500:])
        file_opens = Counter(re.findall(r'"[^"]*?(part-\d+\.parquet)"', log.read_text()))
        summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        counts = {key: count for key, count in {**summary, **summary["totals"]}.items() if count and isinstance(count, int)}
        print(*words, f"-> {len(file_opens)} files opened, {counts}")
        return file_opens, summary


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    (tmp_path / "sbbf.toml").write_text(CONFIGURATION)
    for number in range(NUM_FILES):
        folder = tmp_path / "lake" / f"day={number % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / f"part-{number:05d}.parquet", number)
    return Lake(tmp_path)


def test_a_lake_is_kept_as_declared(lake: Lake, tmp_path: Path) -> None:
    original = digests(tmp_path / "lake")
    to_change = sum(quality_of(number) != "right" for number in range(NUM_FILES))
    state = ("--state", "state.sqlite")

    _, state_before = lake.run("apply", code=1)
    assert state_before["totals"]["files_not_as_declared"] == to_change
    assert all(state_before["totals"][name] for name in ("missing", "weaker", "too_large", "broken"))
    assert digests(tmp_path / "lake") == original

    file_opens, first = lake.run("apply", "--in-place", *state)
    assert len(file_opens) == NUM_FILES
    assert (first["done"], first["skipped"]) == (to_change, NUM_FILES - to_change)
    new = digests(tmp_path / "lake")
    assert sum(new[name] != original[name] for name in original) == to_change

    file_opens, second = lake.run("apply", "--in-place", *state)
    assert (len(file_opens), second["done"], second["skipped"]) == (0, 0, NUM_FILES)
    _, third = lake.run("apply")
    assert third["skipped"] == NUM_FILES
    assert digests(tmp_path / "lake") == new

    # Another writer replaces files by some without filters, and adds one.
    new_paths = sorted((tmp_path / "lake").rglob("*.parquet"))[:: max(NUM_FILES // 30, 1)]
    for path in new_paths:
        pq.write_table(pa.table(columns_of(1, NUM_FILES + int(path.stem[5:]))), path)
    added_path = tmp_path / "lake/day=0" / f"part-{NUM_FILES:05d}.parquet"
    pq.write_table(pa.table(columns_of(2, 2 * NUM_FILES)), added_path)
    digests_before_apply = digests(tmp_path / "lake")
    file_opens, last = lake.run("apply", "--in-place", *state)
    names = {path.name for path in (*new_paths, added_path)}
    assert set(file_opens) == names
    assert last["done"] == len(new_paths) + 1
    lake.run("verify", "lake")

    _, undo = lake.run("remove-filter", *map(str, new_paths), str(added_path), "--ours", "--in-place")
    assert undo["done"] == len(new_paths) + 1
    final = digests(tmp_path / "lake")
    assert {name: final[name] for name in names} == {name: digests_before_apply[name] for name in names}
