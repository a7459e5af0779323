"""Mistakes, each with its exit code and its line: where it is, what it is, and what to do. None of
them changes a file.

An entry of `mistakes.txt` may begin with files that it needs, each as `NAME: TEXT`; variables may
stand before the command. "…" stands for what other versions of packages say, and for long lists.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from sbbf_tool.cli import run
from support.tables import read_folder

MISTAKES = Path(__file__).with_name("mistakes.txt")


@pytest.fixture
def folder(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("lake", "empty"):
        Path(name).mkdir()
    for name in ("a.parquet", "lake/a.parquet"):
        shutil.copy(fixtures / "events.parquet", name)
    shutil.copy(fixtures / "spark-boolean.parquet", "flags.parquet")
    shutil.copytree(fixtures / "paimon" / "orders", "orders")
    Path("torn.parquet").write_bytes(Path("a.parquet").read_bytes()[:1000])
    texts = {
        "text.parquet": "text",
        "bad.toml": "[chekc]",
        "worse.toml": "[check]\nfail-on = 'never'",
        "list": "a",
        "values": "5\nfive",
    }
    for name, text in {**texts, "blank": ""}.items():
        Path(name).write_text(f"{text}\n")
    deltalake.write_deltalake(
        "table", pa.table({"id": range(9), "day": ["b"] * 9}), partition_by=["day"]
    )
    assert run(["index", "lake", "-c", "user_id", "-o", "lake.sbbfx", "-q"]) == 0


def test_mistakes(folder, capfd, request):
    entries = MISTAKES.read_text().split("\n\n")
    assert len(entries) > 300
    before = read_folder(Path())
    for at, entry in enumerate(entries):
        *files, line, _ = entry.rstrip("\n").split("\n")
        for name, _, text in (file.partition(": ") for file in files):
            Path(name).write_bytes(text.encode().decode("unicode_escape").encode("latin-1"))
        *variables, arguments = line.partition("sbbf ")[::2]
        with pytest.MonkeyPatch.context() as patch:
            for variable in variables[0].split()[1:]:
                patch.setenv(*variable.split("=", 1))
            code = run(shlex.split(arguments))
        out, err = capfd.readouterr()
        for file in files:
            Path(file.partition(": ")[0]).unlink()
        assert (out, err.count("\n")) == ("", 1), line
        assert read_folder(Path()) == before, line
        # Where help is, is said at the end.
        message = (
            err.removeprefix("sbbf: ")
            .rstrip("\n")
            .partition(" (see sbbf ")[0]
            .replace(str(Path().absolute()), "FOLDER")
        )
        new = "\n".join([*files, line, f"{code}: {message}"])
        start, rest, _ = entry.partition("…")
        new = entry.rstrip("\n") if rest and new.startswith(start) else new
        assert request.config.getoption("--bless") or new == entry.rstrip("\n")
        entries[at] = new
    if request.config.getoption("--bless"):
        MISTAKES.write_text("\n\n".join(entries) + "\n")
