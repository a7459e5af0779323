"""`--quiet` prints nothing but errors, and `--verbose` says what is done: for every command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.every_command import COLUMN, DATA_FILE, FILE, TABLE, WORKING
from support.tables import each

REPORTS = {name: words for name, words in WORKING.items() if name not in ("schema", "help")}
"""The commands that print reports."""
READING_FILES = sorted(
    REPORTS.keys()
    - {"apply", "engines", "rule", "size"}
    - {name for name in REPORTS if name.startswith(("paimon", "conformance"))}
)
MORE = [
    ["rule"],
    ["engines", "all"],
    ["probe", FILE, FILE, "-c", COLUMN, "--value", "1"],
    ["add-filter", FILE, "--advise", "-n"],
    *(
        [name, FILE, *WORKING[name]]
        for name in ("inspect", "verify", "check", "repair", "resize", "advise", "remove-filter")
    ),
]
"""Beside each command as it is."""


@pytest.fixture
def names(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    shutil.copy(fixtures / "pyarrow-filters.parquet", "events.parquet")
    shutil.copy(fixtures / "pyarrow-filters.parquet", "data.parquet")
    shutil.copytree(fixtures / "paimon" / "orders", "table")
    return {FILE: "events.parquet", COLUMN: "id", TABLE: "table", DATA_FILE: "data.parquet"}


@pytest.mark.slow
@each("words", [*([*name.split(), *words] for name, words in REPORTS.items()), *MORE], every=3)
def test_quiet(words, names, fixtures, capfd):
    arguments = [names.get(word, word) for word in words]
    code = run([*arguments, "--quiet"])
    out, err = capfd.readouterr()
    assert out == ""
    # Codes 0 and 1 are answers; with any other code there was an error.
    assert (err != "") == (code > 1)
    assert all(line.startswith("sbbf: ") and "warning" not in line for line in err.splitlines())
    shutil.copy(fixtures / "pyarrow-filters.parquet", "events.parquet")
    Path("data.parquet.index").unlink(missing_ok=True)
    assert run([*arguments, "--quiet", "--format", "json"]) == code
    assert capfd.readouterr().out == ""


@each("name", READING_FILES)
def test_verbose(name, names, capfd):
    Path("sbbf.toml").write_text("".join(f"[{command}]\n" for command in READING_FILES))
    Path("sbbf.toml").chmod(0o600)
    Path().chmod(0o700)
    arguments = [name, *(names.get(word, word) for word in WORKING[name])]
    run([*arguments, "--verbose"])
    err = capfd.readouterr().err
    lines = err.splitlines()
    assert lines[0] == f"sbbf: settings of [{name}] in {Path().absolute()}/sbbf.toml"
    assert any(line.startswith("sbbf: opened ") and "events.parquet: " in line for line in lines)
    if "--in-place" in arguments:
        assert any(line.startswith("sbbf: published events.parquet: ") for line in lines)
    run(arguments)
    assert "opened" not in capfd.readouterr().err


def test_verbose_redacts_signatures(names, capfd):
    run(["inspect", "http://127.0.0.1:9/a.parquet?X-Amz-Signature=hUsH", "-v"])
    out, err = capfd.readouterr()
    assert err
    assert "hUsH" not in out + err


def test_quiet_and_verbose_exclude_each_other_but_the_command_line_overrides_a_setting(
    fixtures, monkeypatch, capfd
):
    path = str(fixtures / "events.parquet")
    for words in (["-q", "-v"], ["-v", "-q"]):
        assert run(["check", path, *words]) == 2
        assert "give one of --quiet and --verbose" in capfd.readouterr().err
    monkeypatch.setenv("SBBF_CHECK_QUIET", "1")
    assert run(["check", path, "-v"]) == 0
    assert capfd.readouterr().out != ""
    monkeypatch.setenv("SBBF_CHECK_QUIET", "0")
    monkeypatch.setenv("SBBF_CHECK_VERBOSE", "1")
    assert run(["check", path, "-q"]) == 0
    assert capfd.readouterr() == ("", "")
