"""The configuration file that is searched for, whom it is trusted from, and its limits by path.

Options set by environment variables: which options have one, and their precedence.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import click
import pytest

from parts.commands import read_commands
from sbbf_tool.cli import cli, run
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.options import SECTIONS as OPTION_SECTIONS
from sbbf_tool.cli.options import Option, PureSetting, changes_files, name_of, settable_options
from sbbf_tool.cli.settings import _OTHER_VARIABLES
from support.tables import each

IGNORE = '[check]\nignore = ["correctness"]\n'


@pytest.fixture
def lying(fixtures: Path) -> str:
    return str(fixtures / "spark-boolean.parquet")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, in a project, in a home folder."""
    home = tmp_path / "home"
    below = home / "project" / "sub"
    below.mkdir(parents=True)
    for place in (tmp_path, home, home / "project", below):
        place.chmod(0o755)
    (home / "project" / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(below)
    return below


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


class TestSearch:
    @each("name", ["sbbf.toml", "pyproject.toml"])
    @each("above, code", [(0, 0), (1, 0), (2, 1), (3, 1)])
    def test_as_far_as_the_folder_with_git(self, name, above, code, folder, lying, capfd):
        text = IGNORE if name == "sbbf.toml" else IGNORE.replace("check", "tool.sbbf.check")
        write([folder, *folder.parents][above] / name, text)
        assert run(["check", lying]) == code
        assert capfd.readouterr().err == ""

    def test_the_nearest_file_is_the_only_one(self, folder, lying):
        write(folder.parent / "sbbf.toml", IGNORE)
        assert run(["check", lying]) == 0
        write(folder / "pyproject.toml", '[tool.ruff]\n[project]\nname = "sbbf"\n')
        assert run(["check", lying]) == 0
        write(folder / "pyproject.toml", "[tool.sbbf.inspect]\nall = true\n")
        assert run(["check", lying]) == 1
        write(folder / "sbbf.toml", IGNORE)
        assert run(["check", lying]) == 0

    def test_the_command_line_and_the_environment_override_it(self, folder, lying, monkeypatch):
        write(folder / "sbbf.toml", IGNORE + "fail-on = 'error'\n")
        assert run(["check", lying, "--ignore", "format"]) == 1
        monkeypatch.setenv("SBBF_CHECK_IGNORE", "format")
        assert run(["check", lying]) == 1
        assert run(["check", lying, "--ignore", "correctness"]) == 0


class TestUnusableFiles:
    """mistakes.txt has those of text that cannot be meant."""

    def test_in_another_encoding(self, folder, lying, capfd):
        (folder / "pyproject.toml").write_text("[tool.sbbf]", encoding="utf-16")
        assert run(["check", lying]) == 2
        err = capfd.readouterr().err
        assert (err.startswith(f"sbbf: {folder}/pyproject.toml: "), err.count("\n")) == (True, 1)
        assert run(["check", "--help"]) == 0

    def test_no_regular_file(self, folder, lying, capfd):
        os.mkfifo(folder / "sbbf.toml")
        assert run(["check", lying]) == 2
        assert (
            capfd.readouterr().err
            == f"sbbf: {folder}/sbbf.toml: not a regular file; --config none ignores it\n"
        )
        (folder / "sbbf.toml").unlink()
        for target in ("sbbf.toml", "/dev/zero", "nothere", "."):
            (folder / "sbbf.toml").symlink_to(target)
            assert run(["check", lying]) == 2
            assert capfd.readouterr().err.count("\n") == 1
            (folder / "sbbf.toml").unlink()


class TestTrust:
    ADD = "[add-filter]\nfpp = '50 %'\n"

    def change(self, fixtures: Path, folder: Path, *options: str) -> int:
        path = shutil.copy(fixtures / "events.parquet", folder / "events.parquet")
        return run(["add-filter", str(path), "-c", "user_id", "--in-place", *options])

    @each("exposure", ["file", "group", "folder", "link", "owner"])
    def test_of_a_file_that_others_may_write(
        self, exposure, folder, fixtures, lying, capfd, monkeypatch
    ):
        mode = {"file": 0o666, "group": 0o664}.get(exposure, 0o644)
        path = write(folder / "sbbf.toml", self.ADD + IGNORE, mode)
        if exposure == "folder":
            folder.chmod(0o777)
        if exposure == "link":
            shared = folder / "shared"
            shared.mkdir()
            shared.chmod(0o777)
            path.rename(shared / "sbbf.toml")
            path.symlink_to("shared/sbbf.toml")
        if exposure == "owner":
            if os.geteuid() != 0:
                pytest.skip("only root may give a file away")
            os.chown(path, 12345, 12345)
        assert run(["check", lying]) == 0
        err = capfd.readouterr().err
        assert err.startswith(f"sbbf: warning: {path}: settings of [check] are used, and ")
        assert err.count("\n") == 1
        before = (fixtures / "events.parquet").read_bytes()
        assert self.change(fixtures, folder) == 2
        err = capfd.readouterr().err
        assert f"--config {path}" in err
        assert err.count("\n") == 1
        assert (folder / "events.parquet").read_bytes() == before
        assert self.change(fixtures, folder, "--config", "none") == 0
        assert self.change(fixtures, folder, "--config", str(path)) == 0

    @each(
        "text, words",
        [
            ("[spark]\nexecutor.instances = 1\n", ["--on", "spark"]),
            ("[inspect]\non = 'spark'\n", []),
        ],
    )
    def test_settings_of_spark(self, text, words, folder, lying, capfd):
        path = write(folder / "sbbf.toml", text, 0o666)
        assert run(["inspect", lying, *words]) == 2
        err = capfd.readouterr().err
        assert (
            "settings of Spark can run code, and every user can write to it; use them with "
            f"--config {path}" in err
        )


class TestPaths:
    @pytest.fixture
    def lake(self, folder: Path, fixtures: Path) -> Path:
        for name in (
            "lake/raw/a.parquet",
            "lake/raw/day=1/b.parquet",
            "lake/clean/c.parquet",
            "lake/[x]/d.parquet",
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(fixtures / "spark-boolean.parquet", folder / name)
        return folder / "lake"

    def failed(self, capfd: pytest.CaptureFixture[str], *options: str) -> str:
        """Return the letters of the files that fail."""
        assert run(["check", "lake", "--format", "json", *options]) in (0, 1)
        *documents, _ = map(json.loads, capfd.readouterr().out.splitlines())
        assert len(documents) == 4
        return "".join(
            sorted(Path(document["file"]).stem for document in documents if document["failed"])
        )

    @each(
        "glob, failed",
        [
            ("lake/raw", "cd"),
            ("lake/raw/*.parquet", "bcd"),
            ("**/b.parquet", "acd"),
            ("**", ""),
            ("lake/?lean", "abd"),
            ("lake/[!c]*", "c"),
            ("lake/[[]x]", "abc"),
            ("../sub/lake/raw", "cd"),
            ("lake/ra", "abcd"),
        ],
    )
    def test_globs(self, glob, failed, lake, capfd):
        write(
            lake.parent / "sbbf.toml",
            f'[[check.paths]]\npaths = "{glob}"\nignore = ["correctness"]\n',
        )
        assert self.failed(capfd) == failed


# Options without a variable: those that allow or widen a change, write a file, name keys, or run a
# program.
NOWHERE = {
    "--abandoned", "--advise",
    "--allow", "--also-new-files", "--append", "--compact",
    "--rebuild", "--in-place", "--keys", "--output", "--plan",
    "--ours", "--reader", "--remove-undeclared", "--report", "--state",
    "--writer",
}  # fmt: skip
# In commands that change files, these choose what is changed.
ONLY_READING = {"--column", "--files-from"}


@each("name", list(read_commands()))
def test_no_variable_allows_or_widens_a_change(name):
    command = read_commands()[name]
    options = {
        name_of(parameter) for parameter in command.params if isinstance(parameter, click.Option)
    }
    without = options & (NOWHERE | (ONLY_READING if changes_files(command) else set()))
    assert {name_of(option) for option in settable_options(command)} == options - without
    assert {
        name_of(option) for option in command.params if option.envvar is not None
    } == options - without


def test_commands_that_change_files():
    changing = {name for name, command in read_commands().items() if changes_files(command)}
    of_paimon = {"paimon build", "paimon add-index", "paimon remove-index"}
    assert changing == {
        "apply",
        "add-filter",
        "remove-filter",
        "resize",
        "repair",
        "index",
        *of_paimon,
    }


def test_no_variable_is_that_of_two_options():
    variables = [
        option.envvar
        for command in read_commands().values()
        for option in command.params
        if option.envvar is not None
    ]
    assert len(variables) == len(set(variables))
    assert not {"SBBF_KEYS", "SBBF_KEYS_FILE", "SBBF_KERNEL"} & set(variables)


class TestValues:
    @pytest.fixture
    def path(self, fixtures: Path) -> str:
        return str(fixtures / "pyarrow-filters.parquet")

    def test_that_are_invalid_keep_no_help_from_being_printed(self, path, monkeypatch, capfd):
        """mistakes.txt has the others."""
        monkeypatch.setenv("SBBF_CHECK_JOBS", "\x1b[31m")
        assert run(["check", path]) == 2
        assert capfd.readouterr().err.startswith(
            "sbbf: SBBF_CHECK_JOBS: '\\x1b[31m' is not a valid whole number"
        )
        assert run(["check", "--help"]) == 0

    def test_of_other_commands_and_of_this_package_stay(self, path, monkeypatch):
        others = (
            "SIZE_MAX_BYTES KERNEL KEYS KEYS_FILE CONFORMANCE WITHOUT_EXTENSIONS VERSION "
            "CHECK_MAX_FPP PAIMON_CHECK_SELECT"
        )
        for name in (f"SBBF_{other}" for other in others.split()):
            monkeypatch.setenv(name, "")
        assert run(["resize", path, "--dry-run", "--fpp", "0.5"]) == 0
        assert run(["verify", path]) == 0

    @each(
        "name, hint",
        [
            ("FPPP", "did you mean SBBF_ADVISE_FPP?"),
            ("KEYFILE", "did you mean SBBF_KEYS_FILE?"),
            ("MAX_FPP", "did you mean SBBF_CHECK_MAX_FPP?"),
            ("CHECK_MAXFPP", "did you mean SBBF_CHECK_MAX_FPP?"),
            ("PAIMON_CHECK_SELCT", "did you mean SBBF_PAIMON_CHECK_SELECT?"),
            ("ADD_FILTER_IN_PLACE", "see sbbf help settings"),
            ("SOMETHING", "see sbbf help settings"),
        ],
    )
    def test_that_nothing_reads_are_errors_in_every_command(
        self, path, monkeypatch, capfd, name, hint
    ):
        monkeypatch.setenv(f"SBBF_{name}", "1")
        assert run(["verify", path]) == 2
        assert f"unknown variable 'SBBF_{name}'; {hint}" in capfd.readouterr().err

    def test_of_the_build_and_the_tests_are_known(self):
        """Each name in the sources of the tests and of the build is that of no option."""
        root = Path(__file__).parents[2]
        sources = [root / "setup.py", *(root / "release").rglob("*.py")]
        sources += [path for path in (root / "tests").rglob("*.py") if "cli" not in path.parts]
        names = set()
        for source in sources:
            pattern = r"environ\S*[(\[]\s*\"(SBBF_\w+)\""
            names.update(re.findall(pattern, source.read_text()))
        assert "SBBF_STAGES" in names
        assert names <= _OTHER_VARIABLES

    def test_a_variable_may_keep_a_command_from_changing_a_file(self, path, tmp_path, monkeypatch):
        copy = Path(shutil.copy(path, tmp_path))
        before = copy.read_bytes()
        monkeypatch.setenv("SBBF_REMOVE_FILTER_DRY_RUN", "1")
        assert run(["remove-filter", str(copy)]) == 0
        assert copy.read_bytes() == before


MOST_OPTIONS = 57
"""This number may only fall: a new option replaces another, or is a value of one, an argument, or a
setting."""
TWO_SCREENS = 2 * 50


def test_there_are_no_more_options():
    options = [
        option
        for command in (cli, *read_commands().values())
        for option in command.params
        if isinstance(option, click.Option)
    ]
    names = {name_of(option) for option in options if not isinstance(option, PureSetting)} | {
        "--help"
    }
    assert len(names) == MOST_OPTIONS, sorted(names)


@each("name", list(read_commands()))
def test_options_are_listed_by_section(name, capfd):
    command = read_commands()[name]
    assert isinstance(command, Command)
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.opts for option in options if not isinstance(option, Option)] == []
    assert run([*name.split(), "--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) <= TWO_SCREENS
    headings = [
        line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")
    ]
    if headings[-1].startswith("Options of many commands"):
        headings.pop()
    assert headings == [section for section in OPTION_SECTIONS if section in headings]
    assert headings[-1] == "Settings"
    words = {word.strip(",") for line in lines if line.startswith("  -") for word in line.split()}
    options = {
        name_of(parameter)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not isinstance(parameter, PureSetting)
    }
    assert options <= words
    settings = {
        name_of(parameter).lstrip("-")
        for parameter in command.params
        if isinstance(parameter, PureSetting)
    }
    assert settings == {line.split()[0] for line in lines if re.match(r"  [a-z-]+ = ", line)}


def test_what_a_bug_report_needs(capfd):
    for options in (["--version", "--verbose"], ["-v", "-V"]):
        assert run(options) == 0
        lines = capfd.readouterr().out.splitlines()
        assert lines[0].startswith("sbbf ")
        names = [line.partition(":")[0] for line in lines[1:]]
        packages = ["pyarrow", "numpy", "click", "rich", "xxhash", "cramjam"]
        extras = [name for name in names if name.startswith("extra ")]
        assert names == [
            "kernel",
            "thrift",
            "footers",
            "Python",
            "platform",
            *packages,
            *extras,
            "Java",
        ]
        assert {"extra encryption", "extra objects", "extra spark"} <= set(extras)
        assert not {"extra docs", "extra test"} & set(extras)
