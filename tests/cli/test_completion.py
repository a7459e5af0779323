"""Completion in bash, zsh and fish, each in a terminal, and what each shell receives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import cli, run
from sbbf_tool.cli.completion.candidates import complete
from sbbf_tool.cli.completion.line import parse_line
from sbbf_tool.rules.catalog import CATALOGS, RULES
from support.shells import START, Shell, running

SHELLS = tuple(START)
BREAKS = " \t\n\"'><=;|&(:"
NAMES = ["user id", "it's", 'say "hi"', "a:b:c", "größe", "a$b", "back\\slash", "x=y", "[list]", "plain"]
EVIL = "evil\x1b]0;title\x07"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    pq.write_table(pa.table({name: [1] for name in NAMES}), folder / "names.parquet")
    pq.write_table(pa.table({EVIL: [1], "evil2": [1]}), folder / "evil.parquet")
    shutil.copy(folder / "names.parquet", folder / "my 'own' ü: file.parquet")
    (folder / "lake").mkdir()
    shutil.copy(folder / "names.parquet", folder / "lake" / "a.parquet")
    return folder


class TestCandidates:
    @pytest.fixture(autouse=True)
    def _in_folder(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)

    @pytest.mark.parametrize(
        ("words", "current", "expected"),
        [
            ([], "prob", ["probe"]),
            (["--debug"], "prob", ["probe"]),
            ([], "--vers", ["--version"]),
            (["paimon"], "add", ["add-index"]),
            (["paimon", "probe"], "--sn", ["--snapshot"]),
            (["check"], "--max-f", ["--max-fpp"]),
            (["check", "--select"], "fpp", ["fpp-above-limit"]),
            (["check", "--select", "format", "--ignore"], "correct", ["correctness"]),
            (["check", "--fail-on"], "", ["error", "warning", "info"]),
            (["check"], "--fail-on=w", ["warning"]),
            (["inspect", "--runner"], "sp", ["spark"]),
            (["explain", "--engine"], "duck", ["duckdb"]),
            (["probe", "--dialect"], "draft1-r", ["draft1-raw"]),
            (["completion"], "", ["bash", "zsh", "fish"]),
            (["completion", "bash"], "", []),
            (["probe", "names.parquet"], "pl", ["plain"]),
            (["probe", "names.parquet", "-c"], "pl", ["plain"]),
            (["probe", "names.parquet", "--column"], "user", ["user id"]),
            (["probe", "names.parquet"], "--column=us", ["user id"]),
            (["probe", "lake"], "pl", ["plain"]),
            (["probe", "names.parquet", "plain"], "1", []),
            (["probe", "--", "names.parquet"], "pl", ["plain"]),
            (["explain", "names.parquet"], "pl", ["plain"]),
            (["inspect", "--jobs", "2", "names.parquet", "-c"], "pl", ["plain"]),
            (["check", "names.parquet", "--require"], "pl", ["plain"]),
            (["nosuch"], "", []),
            (["probe", "nothere.parquet"], "", []),
            (["probe", "s3://bucket/a.parquet"], "", []),
            (["probe", "http://127.0.0.1:1/a.parquet"], "", []),
            (["probe", "/dev/zero"], "", []),
            (["inspect", "--where"], "", []),
        ],
    )
    def test_words(self, words, current, expected):
        candidates = complete(cli, words, current)
        assert [word for word, _ in candidates.words] == expected
        assert not candidates.are_files

    @pytest.mark.parametrize(
        ("words", "current"),
        [
            (["inspect"], ""),
            (["inspect", "--files-from"], ""),
            (["check"], "--config=na"),
            (["add-filter", "names.parquet", "-o"], ""),
            (["probe", "-c", "plain"], ""),
            (["explain", "names.parquet"], "lak"),
            (["paimon", "inspect"], ""),
        ],
    )
    def test_files(self, words, current):
        assert complete(cli, words, current).are_files

    def test_every_rule(self):
        assert {rule.name for rule in RULES} <= {word for word, _ in complete(cli, ["check", "--select"], "").words}

    def test_the_rules_of_the_command_that_explains_one(self):
        assert {rule.name for rules in CATALOGS.values() for rule in rules} == {word for word, _ in complete(cli, ["rule"], "").words}

    @pytest.mark.parametrize(("current", "word"), [("", "int64"), ("i", "int64"), ("I", "INT64"), ("UU", "UUID")])
    def test_types(self, current, word):
        assert word in [word for word, _ in complete(cli, ["engines", "--type"], current).words]

    def test_a_fifo_is_not_opened(self, tmp_path):
        os.mkfifo(tmp_path / "fifo.parquet")
        assert complete(cli, ["probe", str(tmp_path / "fifo.parquet")], "").words == []
        assert complete(cli, ["probe", str(tmp_path)], "").words == []


class TestLines:
    @pytest.mark.parametrize(
        ("line", "words", "current", "quote", "offset"),
        [
            ("sbbf ", ["sbbf"], "", "", 0),
            ('sbbf a\\ b \'c d\' "e\\"f" g', ["sbbf", "a b", "c d", 'e"f'], "g", "", 0),
            ("sbbf 'it", ["sbbf"], "it", "'", 0),
            ('sbbf x"y z', ["sbbf"], "xy z", '"', 1),
            ("sbbf a:b", ["sbbf"], "a:b", "", 2),
            ("sbbf a\\:b", ["sbbf"], "a:b", "", 0),
            ("sbbf --c=d", ["sbbf"], "--c=d", "", 4),
            ("sbbf '' ", ["sbbf", ""], "", "", 0),
            ("sbbf a\\", ["sbbf"], "a", "", 0),
        ],
    )
    def test_words(self, line, words, current, quote, offset):
        split = parse_line(line, BREAKS)
        assert (split.words, split.current, split.quote, split.offset) == (words, current, quote, offset)

    @pytest.mark.parametrize("name", [*NAMES, EVIL, "new\nline", "tab\t", "~x", "#x", "*?", "é\u202e"])
    def test_bash_reads_back_what_is_inserted(self, name):
        inserted = parse_line("sbbf ", BREAKS).insert(name)
        assert inserted is not None
        assert inserted.isprintable()
        done = subprocess.run(["bash", "-c", f"printf %s {inserted}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
        assert done.stdout.decode() == name


@pytest.mark.slow
@pytest.mark.parametrize("name", SHELLS)
class TestShells:
    @pytest.fixture
    def shell(self, name: str, folder: Path, tmp_path: Path) -> Iterator[Shell]:
        shutil.copytree(folder, tmp_path / "folder")
        with running(name, tmp_path / "folder") as shell:
            yield shell

    def test_completion(self, shell, name):
        assert shell.words("sbbf prob\t names.par\t pla\t 1") == ["sbbf", "probe", "names.parquet", "plain", "1"]
        assert shell.words("sbbf check --max-f\t 0.5 --sel\t fpp\t x") == [
            "sbbf",
            "check",
            "--max-fpp",
            "0.5",
            "--select",
            "fpp-above-limit",
            "x",
        ]
        assert shell.words("sbbf explain --engine duck\t x") == ["sbbf", "explain", "--engine", "duckdb", "x"]
        assert shell.words("sbbf probe --dialect draft1-r\t x") == ["sbbf", "probe", "--dialect", "draft1-raw", "x"]
        assert shell.words("sbbf paimon add\t x") == ["sbbf", "paimon", "add-index", "x"]
        assert shell.words("sbbf check --fail-on=w\t x") == ["sbbf", "check", "--fail-on=warning", "x"]
        assert shell.words("sbbf check --config=nam\t x") == ["sbbf", "check", "--config=names.parquet", "x"]
        assert shell.words("sbbf probe my\t pla\t x") == ["sbbf", "probe", "my 'own' ü: file.parquet", "plain", "x"]
        for column in NAMES:
            typed = column[:3] if column.isalpha() else column[:2].replace("[", "\\[").replace("$", "\\$").replace("'", "\\'")
            assert shell.words(f"sbbf probe names.parquet {typed}\t 1") == ["sbbf", "probe", "names.parquet", column, "1"]
        assert shell.words("sbbf probe names.parquet 'user\t 1") == ["sbbf", "probe", "names.parquet", "user id", "1"]
        assert shell.words('sbbf probe names.parquet "say\t 1') == ["sbbf", "probe", "names.parquet", 'say "hi"', "1"]
        assert shell.words("sbbf probe names.parquet a:b\t 1") == ["sbbf", "probe", "names.parquet", "a:b:c", "1"]
        assert shell.words("sbbf probe nothere.parquet zz\t 1") == ["sbbf", "probe", "nothere.parquet", "zz", "1"]

    def test_control_characters(self, shell, name):
        shell.show("sbbf probe evil.parquet ev\t\t", b"evil2")
        assert b"\x1b]0;title" not in shell.screen


@pytest.mark.parametrize("name", SHELLS)
def test_the_script(name, capfd):
    assert run(["completion", name]) == 0
    script = capfd.readouterr().out
    environment = {**os.environ, "_SBBF_COMPLETE": f"{name}_source"}
    done = subprocess.run([sys.executable, "-m", "sbbf_tool"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == script
    if shutil.which(name) is None:
        pytest.skip(f"the shell {name} is not installed")
    assert subprocess.run([name, "-n"], input=script, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize("value", ["", "_", "bash", "bash_complete", "csh_complete", "csh_source", "zsh_complete"])
def test_a_variable_of_another_kind_runs_no_command(value, folder):
    environment = {**os.environ, "_SBBF_COMPLETE": value}
    command = [sys.executable, "-m", "sbbf_tool", "remove-filter", str(folder / "names.parquet"), "--in-place"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert done.stderr == b""
    assert b"Removed" not in done.stdout


def test_columns_are_completed_without_slow_imports(folder):
    environment = {**os.environ, "_SBBF_COMPLETE": "bash_complete", "_SBBF_LINE": "sbbf probe names.parquet pl"}
    command = [sys.executable, "-X", "importtime", "-m", "sbbf_tool"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, cwd=folder)
    assert done.stdout == b"words\0plain\0"
    packages = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.decode().splitlines()}
    assert "sbbf_tool" in packages
    assert not packages & {"numpy", "pyarrow", "rich", "pyspark", "cryptography", "botocore", "obstore"}
