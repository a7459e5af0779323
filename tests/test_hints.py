"""Fixes are values: Python writes them as calls, the command line as commands. Errors and hints are
text."""

from __future__ import annotations

import ast
import inspect
import json
import os
import pickle
import shutil
import subprocess
from importlib import import_module, metadata
from pathlib import Path
from types import SimpleNamespace

import click

import sbbf_tool
from parts.commands import read_commands
from parts.functions import public_names
from sbbf_tool.cli import cli
from sbbf_tool.cli.spelling import command_of, quote_command
from sbbf_tool.display import escape
from sbbf_tool.errors import OversizedPageError, RefusedError, SbbfError, UsageError
from sbbf_tool.extensions.paimon.files import OutsideError
from sbbf_tool.hints import Fix, install_extra
from sbbf_tool.storage.objects.s3_bucket import NotS3Error
from sbbf_tool.storage.objects.store import OtherVersionError
from support.tables import each

PACKAGE = Path(sbbf_tool.__file__).parent
FIX = Fix("repair", ("it's.parquet",), columns=("a", "b"))


@each(
    "url, command",
    [
        ("file:///tmp/sbbf_tool-0.1.0-py3-none-any.whl", "/tmp/sbbf_tool-0.1.0-py3-none-any.whl"),
        ("file:///home/me/my%20sbbf", "/home/me/my sbbf"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_is(url, command, monkeypatch):
    assert install_extra("s3") == "pip install '.[s3]'"  # in a checkout
    monkeypatch.setattr(os.path, "isfile", lambda path: False)
    record = json.dumps({"url": url})
    distribution = SimpleNamespace(read_text=lambda name: record)
    monkeypatch.setattr(metadata, "distribution", lambda name: distribution)
    assert install_extra("s3", "gcs") == f"pip install '{command}[s3]' or '{command}[gcs]'"


def test_no_command_names_a_package_that_is_not_known_to_be_published(monkeypatch):
    monkeypatch.setattr(os.path, "isfile", lambda path: False)
    distribution = SimpleNamespace(read_text=lambda name: None)
    monkeypatch.setattr(metadata, "distribution", lambda name: distribution)
    assert install_extra("s3") == "install the extra s3 of sbbf-tool"


ODD = "a{b}%s%(c)d\\\\n{0}"


def test_an_error_is_printed_as_it_is():
    error = RefusedError(
        f"it is {ODD}", file=f"{ODD}.parquet", place=ODD, hint=f"see https://u:secret@h/{ODD}"
    )
    assert str(error) == f"{ODD}.parquet: {ODD}: it is {ODD}; see https://...@h/{ODD}"


def test_errors_travel_between_processes():
    errors = [
        OversizedPageError("m", hint=ODD, place="p").at(file=ODD),
        UsageError("m", hint="plain"),
        SbbfError("m"),
    ]
    for error in (*errors, OutsideError("a", "b"), NotS3Error(), OtherVersionError()):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert str(again) == str(error)


def test_names_of_files_in_fixes_have_no_secrets():
    assert "secret" not in str(Fix("repair", ("s3://user:secret@bucket/a.parquet",)))


FIXES = [
    Fix("repair", ("a.parquet",)),
    FIX,
    Fix("add_filters", ("a", "-b"), columns=("c",), rebuild="all", fpp=0.001, keys=__file__),
    Fix("remove_filters", ("a",), columns=("c",), compact=True),
    Fix("resize_filters", ("a",), columns=("-c",), fpp=0.01),
    Fix("resize_filters", ("a",), columns=("c",), max_bytes=64),
]


@each("fix", FIXES)
def test_fixes_are_commands_and_calls_that_exist(fix):
    program, verb, *words = command_of(fix)
    assert program == "sbbf"
    command = read_commands()[verb]
    parameters = {parameter.name: parameter.type for parameter in command.params}
    assert parameters
    values = command.make_parser(click.Context(command, **cli.context_settings)).parse_args(
        list(words)
    )[0]
    paths = next(
        parameter.name for parameter in command.params if isinstance(parameter, click.Argument)
    )
    assert tuple(values.pop(paths)) == fix.files
    assert set(values) == set(fix.parameters())
    names = inspect.signature(
        getattr(import_module(public_names()[fix.verb]), fix.verb)
    ).parameters.keys()
    assert fix.parameters().keys() <= names | inspect.signature(sbbf_tool.Edit).parameters.keys()
    assert isinstance(ast.parse(str(fix), mode="eval").body, ast.Call)


def test_calls_work(fixtures: Path, tmp_path: Path):
    lake, namespace = (
        tmp_path / "lake",
        {name: getattr(import_module(home), name) for name, home in public_names().items()},
    )
    lake.mkdir()
    file = shutil.copy(fixtures / "events.parquet", lake / "a.parquet")
    for paths in (lake, file, lake / "*.parquet"):
        fix = sbbf_tool.advise([paths]).fix
        assert fix is not None
        eval(str(fix), namespace)
        assert sbbf_tool.advise([paths]).fix is None
        for change in (
            Fix("resize_filters", fix.files, fpp=0.05),
            Fix("repair", fix.files),
            Fix("remove_filters", fix.files),
        ):
            eval(str(change), namespace)


@each(
    "name", ["ctl\x1b[31m\nx", "it's \x07", "##[debug]x", "a\\\x01", "ü \udcff", "\u202egnp", "a b"]
)
def test_a_printed_command_can_be_copied(name):
    """Bash reads back the words of a command, whatever characters they have."""
    words = command_of(Fix("repair", (f"{name}.parquet",), columns=(name,)))
    text = quote_command(words)
    assert escape(text) == text
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {text}"],
        capture_output=True,
        env={"LC_ALL": "C.UTF-8"},
        check=True,
    )
    assert [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]] == list(words)
