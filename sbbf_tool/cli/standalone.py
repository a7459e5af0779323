"""`--standalone` of `inspect`, `probe` and `verify`: the file is a single filter, with nothing but a header and a bitset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.files import Files
from sbbf_tool.cli.formats import Outputs, Run
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import View, report_files
from sbbf_tool.cli.tables import BYTES, COUNT, ESTIMATE, RATE, SENTENCE, Column
from sbbf_tool.numbers import format_count, format_percent

if TYPE_CHECKING:
    from sbbf_tool.reports.probe import ProbeReport
    from sbbf_tool.reports.standalone import StandaloneReport, StandaloneVerification


def type_of(type_name: str | None) -> str:
    if type_name is None:
        raise click.UsageError("a standalone filter does not state the type of its values: give --type")
    return type_name


def path_of(files: Files) -> str:
    """Return the one file that is a filter. Raises click.UsageError if there are no files, or several."""
    if files.file is None:
        raise click.UsageError("--standalone takes one file, which is a filter")
    return files.file


def inspect(files: Files, outputs: Outputs) -> int:
    """Show each of these filters."""
    from sbbf_tool.runner import works

    return report_files(files, works.inspect_standalone(), _InspectView(), outputs)


def probe(files: Files, type_name: str | None, values: Iterable[str | None], dialect: str | None) -> ProbeReport:
    """Query one filter for values."""
    from sbbf_tool.operations.standalone import probe_standalone

    return probe_standalone(path_of(files), type_of(type_name), values, dialect=dialect)


def verify(files: Files, type_name: str | None, values: Iterable[str], dialect: str | None, outputs: Outputs) -> int:
    """Verify one filter against the values that it should hold."""
    from sbbf_tool.operations.standalone import verify_standalone
    from sbbf_tool.reports.standalone import StandaloneVerification

    verification = verify_standalone(path_of(files), type_of(type_name), values, dialect=dialect)
    view = _VerificationView()
    outputs.print(Run(view, StandaloneVerification, is_single=True), view.schema, verification)
    return int(not verification.is_verified)


_COLUMNS = (
    Column("header", BYTES, 4),
    Column("bitset", BYTES),
    Column("blocks", COUNT, 3),
    Column("fill", RATE),
    Column("fpp", RATE),
    Column("ndv", ESTIMATE, 1),
    Column("dialect", SENTENCE, 2),
)


class _InspectView(View["StandaloneReport"]):
    schema = "inspect-standalone"

    def show(self, page: Page, report: StandaloneReport) -> None:
        page.say(f"{report.file}: {page.bytes(report.file_bytes)}, standalone filter, header: {report.header}")
        estimates = (report.fill_ratio, report.estimated_fpp, report.estimated_ndv)
        page.table(_COLUMNS, [(report.header_bytes, report.bitset_bytes, report.blocks, *estimates, " or ".join(report.dialects))])
        for warning in report.warnings:
            page.say(f"warning: {warning}")

    show_line = show


class _VerificationView(View["StandaloneVerification"]):
    schema = "verify-standalone"

    def show(self, page: Page, report: StandaloneVerification) -> None:
        dialect = f"as {report.dialect}: " if report.dialect else ""
        if report.dialect is None:
            outcome = f"the header fits {' or '.join(report.dialects) or 'no dialect'}, and the values do not determine the dialect"
        elif report.false_negatives:
            counts = f"{report.false_negatives:,} of {format_count(report.verified_values, 'value')}"
            outcome = f"{counts} are false negatives, such as {', '.join(report.examples)}"
        else:
            outcome = f"all {format_count(report.verified_values, 'value')} verified; estimated fpp {format_percent(report.estimated_fpp)}"
        page.say(f"{report.file}: {dialect}{outcome}")
