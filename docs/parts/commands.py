"""The pages of the commands, from click."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click

from parts.markdown import block, code, paragraphs, plain, table
from sbbf_tool.cli import cli
from sbbf_tool.cli.group import CommandsByName
from sbbf_tool.cli.options import SECTIONS, about

FOLDER = "reference/commands"
_WIDTH = 100


def read_commands() -> dict[str, click.Command]:
    """Return each command that is no group, by its name."""
    return dict(_below(cli, ()))


def _below(group: CommandsByName, names: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, CommandsByName):
            yield from _below(command, (*names, name))
        else:
            yield " ".join((*names, name)), command


def page_of(name: str) -> str:
    return f"{name.replace(' ', '-')}.md"


def begin_page(name: str) -> str:
    """Return the page of a command without its generated part."""
    return f'# sbbf {name}\n\n<!-- [[[cog command("{name}") ]]] -->\n<!-- [[[end]]] -->\n'


def list_section(section: str) -> str:
    """Build the table of the commands of a section of `sbbf --help`, or below a group."""
    commands = read_commands()
    names = [name for name in cli.sections.get(section, ()) if name in commands] or [
        name for name in commands if name.startswith(f"{section} ")
    ]
    return table(["command", "does"], ([f"[`sbbf {name}`]({page_of(name)})", plain(_first_paragraph(commands[name]))] for name in names))


def _paragraphs_of(command: click.Command) -> list[str]:
    return [" ".join(text.split()) for text in cleandoc(command.help or "").replace("\b\n", "").split("\n\n")]


def _first_paragraph(command: click.Command) -> str:
    return _paragraphs_of(command)[0]


def describe(name: str) -> str:
    """Describe a command: usage, explanation, and the options of each section."""
    command = read_commands()[name]
    # The settings of the whole program, such as the names of --help, come from the context above.
    root = click.Context(cli, info_name="sbbf", terminal_width=_WIDTH, color=False, **cli.context_settings)
    context = command.context_class(command, info_name=name, parent=root)
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    parts = [block("text", command.get_usage(context)), *map(plain, _paragraphs_of(command))]
    for section in SECTIONS:
        records = [option.get_help_record(context) for option in options if about(option).section == section]
        rows = [[code(term), plain(" ".join(explanation.split()))] for term, explanation in filter(None, records)]
        if rows:
            parts += [f"## {section}", table(["option", "does"], rows)]
    return paragraphs(*parts)
