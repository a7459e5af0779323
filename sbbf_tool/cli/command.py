"""The classes of commands: a help of one screen and a full one, and settings from variables and
from the configuration file.

A group imports the module of a command when the command is called, and gives every command the
options that all have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from inspect import cleandoc
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.options import (
    SECTIONS,
    SETTINGS,
    SHARED,
    Option,
    changes_files,
    is_shared,
    name_of,
    settable_options,
    topic_of,
)
from sbbf_tool.cli.output import limit_complaints, stop_if_unread, terminal, terminal_options
from sbbf_tool.cli.render import note, warn
from sbbf_tool.errors import UsageError
from sbbf_tool.extension import load, load_each, named
from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import suggest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from sbbf_tool.cli.config_file import Config


BRIEF = "sbbf.brief"
"""In the `meta` of a context, whether its help is to fit one screen, as with -h: the first sentence
of what is not shared."""
_SENTENCE = r"(?<=\.) +(?=[A-Z-])"
_SHARED_OPTIONS = "Options of many commands (sbbf help options explains them)"
_MOST_CELLS = 24
"""Cells of a line for an option; the explanation of a longer one begins on the next line."""


def _write_purpose(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write what a command does and its examples; in a full help, also how."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    if ctx.meta.get(BRIEF):
        paragraphs = paragraphs[:2]
    for paragraph in paragraphs:
        if paragraph.startswith("\b"):
            lines = paragraph.splitlines()[1:]
        else:
            lines = _wrap(paragraph, formatter.width - 2)
        formatter.write("\n")
        _write_lines(formatter, lines, 2)


class Command(click.Command):
    """A command whose help lists its options by section, and whose options can be set in more
    places than its command line.

    The first paragraph of its docstring says what it does, and the second has two examples, each a
    line that begins with `$`.
    """

    format_help_text = _write_purpose

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show this (-h), or all options (--help)."
        return option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        is_brief = bool(ctx.meta.get(BRIEF))
        sections: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        shared = []
        peculiarities: list[str] = []
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is None:
                continue
            if is_shared(option):
                shared.append(name_of(option))
                peculiarities += _wrap(getattr(option, "peculiarity", ""), formatter.width - 2)
            else:
                sections[topic_of(option)].append(record)
        if is_brief:
            own: list[tuple[str, str]] = []
            for section, records in sections.items():
                if section not in SHARED:
                    own += [(term, re.split(_SENTENCE, text)[0]) for term, text in records]
            sections = {"Options": [*own, sections[SETTINGS][-1]]}
        write_sections(formatter, sections)
        if shared and not is_brief:
            formatter.write(f"\n{_SHARED_OPTIONS}:\n")
            _write_lines(formatter, _wrap(", ".join(shared), formatter.width - 2), 2)
            _write_lines(formatter, peculiarities, 2)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; one that only reads ends with another code if its output was closed."""
        with limit_complaints():
            result = super().invoke(ctx)
        if not changes_files(self):
            stop_if_unread()
        return result

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            from sbbf_tool.cli.completion import complete_value

            for parameter in self.params:
                if not isinstance(parameter.type, click.Choice):
                    # As if each had been made with it.
                    parameter._custom_shell_complete = complete_value
            return super().parse_args(ctx, args)
        try:
            options, _, order = self.make_parser(ctx).parse_args(list(args))
            _ensure_given_once(order)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        help_option = self.get_help_option(ctx)
        if help_option is not None and options.get(str(help_option.name)) is True:
            return super().parse_args(ctx, args)
        from sbbf_tool.cli.settings import LEAF, read_settings, source_of, used_config

        try:
            read_settings(ctx, options)
            remaining_args = super().parse_args(ctx, args)
        except click.BadParameter as error:
            source = None if error.param is None else source_of(ctx, error.param)
            error.param_hint = source or error.param_hint
            raise
        ctx.meta[LEAF] = ctx
        config = used_config(ctx)
        if config is not None:
            _report_config(config)
        return remaining_args


def _ensure_given_once(parameters: Sequence[click.Parameter]) -> None:
    """Raise click.UsageError for an option that takes one value and is given several times."""
    for option in parameters:
        if not isinstance(option, click.Option) or option.multiple or option.is_flag:
            continue
        if parameters.count(option) > 1:
            raise click.UsageError(f"{name_of(option)} is given twice, and takes one value")


def _report_config(config: Config) -> None:
    if terminal().verbose:
        note(f"sbbf: settings of {config.place} in {config.path}")
    if config.exposure is not None:
        warn(f"{config.path}: settings of {config.place} are used, and {config.exposure}")


