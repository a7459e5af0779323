"""`sbbf size`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import COLUMNS, RATIO, SIZE, VIEW
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.tables import BYTES, COUNT, SENTENCE, WORD, Heading
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.verbs.size import SizeReport

_DIALECTS = (
    Heading("dialect", WORD),
    Heading("header", BYTES, 1, "header_bytes"),
    Heading("filter", BYTES, of="bytes"),
    Heading("rules", SENTENCE, 2),
)


@click.command(cls=Command)
@COLUMNS.option("--ndv", "Number of distinct values.", type=int, metavar="COUNT")
@COLUMNS.option("--fpp", "Target false-positive rate.  [default: 0.01]", type=RATIO, metavar="RATE")
@COLUMNS.option("--max-bytes", "Size of the bitset, such as 64KiB.", type=SIZE)
@VIEW.flag(
    "--dialect", "show_dialects", "Also print the drafts of the format, and the first formula."
)
@output_options()
def command(
    ndv: int | None,
    fpp: float | None,
    max_bytes: int | None,
    show_dialects: bool,
    outputs: Outputs,
) -> None:
    """Compute the size of a filter, its number of distinct values or its false-positive rate from
    the other two.

    \b
    $ sbbf size --ndv 1000000 --fpp 0.01
    $ sbbf size --max-bytes 64KiB

    With --ndv: the smallest size that has the rate of --fpp. With --max-bytes: how many values this
    size holds at that rate. With both: the rate. Also shown are the next smaller and the next
    larger size; with --dialect, the bytes in each draft of the format, and what the closed formula
    of the first draft gives, by which several writers still choose sizes.
    """
    from sbbf_tool.verbs.size import size_filter

    report = size_filter(ndv=ndv, fpp=fpp, max_bytes=max_bytes)
    outputs.print("size", report, partial(_show_size, show_dialects=show_dialects))


def _show_size(page: Page, report: SizeReport, show_dialects: bool) -> None:
    target = _percent(report.fpp)
    chosen = next(size for size in report.sizes if size.bitset_bytes == report.bitset_bytes)
    result = f"a bitset of {page.bytes(report.bitset_bytes)}"
    if chosen.fpp > report.fpp:
        result = (
            f"not reached; {result}, the largest that readers accept, has {_percent(chosen.fpp)}"
        )
    page.say(f"{format_count(report.ndv, 'value')} at {target}: {result}")
    columns = (
        Heading("size", WORD, of="choice"),
        Heading("bitset", BYTES, of="bitset_bytes"),
        Heading("header", BYTES, 3, "header_bytes"),
        Heading("blocks", COUNT, 2),
        Heading("fpp", WORD, of=lambda size: _percent(size.fpp)),
        Heading("bits/value", WORD, of=lambda size: f"{size.bits_per_value:,.2f}"),
        Heading(f"values at {target}", COUNT, 1, "most_values"),
    )
    page.table(columns, report.sizes)
    if show_dialects:
        _show_dialects(page, report, target)


def _show_dialects(page: Page, report: SizeReport, target: str) -> None:
    """Print the size by the formula of the first draft, and the filter in each draft."""
    formula_fpp = _percent(report.formula_fpp)
    formula = f"{report.formula_bits_per_value:,.2f}, with which the FPP is {formula_fpp}"
    page.say(
        f"{target} takes {report.bits_per_value:,.2f} bits per value; the closed formula of the "
        f"first draft gives {formula}"
    )
    if report.formula_bytes != report.bitset_bytes:
        size = page.bytes(report.formula_bytes)
        values = format_count(report.ndv, "value")
        page.say(f"writers that use this formula choose {size} for {values}")
    page.table(_DIALECTS, report.dialects, whole=True)


def _percent(fpp: float) -> str:
    """Format a rate as a percentage with four digits, however small it is."""
    return f"{fpp * 100:.4g} %"
