"""`--standalone` of `inspect`, `probe` and `verify`: the file is a single filter, with nothing but a header and a bitset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files
from sbbf_tool.cli.output import say
from sbbf_tool.cli.report import View, report_files

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


def inspect(files: Files, as_json: bool) -> int:
    """Show each of these filters."""
    from sbbf_tool.runner import works

    return report_files(files, works.inspect_standalone(), _InspectView(), as_json=as_json)


def probe(files: Files, type_name: str | None, values: Iterable[str | None], dialect: str | None) -> ProbeReport:
    """Query one filter for values."""
    from sbbf_tool.operations.standalone import probe_standalone

    return probe_standalone(path_of(files), type_of(type_name), values, dialect=dialect)


def verify(files: Files, type_name: str | None, values: Iterable[str], dialect: str | None, as_json: bool) -> int:
    """Verify one filter against the values that it should hold."""
    from sbbf_tool.operations.standalone import verify_standalone

    verification = verify_standalone(path_of(files), type_of(type_name), values, dialect=dialect)
    render.show_json("verify-standalone", verification) if as_json else _show_verification(verification)
    return int(not verification.is_verified)


class _InspectView(View["StandaloneReport"]):
    schema = "inspect-standalone"

    def show(self, report: StandaloneReport) -> None:
        say(f"{report.file}: {report.file_bytes:,} bytes, standalone filter, header: {report.header}")
        sizes = (render.size(report.header_bytes), render.size(report.bitset_bytes), render.size(report.blocks))
        estimates = (render.percent(report.fill_ratio), render.percent(report.estimated_fpp), render.estimate(report.estimated_ndv))
        headers = ("header", "bitset", "blocks", "fill", "est. fpp", "est. ndv", "dialect")
        render.show_table(headers, [(*sizes, *estimates, " or ".join(report.dialects))], range(6))
        for warning in report.warnings:
            say(f"warning: {warning}")

    show_line = show


def _show_verification(verification: StandaloneVerification) -> None:
    dialect = f"as {verification.dialect}: " if verification.dialect else ""
    if verification.dialect is None:
        outcome = f"the header fits {' or '.join(verification.dialects) or 'no dialect'}, and the values do not determine the dialect"
    elif verification.false_negatives:
        counts = f"{verification.false_negatives:,} of {verification.verified_values:,} values"
        outcome = f"{counts} are false negatives, such as {', '.join(verification.examples)}"
    else:
        outcome = f"all {verification.verified_values:,} values verified; estimated fpp {render.percent(verification.estimated_fpp)}"
    say(f"{verification.file}: {dialect}{outcome}")
