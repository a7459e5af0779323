"""The class of every command: a help of one screen and a full one, and settings from variables and from the configuration file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.options import EXPLANATIONS, SECTIONS, SETTINGS, SHARED, about, changes_files, name_of
from sbbf_tool.cli.output import limit_complaints, stop_if_unread
from sbbf_tool.cli.terminal import terminal

if TYPE_CHECKING:
    from sbbf_tool.cli.settings import Config

BRIEF = "sbbf.brief"
"""In the `meta` of a context, whether its help is to fit one screen, as with -h: the first sentence of what is not shared."""
_SENTENCE = r"(?<=\.) +(?=[A-Z-])"
_MOST_CELLS = 24
"""Cells of a line for an option; the explanation of a longer one begins on the next line."""


class Command(click.Command):
    """A command whose help lists its options by section, and whose options can be set in more places than its command line.

    The first paragraph of its docstring says what it does, and the second has two examples, each a line that begins with `$`.
    """

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show this (-h), or all options (--help)."
        return option

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_purpose(self, ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        explanations: dict[str, str] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                section, name = about(option).section, name_of(option)
                explanations[section] = EXPLANATIONS.get(name) or explanations.get(section, "")
                sections[section].append(record)
        if ctx.meta.get(BRIEF):
            own = [(term, re.split(_SENTENCE, text)[0]) for name in sections if name not in SHARED for term, text in sections[name]]
            sections = {"Options": [*own, sections[SETTINGS][-1]]}
        write_sections(formatter, sections, explanations)

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
                    parameter._custom_shell_complete = complete_value  # as if each had been made with it
            return super().parse_args(ctx, args)
        try:
            options, _, order = self.make_parser(ctx).parse_args(list(args))
            for option in order:
                if isinstance(option, click.Option) and not (option.multiple or option.is_flag) and order.count(option) > 1:
                    raise click.UsageError(f"{name_of(option)} is given twice, and takes one value")
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


def write_purpose(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write what a command does and its examples; in a full help, also how."""
    for paragraph in cleandoc(command.help or "").split("\n\n")[: 2 if ctx.meta.get(BRIEF) else None]:
        lines = paragraph.splitlines()[1:] if paragraph.startswith("\b") else _wrap(paragraph, formatter.width - 2)
        formatter.write("".join(("\n", *(f"  {line}\n" for line in lines))))


def write_sections(
    formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]], explanations: Mapping[str, str] | None = None
) -> None:
    """Write lists of terms and their explanations under headings, all aligned with each other; omit empty lists."""
    width = min(max((len(term) for rows in sections.values() for term, _ in rows), default=0), _MOST_CELLS)
    for section, rows in sections.items():
        if rows:
            explanation = (explanations or {}).get(section, "")
            formatter.write("".join((f"\n{section}:\n", *(f"  {line}\n" for line in _wrap(explanation, formatter.width - 2)))))
            for term, text in rows:
                lines = _wrap(text, formatter.width - width - 4) or [""]
                start = [f"  {term}\n"] if len(term) > width else [f"  {term:<{width}}  {lines.pop(0)}\n"]
                formatter.write("".join((*start, *(f"{'':{width + 4}}{line}\n" for line in lines))))


def _wrap(text: str, width: int) -> list[str]:
    """Return lines that end at spaces, so that options and values stay whole: click would also break them at hyphens."""
    from textwrap import wrap  # which compiles patterns

    return wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)
