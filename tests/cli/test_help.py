"""The short help of every command and every topic fits one screen, and its examples work."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import pytest

from parts.commands import read_commands
from sbbf_tool.cli import EVERYDAY, cli, run
from sbbf_tool.cli.help import TOPICS
from sbbf_tool.cli.options import SHARED, is_shared, name_of, topic_of
from sbbf_tool.extension import named
from support.tables import each

GROUPS = ("", *dict.fromkeys(name.split()[0] for name in read_commands() if " " in name))
LINES, COLUMNS = 24, 80
MOST_OPTIONS = 15
NOT_RUN = ("sbbf conformance",)
"""Commands that take minutes, or a program of the reader's own: their examples are parsed only."""


def examples_of(command: click.Command) -> list[str]:
    paragraph = cleandoc(command.help or "").split("\n\n")[1].splitlines()
    assert paragraph[0] == "\b"
    assert all(line.startswith("$ sbbf ") for line in paragraph[1:])
    return [line.removeprefix("$ ") for line in paragraph[1:]]


def all_examples() -> Iterator[str]:
    for command in (
        cli,
        *(cli.get_command(click.Context(cli), name) for name in GROUPS[1:]),
        *read_commands().values(),
    ):
        assert command is not None
        yield from examples_of(command)


@each(
    "words",
    [
        *([*name.split(), "-h"] for name in (*GROUPS, *read_commands())),
        *(["help", *name.split()] for name in (*TOPICS, *named("topics"), *read_commands())),
    ],
)
def test_one_screen(words, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert run(words) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) < LINES  # the next prompt takes a line
    assert max(map(len, lines)) <= COLUMNS
    options = "\n".join(lines).partition("\nOptions:\n")[2].splitlines()
    assert len(options) <= MOST_OPTIONS


@each("name", [*read_commands()])
def test_the_short_help_has_examples_and_own_options_and_the_full_one_all(name, capfd):
    command = read_commands()[name]
    own = [
        option
        for option in command.params
        if isinstance(option, click.Option) and topic_of(option) not in SHARED
    ]
    outputs = {}
    for option in ("-h", "--help"):
        assert run([*name.split(), option]) == 0
        outputs[option] = capfd.readouterr().out
        assert all(f"  $ {example}\n" in outputs[option] for example in examples_of(command))
    listed = re.findall(
        r"^  (?:-\w, )?(--[\w-]+)", outputs["-h"].partition("\nOptions:\n")[2], re.MULTILINE
    )
    assert set(re.findall(r"^  .*?(--[\w-]+)", outputs["--help"], re.MULTILINE)) >= {
        max(option.opts, key=len) for option in own
    }
    assert sorted(listed) == sorted(["--help", *(max(option.opts, key=len) for option in own)])
    assert len(examples_of(command)) == 2


def named_options(text: str) -> set[str]:
    """Return the options that a full help only names."""
    _, _, rest = text.partition("\nOptions of many commands")
    return {*re.findall(r"--[\w-]+", rest)}


def test_the_options_of_many_commands_have_a_topic(capfd):
    assert run(["help", "options"]) == 0
    explained = re.findall(r"^  (?:-\w, )?(--[\w-]+)", capfd.readouterr().out, re.MULTILINE)
    assert len(explained) == len({*explained})
    for name, command in read_commands().items():
        shared = {name_of(option) for option in command.params if is_shared(option)}
        assert shared <= {*explained}, name
        assert run([*name.split(), "--help"]) == 0
        assert named_options(capfd.readouterr().out) == shared, name


def test_the_full_help_names_the_formats_that_help_options_does_not(capfd):
    assert run(["help", "options"]) == 0
    explained = capfd.readouterr().out
    for name, command in read_commands().items():
        own = {
            form
            for option in command.params
            if option.name == "form" and isinstance(option.type, click.Choice)
            for form in option.type.choices
            if form not in explained
        }
        assert run([*name.split(), "--help"]) == 0
        *_, last = capfd.readouterr().out.splitlines()
        named = last.partition("--format also takes ")[2].rstrip(".").split(", ")
        assert own <= {*named}, name


@each("name", ["probe", "add-filter"])
def test_the_full_help_fits_two_screens_and_a_half(name, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert run([name, "--help"]) == 0
    assert len(capfd.readouterr().out.splitlines()) < 2.5 * LINES


def test_the_commands_of_every_day_and_all_commands(capfd):
    assert run(["-h"]) == run(["help"]) == 0
    short = re.findall(r"^  ([a-z][\w-]*)  ", capfd.readouterr().out, re.MULTILINE)
    assert short == [*EVERYDAY] * 2
    assert run(["--help"]) == 0
    full = re.findall(r"^  ([a-z][\w-]*)  ", capfd.readouterr().out, re.MULTILINE)
    assert full == list(cli.list_commands(click.Context(cli)))


@pytest.fixture
def folder(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    for name in ("events.parquet", "lake/day=1/a.parquet", "lake/day=2/b.parquet"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(fixtures / "events.parquet", name)
    shutil.copytree(fixtures / "paimon" / "orders", "orders")
    assert (
        run(
            [
                "add-filter",
                "events.parquet",
                "lake",
                "-c",
                "user_id",
                "--ndv",
                "100000",
                "--in-place",
            ]
        )
        == 0
    )
    Path("sbbf.toml").write_text('[[filters]]\npaths = "lake"\ncolumns = "user_id"\n')
    return tmp_path


@pytest.mark.slow
@each("example", all_examples())
def test_an_example_works(example, folder, capfd):
    words = shlex.split(example)[1:]
    if not example.startswith(NOT_RUN):
        if words == ["index", "lake.sbbfx"]:
            assert run([*words[:1], "lake", "-c", "user_id", "-o", words[1]]) == 0
        assert run(words) in (0, 1), capfd.readouterr().err
        return
    group = cli.get_command(click.Context(cli), words[0])
    assert isinstance(group, click.Group)
    command = group.get_command(click.Context(group), words[1])
    assert command is not None
    command.make_context(words[1], words[2:], parent=click.Context(group))
