"""The class of every command: its help has sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from sbbf_tool.cli.options import SECTIONS, about

_MOST_CELLS = 24
"""Cells of a line for an option; the explanation of a longer one begins on the next line."""


class Command(click.Command):
    """A command whose help lists its options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        records = [(about(option).section, record) for option in options if (record := option.get_help_record(ctx)) is not None]
        write_sections(formatter, {section: [record for place, record in records if place == section] for section in SECTIONS})


def write_sections(formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Write lists of terms and their explanations under headings, all aligned with each other; omit empty lists."""
    width = min(max((len(term) for rows in sections.values() for term, _ in rows), default=0), _MOST_CELLS)
    for section, rows in sections.items():
        if rows:
            with formatter.section(section):
                formatter.write_dl([(term.ljust(width), explanation) for term, explanation in rows], col_max=width)
