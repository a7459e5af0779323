"""Damaged files in the modules of `site/src`, run by Node: they never answer `absent` where sbbf does not, and end in known errors."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sbbf_tool import probe
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.operations.conformance import make_corpus

from .conftest import SITE

pytestmark = [pytest.mark.slow, pytest.mark.environment(minutes=1), pytest.mark.timeout(300)]

FILES = 1000
PROGRAM = Path(__file__).parent / "probe_files.mjs"


def damage(data: bytes, chance: random.Random) -> bytes:
    """Change one to three bytes, most of them in the footer."""
    damaged_bytes = bytearray(data)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(chance.choice([1, 1, 2, 3])):
        at = chance.randrange(footer if chance.random() < 0.7 else 4, len(data))
        damaged_bytes[at] = chance.choice([0, 1, 255, data[at] ^ (1 << chance.randrange(8)), chance.randrange(256)])
    return bytes(damaged_bytes)


def query_sbbf(path: Path, index: int, value: str) -> list[str] | None:
    """Return the answers of sbbf for each row group; None if it refuses the file."""
    try:
        with ParquetFile.open(path) as file:
            columns = file.footer.columns
        if index >= len(columns):
            return None
        return [each.answer for each in probe(path, columns[index].name, value).values[0].row_groups]
    except SbbfError:
        return None


def test_damaged_files(site_packages: Path, tmp_path: Path) -> None:
    shutil.copytree(SITE / "src", tmp_path / "src")
    shutil.copy(PROGRAM, tmp_path)
    shutil.copy(SITE / "package.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(site_packages / "node_modules")
    make_corpus(tmp_path / "corpus", only=["types/*", "nested/*", "headers/*", "places/*", "floats/*", "lengths/*", "contents/*"])
    manifest = json.loads((tmp_path / "corpus" / "manifest.json").read_text())
    chance = random.Random(20261124)
    cases: list[dict[str, Any]] = []
    for question in chance.choices(manifest["questions"], k=FILES):
        original = tmp_path / "corpus" / question["file"]
        with ParquetFile.open(original) as file:
            index = file.find_columns([question["column"]])[0].index
        path = tmp_path / f"{len(cases)}.parquet"
        path.write_bytes(damage(original.read_bytes(), chance))
        cases.append({"path": str(path), "index": index, "value": question["value"], "stored": question["stored"]})

    done = subprocess.run(["node", "probe_files.mjs"], cwd=tmp_path, input=json.dumps(cases), capture_output=True, text=True, check=True)
    results = json.loads(done.stdout)

    wrong, equal = [], 0
    for case, result in zip(cases, results, strict=True):
        expected = query_sbbf(Path(case["path"]), case["index"], case["value"])
        answers = result.get("answers")
        if answers is None:
            if result["error"] not in ("UnreadableError", "ValueError"):
                wrong.append((case, result))
        elif expected is not None:
            # A reader that is more careful is right too.
            equal += answers == expected
            if len(answers) != len(expected) or any(mine == "absent" != theirs for mine, theirs in zip(answers, expected, strict=True)):
                wrong.append((case, result, expected))
    assert wrong == []
    assert equal > FILES // 4
