"""The exact report of each defect. `pytest tests/golden --bless` writes the present reports; read
the difference before committing it.

A report of `check` is kept with its findings and the rules that failed; the one of the sound file
is kept whole.

Also: the folder is named after its finding, a sound file has no findings, and the command in a
finding fixes it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sbbf_tool.cli import run
from sbbf_tool.rules.catalog import RULES
from sbbf_tool.rules.rule import Rule
from support.defects import DEFECTS, FIXTURES, HERE, SOUND, Defect
from support.tables import each

pytestmark = pytest.mark.slow

NAME = "defective.parquet"
VERIFIED_GROUPS = ("correctness", "format", "encryption")
FORMATS = {"table": "txt", "json": "json"}
RULE_COUNTS = re.compile(
    r"(?<=; rules: )(\d+) passed, (\d+) noted, (\d+) failed(?:, (\d+) not run \([^)]*\))?(?=;|$)",
    re.MULTILINE,
)

Compare = Callable[[Path, str], None]


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Compare:
    """Compare with the file, or write it with `--bless`. JSON is stored with one value per line."""

    def compare_or_bless(path: Path, output: str) -> None:
        if path.suffix == ".json":
            output = json.dumps(json.loads(output), indent=1, ensure_ascii=False) + "\n"
        if request.config.getoption("--bless"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(output)
        assert output == path.read_text()

    return compare_or_bless


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files have the same names every time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def condense(output: str, form: str) -> str:
    """A report of `check` with the rules that failed and without the others, so that a new rule
    changes the report of no other one.

    Asserts that the report named every rule once.
    """
    if form == "table":
        ((passed, noted, failed, not_run),) = RULE_COUNTS.findall(output)
        assert int(passed) + int(noted) + int(failed) + int(not_run or 0) == len(RULES)
        return RULE_COUNTS.sub(f"{failed} failed", output)
    report = json.loads(output)
    assert [entry["rule"] for entry in report["rules"]] == [rule.name for rule in RULES]
    report["rules"] = [
        entry for entry in report["rules"] if entry["outcome"] in ("noted", "failed")
    ]
    return json.dumps(report)


def test_every_rule_has_its_folder(request: pytest.FixtureRequest):
    if request.config.getoption("--bless"):
        for rule in DEFECTS:
            (HERE / rule).mkdir(exist_ok=True)
    assert set(DEFECTS) == {rule.name for rule in RULES}
    folders = {path.name for path in HERE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {*DEFECTS, "sound", "formats", "drafts"}


@each("rule, defect", [(rule, DEFECTS[rule.name]) for rule in RULES if rule.name in DEFECTS])
def test_defect(
    rule: Rule,
    defect: Defect,
    workplace: Path,
    compare: Compare,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    """The reports of `check` and `verify`; the command that a finding names is there, and
    afterwards there is no such finding."""
    if rule.name == "over-128-mib" and os.environ.get("SBBF_KERNEL") == "spec":
        pytest.skip("256 MiB take this kernel an hour")
    defect.make(workplace / NAME)
    for variable, value in defect.settings:
        monkeypatch.setenv(variable, value)

    def report(command: str, code: int, *options: str, stem: str) -> list[dict[str, Any]]:
        for form, suffix in FORMATS.items():
            assert run([command, NAME, "--format", form, *options]) == code
            output, errors = capfd.readouterr()
            assert errors == ""
            compare(
                HERE / rule.name / f"{stem}.{suffix}",
                condense(output, form) if command == "check" else output,
            )
        return [
            finding for finding in json.loads(output)["findings"] if finding["rule"] == rule.name
        ]

    findings = report("check", 1, "--fail-on", rule.severity, *defect.options, stem="expected")
    assert findings
    if (
        rule.group in VERIFIED_GROUPS and rule.name != "oversized-page"
    ):  # verify refuses to read such a file
        assert report("verify", int(rule.severity == "error"), stem="verified")
    for finding in findings:
        if finding["fix"] is not None:
            program, command, *arguments = finding["fix"]["command"]
            assert program == "sbbf"
            assert run([command, *arguments]) == 0
    capfd.readouterr()
    run(["check", NAME, "--format", "json", *defect.options])
    remaining = [
        finding
        for finding in json.loads(capfd.readouterr().out)["findings"]
        if finding["rule"] == rule.name
    ]
    assert [finding["column"] for finding in remaining] == [
        finding["column"] for finding in findings if finding["fix"] is None
    ]


def test_a_sound_file_has_no_findings(
    workplace: Path, compare: Compare, capfd: pytest.CaptureFixture[str]
):
    shutil.copyfile(SOUND, NAME)
    for form, suffix in FORMATS.items():
        assert run(["check", NAME, "--format", form, "--fail-on", "info"]) == 0
        compare(HERE / "sound" / f"expected.{suffix}", capfd.readouterr().out)
        assert run(["verify", NAME, "--format", form]) == 0
        output = capfd.readouterr().out
        compare(HERE / "sound" / f"verified.{suffix}", output)
    assert json.loads(output)["findings"] == []


@each("command", ["inspect", "verify", "check"])
def test_filters_at_the_beginning_of_their_chunks(
    command: str, workplace: Path, compare: Compare, capfd: pytest.CaptureFixture[str]
):
    """The reports of the file with filters where the first draft has them."""
    name = "draft1-page-in-chunks.parquet"
    shutil.copyfile(FIXTURES / "drafts" / name, name)
    for form, suffix in FORMATS.items():
        assert run([command, name, "--format", form]) == int(command != "inspect")
        output, errors = capfd.readouterr()
        assert errors == ""
        compare(
            HERE / "drafts" / f"{command}.{suffix}",
            condense(output, form) if command == "check" else output,
        )


@each(
    "form, suffix",
    [
        ("junit", "xml"),
        ("sarif", "json"),
        ("github", "txt"),
        ("table", "txt"),
        ("csv", "csv"),
        ("markdown", "md"),
    ],
)
def test_formats(
    form: str, suffix: str, workplace: Path, compare: Compare, capfd: pytest.CaptureFixture[str]
):
    """Three files, of which one cannot be read, in each format."""
    DEFECTS["hashed-as-text"].make(workplace / "a, 100%: lies.parquet")
    (workplace / "b is no Parquet").write_text("PAR1, it says")
    shutil.copyfile(FIXTURES / "spark-boolean.parquet", "c<&>.parquet")
    assert (
        run(["check", "a, 100%: lies.parquet", "b is no Parquet", "c<&>.parquet", "--format", form])
        == 3
    )
    output, errors = capfd.readouterr()
    assert errors.startswith("sbbf: b is no Parquet: ")
    compare(HERE / "formats" / f"{form}.{suffix}", output)
