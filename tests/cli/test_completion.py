"""Completion by click's protocol for bash: what follows the words of a line, and that nothing of a
file is inserted unquoted."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.shell_completion import BashComplete

from sbbf_tool.cli import cli
from support.tables import each

FILES = ["file"]
HOSTILE = [
    "user id",
    "$(touch x)",
    "`id`",
    "a;b",
    "a:b",
    "x=y",
    "[list]",
    "*",
    "~",
    "-x",
    "new\nline",
    "evil\x1b]0;title\x07",
    "it's",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "lake").mkdir()
    pq.write_table(
        pa.table({name: [1] for name in ["plain", "größe", *HOSTILE]}), folder / "names.parquet"
    )
    shutil.copy(folder / "names.parquet", folder / "lake" / "a.parquet")
    os.mkfifo(folder / "fifo.parquet")
    return folder


@each(
    "line, expected",
    [
        ("prob", ["probe"]),
        ("paimon add", ["add-index"]),
        ("check --max-f", ["--max-fpp"]),
        ("check --select fpp", ["fpp-above-limit"]),
        ("engines --type int64", ["int64"]),
        ("probe names.parquet pl", ["plain"]),
        ("inspect --jobs 2 names.parquet -c pl", ["plain"]),
        ("check names.parquet --require pl", ["plain"]),
        ("probe names.parquet -c ", ["plain", "größe"]),
        ("probe nothere.parquet -c ", []),
        ("probe s3://bucket/a.parquet -c ", []),
        ("probe fifo.parquet -c ", []),
        ("probe /dev/zero -c ", []),
        ("inspect --where ", []),
        ("inspect --files-from ", FILES),
        ("explain names.parquet lak", FILES),
    ],
)
def test_what_can_follow(line, expected, folder, monkeypatch):
    monkeypatch.chdir(folder)
    *words, current = line.split(" ")
    items = BashComplete(cli, {}, "sbbf", "_SBBF_COMPLETE").get_completions(words, current)
    assert (
        FILES if [item.type for item in items] == FILES else [item.value for item in items]
    ) == expected


@pytest.mark.slow
def test_bash(folder):
    """The script defines a function, whose words come from another process, in which no slow import
    happens."""
    program = folder / "sbbf"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -X importtime -m sbbf_tool "$@"\n'
    )
    program.chmod(0o755)
    script = """eval "$(_SBBF_COMPLETE=bash_source ./sbbf)"
COMP_WORDS=(./sbbf probe names.parquet pl) COMP_CWORD=3
_sbbf_completion ./sbbf; printf '%s\\n' "${COMPREPLY[@]}\""""
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.stdout == "plain\n"
    packages = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()
    }
    assert "sbbf_tool" in packages
    assert not packages & {
        "numpy",
        "pyarrow",
        "rich",
        "pyspark",
        "cryptography",
        "botocore",
        "obstore",
    }


@pytest.mark.slow
@each("value", ["", "_", "bash", "bash_complete", "csh_complete"])
def test_a_variable_of_another_kind_runs_no_command(value, folder):
    environment = {**os.environ, "_SBBF_COMPLETE": value}
    command = [
        sys.executable,
        "-m",
        "sbbf_tool",
        "remove-filter",
        str(folder / "names.parquet"),
        "--in-place",
    ]
    done = subprocess.run(command, env=environment, capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"")
