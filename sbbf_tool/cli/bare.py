"""`--bare` of `inspect`, `probe` and `verify`: the file is one filter, header and bitset, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files
from sbbf_tool.cli.output import say
from sbbf_tool.cli.report import View, report_files

if TYPE_CHECKING:
    from sbbf_tool.reports.bare import BareProof, BareReport
    from sbbf_tool.reports.probe import ProbeReport


def type_of(type_name: str | None) -> str:
    if type_name is None:
        raise click.UsageError("a bare filter does not say of what type its values are: give --type")
    return type_name


def path_of(files: Files) -> str:
    """Return the one file that is a filter. Raises click.UsageError where there is none, or several."""
    if files.file is None:
        raise click.UsageError("--bare is of one filter: name one file")
    return files.file


def inspect(files: Files, as_json: bool) -> int:
    """Show each of these filters."""
    from sbbf_tool.runner import works

    return report_files(files, works.inspect_bare(), _InspectView(), as_json=as_json)


def probe(files: Files, type_name: str | None, values: Iterable[str | None], dialect: str | None) -> ProbeReport:
    """Look values up in one filter."""
    from sbbf_tool.operations.standalone import probe_bare

    return probe_bare(path_of(files), type_of(type_name), values, dialect=dialect)


def verify(files: Files, type_name: str | None, values: Iterable[str], dialect: str | None, as_json: bool) -> int:
    """Verify one filter against the values that it should hold."""
    from sbbf_tool.operations.standalone import verify_bare

    proof = verify_bare(path_of(files), type_of(type_name), values, dialect=dialect)
    render.show_json("verify-bare", proof) if as_json else _show_proof(proof)
    return int(not proof.is_proven)


class _InspectView(View["BareReport"]):
    schema = "inspect-bare"

    def show(self, report: BareReport) -> None:
        say(f"{report.file}: {report.file_bytes:,} bytes, a bare filter, header: {report.header}")
        sizes = (render.size(report.header_bytes), render.size(report.bitset_bytes), render.size(report.blocks))
        estimates = (render.percent(report.fill_ratio), render.percent(report.estimated_fpp), render.estimate(report.estimated_ndv))
        headers = ("header", "bitset", "blocks", "fill", "est. fpp", "est. ndv", "dialect")
        render.show_table(headers, [(*sizes, *estimates, " or ".join(report.dialects))], range(6))
        for oddity in report.oddities:
            say(f"odd: {oddity}")

    show_line = show


def _show_proof(proof: BareProof) -> None:
    if proof.dialect is None:
        told = f"its header fits {' or '.join(proof.dialects) or 'no dialect'}, and the values do not tell one of these"
    elif proof.missed:
        told = f"{proof.missed:,} of {proof.values:,} values are called absent, such as {', '.join(proof.examples)}"
    else:
        told = f"every one of {proof.values:,} values found, {render.percent(proof.estimated_fpp)} of absent ones pass"
    say(f"{proof.file}: {f'as {proof.dialect}: ' if proof.dialect else ''}{told}")
