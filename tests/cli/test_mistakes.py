"""Mistakes, each with its exit code and its line: where it is, what it is, and what to do."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from sbbf_tool.cli import run

MISTAKES = Path(__file__).with_name("mistakes.txt")


@pytest.fixture
def folder(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("lake", "empty"):
        Path(name).mkdir()
    for name in ("a.parquet", "lake/a.parquet"):
        shutil.copy(fixtures / "events.parquet", name)
    shutil.copy(fixtures / "spark-boolean.parquet", "flags.parquet")
    Path("torn.parquet").write_bytes(Path("a.parquet").read_bytes()[:1000])
    texts = {"text.parquet": "text", "bad.toml": "[chekc]", "worse.toml": "[check]\nfail-on = 'never'", "list": "a", "values": "5\nfive"}
    for name, text in {**texts, "blank": ""}.items():
        Path(name).write_text(f"{text}\n")


def test_mistakes(folder, capfd, request):
    entries = MISTAKES.read_text().split("\n\n")
    assert len(entries) > 100
    for at, entry in enumerate(entries):
        line, _ = entry.split("\n", 1)
        code = run(shlex.split(line)[2:])
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1), line
        # Where help is, is said at the end.
        message = err.removeprefix("sbbf: ").rstrip("\n").partition(" (see sbbf ")[0]
        assert request.config.getoption("--bless") or f"{line}\n{code}: {message}" == entry.rstrip("\n")
        entries[at] = f"{line}\n{code}: {message}"
    if request.config.getoption("--bless"):
        MISTAKES.write_text("\n\n".join(entries) + "\n")
