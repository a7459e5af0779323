"""A group of commands that imports a command's module when the command is called, and the options that every command has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.command import BRIEF, write_purpose, write_sections
from sbbf_tool.cli.options import name_of, settable_options
from sbbf_tool.cli.terminal import terminal_options
from sbbf_tool.errors import UsageError
from sbbf_tool.extension import load, load_each, named
from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import suggest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandEntry(Frozen):
    """A command in a list of commands: `--help` prints the summary without importing the module."""

    module: str
    """The module with the function `command`, or `MODULE:NAME`."""
    summary: str
    takes_options: bool = False
    """Whether extensions may add options."""


class CommandsByName(click.Group):
    """A group that imports a command's module when the command is called; `--help` lists its commands by section."""

    def __init__(
        self,
        *args: Any,
        commands: Mapping[str, CommandEntry],
        sections: Mapping[str, Sequence[str]] | None = None,
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
        """All commands, those of extensions last. Finding these takes milliseconds, so a command of our own is not looked up here."""
        return {**self._own, **{name: CommandEntry(*entry) for name, entry in named("commands").items() if self._sections}}

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        by_section = {section: [name for name in names if name in self.entries] for section, names in self._sections.items()}
        rest = [name for name in self.entries if all(name not in names for names in by_section.values())]
        return {**by_section, "Extensions" if by_section else "Commands": rest}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[BRIEF] = "--help" not in args
        if not args and not ctx.resilient_parsing:
            # click 8.1 prints the help on stdout and ends with 0; later versions raise an error that 8.1 does not have.
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.sections.values() for name in names]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_purpose(self, ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not ctx.meta.get(BRIEF):
            click.Command.format_options(self, ctx, formatter)
        sections = {"Commands": self._everyday} if ctx.meta.get(BRIEF) and self._everyday else self.sections
        write_sections(formatter, {title: [(name, self.entries[name].summary) for name in names] for title, names in sections.items()})

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=self.entries[name].summary) for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._own.get(cmd_name) or self.entries.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = load(entry.module if ":" in entry.module else f"{entry.module}:command")
        if not any(parameter.name == "terminal_quiet" for parameter in command.params):
            command.params += [
                *(option for make in (load_each("options", cmd_name) if entry.takes_options else ()) for option in make()),
                *([] if isinstance(command, click.Group) else [_config_option()]),
                *terminal_options(_show_log),
            ]
            if isinstance(command, CommandsByName):
                command.path = (*self.path, cmd_name)
            for option in settable_options(command):
                option.envvar = "_".join(["sbbf", *self.path, cmd_name, name_of(option).lstrip("-")]).replace("-", "_").upper()
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and args and not args[0].startswith("-") and args[0] not in self._own and args[0] not in self.entries:
            hint = suggest(args[0], self.entries, f"the commands here and of installed extensions are {', '.join(self.entries)}")
            hint = f"no installed extension has it; {hint}" if self._sections else hint
            raise click.UsageError(f"unknown command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


def _show_log(ctx: click.Context) -> None:
    """Print the log of the package to standard error until the command line ends."""
    from sbbf_tool.cli.render import note
    from sbbf_tool.log import show_log

    ctx.find_root().with_resource(show_log(lambda message: note(f"sbbf: {message}")))


def _config_option() -> click.Option:
    """Make the option that `Command.parse_args` reads."""
    text = "Read settings from this file; none: from no file.  [default: sbbf.toml or pyproject.toml here or in a folder above]"
    return click.Option(["--config"], metavar="FILE", expose_value=False, help=text)
