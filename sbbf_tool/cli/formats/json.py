"""For programs: one JSON document a file, one line each, of the report as it is."""

from __future__ import annotations

from sbbf_tool.cli import render
from sbbf_tool.reports.findings import CheckReport


class Format:
    """File by file."""

    def add(self, report: CheckReport) -> None:
        render.show_json(report)

    def end(self) -> None:
        pass
