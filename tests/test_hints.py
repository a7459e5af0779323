"""Hints and fixes are values: Python spells them as parameters and calls, the command line as options and commands."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import shlex
import subprocess
from pathlib import Path

import click
import pytest

import sbbf_tool
from sbbf_tool.cli import cli
from sbbf_tool.cli.spelling import command_of, option_of, quote_command, spell
from sbbf_tool.display import escape
from sbbf_tool.errors import OversizedPageError, RefusedError, SbbfError, UsageError
from sbbf_tool.hints import Fix, Hint, join
from sbbf_tool.paimon.confined_files import OutsideError
from sbbf_tool.rules.rule import Limits
from sbbf_tool.runner.open_table import TableFiles
from sbbf_tool.storage.objects.s3_errors import NotS3Error
from sbbf_tool.storage.objects.store import OtherVersionError

PACKAGE = Path(sbbf_tool.__file__).parent
FIX = Fix("repair", ("it's.parquet",), columns=("a", "b"), rebuild=True)

SPELLINGS = [
    (Hint("replace it with {replace}", replace=True), "replace it with replace=True", "replace it with --replace"),
    (Hint("give its key with {keys}", keys=...), "give its key with keys=...", "give its key with --keys"),
    (Hint("{max_page_bytes} allows it", max_page_bytes=300), "max_page_bytes=300 allows it", "--max-page-bytes 300 allows it"),
    (Hint("{max_bytes} must be at least 64", max_bytes=None), "max_bytes must be at least 64", "--max-bytes must be at least 64"),
    (Hint("write elsewhere with {output}", output=...), "write elsewhere with output=...", "write elsewhere with -o"),
    (
        Hint("{fix} replaces it", fix=FIX),
        """repair("it's.parquet", rebuild=True, columns=['a', 'b'], in_place=True) replaces it""",
        """sbbf repair 'it'"'"'s.parquet' --rebuild -c a -c b --in-place replaces it""",
    ),
]


@pytest.mark.parametrize(("hint", "python", "options"), SPELLINGS, ids=[case[0].template for case in SPELLINGS])
def test_both_spellings(hint, python, options):
    assert str(hint) == hint == python
    assert spell(hint) == options
    assert spell(python) == python


def test_an_error_is_text_that_can_be_spelled():
    error = RefusedError("it is {odd}", file="a {b}.parquet", hint=SPELLINGS[0][0])
    assert str(error) == "a {b}.parquet: it is {odd}; replace it with replace=True"
    assert spell(str(error)) == "a {b}.parquet: it is {odd}; replace it with --replace"
    assert spell(join("x", str(error), "y")) == "xa {b}.parquet: it is {odd}; replace it with --replacey"
    assert join("x", "y") == "xy"


def test_errors_travel_between_processes_with_their_hints():
    errors = [OversizedPageError("m", hint=hint, place="p").at(file="f") for hint, _, _ in SPELLINGS]
    for error in (*errors, UsageError("m", hint="plain"), SbbfError("m"), OutsideError("a", "b"), NotS3Error(), OtherVersionError()):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert spell(str(again)) == spell(str(error))


def test_names_of_files_in_fixes_have_no_secrets():
    assert "secret" not in str(Fix("repair", ("s3://user:secret@bucket/a.parquet",)))


FIXES = [
    Fix("repair", ("a.parquet",)),
    FIX,
    Fix("add_filters", ("a", "-b"), columns=("c",), replace=True, fpp=0.001, keys=__file__),
    Fix("remove_filters", ("a",), columns=("c",), compact=True),
    Fix("resize_filters", ("a",), columns=("-c",), fpp=0.01),
    Fix("resize_filters", ("a",), columns=("c",), num_bytes=64),
]


@pytest.mark.parametrize("fix", FIXES, ids=str)
def test_fixes_are_commands_and_calls_that_exist(fix):
    program, verb, *words = command_of(fix)
    assert program == "sbbf"
    command = commands()[verb]
    parameters = {parameter.name: parameter.type for parameter in command.params}
    assert parameters
    values = command.make_parser(click.Context(command, **cli.context_settings)).parse_args(list(words))[0]
    paths = next(parameter.name for parameter in command.params if isinstance(parameter, click.Argument))
    assert tuple(values.pop(paths)) == fix.files
    assert set(values) == set(fix.parameters())
    assert fix.parameters().keys() <= inspect.signature(getattr(sbbf_tool, fix.verb)).parameters.keys()
    assert isinstance(ast.parse(str(fix), mode="eval").body, ast.Call)
    assert shlex.join(command_of(fix)) in spell(Hint("try {fix}", fix=fix))


def commands() -> dict[str, click.Command]:
    """All commands, those of `paimon` too, by their names."""
    context = click.Context(cli)
    commands_by_name = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    groups = [group for group in commands_by_name.values() if isinstance(group, click.Group)]
    return commands_by_name | {
        f"{group.name} {name}": group.get_command(context, name) for group in groups for name in group.list_commands(context)
    }


def hinted() -> set[str]:
    """The parameters that the hints of the package name."""
    parameters = set()
    for path in PACKAGE.rglob("*.py"):
        if "Hint(" in path.read_text():
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Hint":
                    parameters |= {keyword.arg for keyword in node.keywords if keyword.arg is not None}
    return parameters - {"fix"}


def test_every_parameter_of_a_hint_is_an_option_and_a_parameter():
    options = {option for command in commands().values() for parameter in command.params for option in parameter.opts}
    functions = [getattr(sbbf_tool, name) for name in sbbf_tool.__all__ if inspect.isfunction(getattr(sbbf_tool, name))]
    verbs = [verb for name, verb in vars(TableFiles).items() if inspect.isfunction(verb) and not name.startswith("_")]
    parameters = {parameter for function in (*functions, *verbs, Limits) for parameter in inspect.signature(function).parameters}
    assert {"keys", "output"} <= hinted() <= parameters
    assert {option_of(name) for name in hinted()} <= options


@pytest.mark.parametrize("name", ["ctl\x1b[31m\nx", "it's \x07", "##[debug]x", "a\\\x01", "ü \udcff", "\u202egnp", "a b"])
def test_a_printed_command_can_be_copied(name):
    """Bash reads back the words of a command, whatever characters they have."""
    words = command_of(Fix("repair", (f"{name}.parquet",), columns=(name,)))
    text = quote_command(words)
    assert escape(text) == text
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, env={"LC_ALL": "C.UTF-8"}, check=True)
    assert [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]] == list(words)
