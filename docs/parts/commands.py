"""The commands, from click, and the list of their documents."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click

from parts.markdown import block, code, paragraphs, plain, table
from sbbf_tool.cli import cli
from sbbf_tool.cli.command import CommandsByName
from sbbf_tool.cli.options import SECTIONS, topic_of
from sbbf_tool.cli.schema import documents

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


def describe_section(section: str) -> str:
    """Describe the commands of a section of `sbbf --help`, or below a group."""
    names = cli.sections.get(section, ())
    return paragraphs(
        *(
            _describe(name, command)
            for name, command in read_commands().items()
            if name in names or name.startswith(f"{section} ")
        )
    )


def _describe(name: str, command: click.Command) -> str:
    """Describe a command: usage, explanation, examples, and the options of each section."""
    # The settings of the whole program, such as the names of --help, come from the context above.
    root = click.Context(
        cli, info_name="sbbf", terminal_width=_WIDTH, color=False, **cli.context_settings
    )
    context = command.context_class(command, info_name=name, parent=root)
    options = [
        parameter
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
    ]
    texts = cleandoc(command.help or "").split("\n\n")
    parts = [f"### sbbf {name}", block("text", command.get_usage(context))]
    parts += [
        block("console", text[2:]) if text.startswith("\b\n") else plain(" ".join(text.split()))
        for text in texts
    ]
    for section in SECTIONS:
        records = [
            option.get_help_record(context) for option in options if topic_of(option) == section
        ]
        rows = [
            [code(term), plain(" ".join(explanation.split()))]
            for term, explanation in filter(None, records)
        ]
        if rows:
            parts.append(table([section, "does"], rows))
    return paragraphs(*parts)


def list_schemas() -> str:
    """List links to the JSON Schemas, which are files of the site."""
    links = ", ".join(f'<a href="schemas/sbbf.{name}.json">sbbf.{name}</a>' for name in documents())
    return f"The schemas as files: {links}.\n"
