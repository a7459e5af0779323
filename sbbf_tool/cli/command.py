"""The class of every command: options by section in the help, and settings from variables and from the configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.options import SECTIONS, about
from sbbf_tool.cli.terminal import terminal

if TYPE_CHECKING:
    from sbbf_tool.cli.config import Config

_MOST_CELLS = 24
"""Cells of a line for an option; the explanation of a longer one begins on the next line."""


_HYPHEN, _SPACE = "\ue000", "\ue001"
"""Stand for a hyphen, and for the space after a hyphen that is a word, while help is wrapped: click would break lines there."""


class HelpFormatter(click.HelpFormatter):
    """A formatter that breaks lines at spaces only, so that options and values stay whole."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, _protect(args), prefix)

    def write_text(self, text: str) -> None:
        super().write_text(_protect(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(name, _protect(text)) for name, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_HYPHEN, "-").replace(_SPACE, " ")


def _protect(text: str) -> str:
    return text.replace(" - ", f" -{_SPACE}").replace("-", _HYPHEN)


class Context(click.Context):
    """The context of a command line."""

    formatter_class = HelpFormatter


class Command(click.Command):
    """A command whose help lists its options by section, and whose options can be set in more places than its command line."""

    context_class = Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        records = [(about(option).section, record) for option in options if (record := option.get_help_record(ctx)) is not None]
        write_sections(formatter, {section: [record for place, record in records if place == section] for section in SECTIONS})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            from sbbf_tool.cli.completion import complete_value

            for parameter in self.params:
                if not isinstance(parameter.type, click.Choice):
                    parameter._custom_shell_complete = complete_value  # as if each had been made with it
            return super().parse_args(ctx, args)
        options, _, _ = self.make_parser(ctx).parse_args(list(args))
        help_option = self.get_help_option(ctx)
        if help_option is not None and options.get(str(help_option.name)) is True:
            return super().parse_args(ctx, args)
        from sbbf_tool.cli.settings import LEAF, read_settings, source_of, used_config

        try:
            read_settings(ctx, options)
            remaining_args = super().parse_args(ctx, args)
        except click.BadParameter as error:
            error.param_hint = (error.param and source_of(ctx, error.param)) or error.param_hint
            raise
        ctx.meta[LEAF] = ctx
        config = used_config(ctx)
        if config is not None:
            _report_config(config)
        return remaining_args


def _report_config(config: Config) -> None:
    from sbbf_tool.cli.render import note, warn

    if terminal().verbose:
        note(f"sbbf: settings of {config.place} in {config.path}")
    if config.exposure is not None:
        warn(f"{config.path}: settings of {config.place} are used, and {config.exposure}")


def write_sections(formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Write lists of terms and their explanations under headings, all aligned with each other; omit empty lists."""
    width = min(max((len(term) for rows in sections.values() for term, _ in rows), default=0), _MOST_CELLS)
    for section, rows in sections.items():
        if rows:
            with formatter.section(section):
                formatter.write_dl([(term.ljust(width), explanation) for term, explanation in rows], col_max=width)