def write_sections(
    formatter: click.HelpFormatter,
    sections: Mapping[str, Sequence[tuple[str, str]]],
    introductions: Mapping[str, str] | None = None,
) -> None:
    """Write lists of terms and explanations under headings, all aligned; omit empty lists."""
    width = 0
    for rows in sections.values():
        for term, _ in rows:
            width = max(width, min(len(term), _MOST_CELLS))
    for section, rows in sections.items():
        if not rows:
            continue
        formatter.write(f"\n{section}:\n")
        if introductions is not None and section in introductions:
            _write_lines(formatter, _wrap(introductions[section], formatter.width - 2), 2)
        for term, text in rows:
            lines = _wrap(text, formatter.width - width - 4) or [""]
            if len(term) > width:
                formatter.write(f"  {term}\n")
            else:
                formatter.write(f"  {term:<{width}}  {lines.pop(0)}\n")
            _write_lines(formatter, lines, width + 4)


def _write_lines(formatter: click.HelpFormatter, lines: Sequence[str], indent: int) -> None:
    for line in lines:
        formatter.write(" " * indent + line + "\n")


def _wrap(text: str, width: int) -> list[str]:
    """Return lines that end at spaces, so that options and values stay whole: click would also
    break them at hyphens."""
    from textwrap import wrap  # which compiles patterns

    return wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


class CommandEntry(Frozen):
    """A command in a list of commands: `--help` prints the summary without importing the module."""

    module: str
    """The module with the function `command`, or `MODULE:NAME`."""
    summary: str
    takes_options: bool = False
    """Whether extensions may add options."""


class CommandsByName(click.Group):
    """A group that imports a command's module when the command is called; `--help` lists its
    commands by section."""

    def __init__(
        self,
        *args: Any,
        commands: Mapping[str, CommandEntry],
        sections: Mapping[str, Collection[str]] | None = None,
        everyday: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self._own = commands
        self._sections = sections or {}
        self._everyday = everyday
        self.path: tuple[str, ...] = ()  # the names of this group below `sbbf`

    @cached_property
    def entries(self) -> Mapping[str, CommandEntry]:
        """All commands, those of extensions last. Finding these takes milliseconds, so a command of
        our own is not looked up here."""
        entries = dict(self._own)
        if self._sections:
            for name, entry in named("commands").items():
                entries[name] = CommandEntry(*entry)
        return entries

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        sections = {}
        rest = list(self.entries)
        for section, names in self._sections.items():
            sections[section] = [name for name in names if name in self.entries]
            rest = [name for name in rest if name not in names]
        sections["Extensions" if sections else "Commands"] = rest
        return sections

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[BRIEF] = "--help" not in args
        if not args and not ctx.resilient_parsing:
            # click 8.1 prints the help on stdout and ends with 0; later versions raise an error
            # that 8.1 does not have.
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)

    format_help_text = _write_purpose

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(chain.from_iterable(self.sections.values()))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: Mapping[str, Sequence[str]] = self.sections
        if not ctx.meta.get(BRIEF):
            click.Command.format_options(self, ctx, formatter)
        elif self._everyday:
            sections = {"Commands": self._everyday}
        rows = {}
        for title, names in sections.items():
            rows[title] = [(name, self.entries[name].summary) for name in names]
        write_sections(formatter, rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=self.entries[name].summary)
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._own.get(cmd_name) or self.entries.get(cmd_name)
        if entry is None:
            return None
        target = entry.module if ":" in entry.module else f"{entry.module}:command"
        command: click.Command = load(target)
        if not any(parameter.name == "terminal_quiet" for parameter in command.params):
            self._complete(command, cmd_name, entry)
        return command

    def _complete(self, command: click.Command, name: str, entry: CommandEntry) -> None:
        """Give a command the options of extensions and those that all commands have, and its
        options their variables."""
        if entry.takes_options:
            for make in load_each("options", name):
                command.params += make()
        if not isinstance(command, click.Group):
            command.params.append(_config_option())
        command.params += terminal_options()
        path = (*self.path, name)
        if isinstance(command, CommandsByName):
            command.path = path
        for option in settable_options(command):
            words = "_".join(["sbbf", *path, option.key])
            option.envvar = words.replace("-", "_").upper()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and not ctx.resilient_parsing:
            self._ensure_command(args[0], ctx)
        return super().resolve_command(ctx, args)

    def _ensure_command(self, name: str, ctx: click.Context) -> None:
        """Raise click.UsageError if there is no command of this name."""
        if name in self._own or name in self.entries:
            return
        names = ", ".join(self.entries)
        hint = f"the commands here and of installed extensions are {names}"
        hint = suggest(name, self.entries, hint)
        if self._sections:
            hint = f"no installed extension has it; {hint}"
        raise click.UsageError(f"unknown command {name!r}; {hint}", ctx)


def _config_option() -> Option:
    """Make the option that `Command.parse_args` reads."""
    text = (
        "Read settings from this file; none: from no file.  [default: sbbf.toml or "
        "pyproject.toml here or in a folder above]"
    )
    return Option(
        ["--config"],
        topic=SETTINGS,
        metavar="FILE",
        expose_value=False,
        help=text,
        introduction="A file or variables can set most options, and what has no dashes here: see "
        "sbbf help settings.",
    )
