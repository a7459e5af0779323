"""`sbbf conformance make`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import RULES
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.extensions.conformance.reports import MadeCorpus


@click.command(cls=Command)
@click.argument("folder", metavar="DIR")
@RULES.option(
    "--select",
    "only",
    "Write the files whose names match, such as 'types/*' (repeat for more).",
    metavar="PATTERN",
    multiple=True,
)
@output_options()
def command(folder: str, only: tuple[str, ...], outputs: Outputs) -> None:
    """Write the corpus to DIR, with manifest.json: files, questions and answers. DIR is empty or
    missing, or has a corpus.

    \b
    $ sbbf conformance make corpus
    $ sbbf conformance make corpus --select 'types/*'

    The files of one version of the corpus have the same bytes on every machine.
    """
    from sbbf_tool.extensions.conformance.corpus_writer import make_corpus

    with show_progress("writing the corpus"):
        report = make_corpus(folder, only=only)
    outputs.print("conformance-make", report, _show_report)


def _show_report(page: Page, report: MadeCorpus) -> None:
    inputs = f"{format_count(report.inputs, 'input')} for writers"
    page.say(
        f"{report.folder}: corpus of version {report.corpus_version}, "
        f"{format_count(report.files, 'file')}, {inputs}"
    )
    page.say(f"{format_count(report.questions, 'question')}, {page.bytes(report.bytes)}")
    page.say(f"sha256 of manifest.json: {report.sha256}")
