"""Commands and options of earlier versions are answered with one line, which gives the new spelling."""

from __future__ import annotations

import re

import pytest

from sbbf_tool.cli import run
from sbbf_tool.cli.removed import COMMANDS, OPTIONS
from support.every_command import commands


def answer(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("rest", [[], ["x.parquet", "-c", "a"], ["--help"]], ids=" ".join)
def test_commands(name, rest, capfd):
    assert answer(capfd, *name.split(), *rest) == f"sbbf: sbbf {name} was removed: {COMMANDS[name]} (see sbbf --help)\n"


@pytest.mark.parametrize(("name", "option"), OPTIONS)
@pytest.mark.parametrize("value", [["spark"], []], ids=["value", ""])
def test_options(name, option, value, capfd):
    for words in ([option, *value], [f"{option}={''.join(value)}"]):
        output = answer(capfd, *name.split(), "x.parquet", *words)
        assert output == f"sbbf: {option} was removed: {OPTIONS[name, option]} (see sbbf {name} --help)\n"


def test_what_was_removed_is_not_there():
    present = commands()
    assert not present.keys() & COMMANDS.keys()
    for name, option in OPTIONS:
        assert option not in {spelling for parameter in present[name].params for spelling in parameter.opts}


def test_new_spellings_are_there():
    present = commands()
    for spelling in COMMANDS.values():
        name = spelling.removeprefix("use sbbf ").split()[0]
        assert name in present or name == "COMMAND"
        names = {
            option for parameter in present.get(name, present["inspect"]).params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert set(re.findall(r"(?<![\w-])-{1,2}[a-z][a-z-]*", spelling)) <= names, spelling
    for (name, _), spelling in OPTIONS.items():
        names = {option for parameter in present[name].params for option in parameter.opts}
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", spelling)) <= names, spelling


@pytest.mark.parametrize("words", [["lake"], ["lake", "nothing"], ["lake", "--debug"]], ids=" ".join)
def test_the_group_alone(words, capfd):
    assert answer(capfd, *words).startswith("sbbf: sbbf lake was removed: use sbbf COMMAND PATH...")


def test_the_option_of_a_removed_command_is_answered_too(capfd):
    for words in (["--engine", "spark"], ["--engine=spark"]):
        assert "use sbbf check PATH...; use --runner for --engine (" in answer(capfd, "lake", "check", ".", *words)
