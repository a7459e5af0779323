"""`sbbf engines`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.output import say, stop_if_unread

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import EnginesReport, EngineVerdict

_CELLS = {"used": "used", "unused": "-", "harm": "HARM"}


@click.command(cls=Command, short_help="List which query engines use filters, for each type.")
@click.option("--type", "type_name", metavar="TYPE", help="Show only types whose name contains this, such as decimal.")
@click.option(
    "--engine", "engine_name", metavar="NAME", help="Show details of this engine; NAME is an engine, or a system that reads through one."
)
@click.option("--json", "as_json", is_flag=True, help="Print the table as one JSON document.")
def command(type_name: str | None, engine_name: str | None, as_json: bool) -> None:
    """List which query engines use Bloom filters, for each type of column, and which of them lose rows or fail.

    A dash means that the engine does not use filters of that type. Numbers refer to the notes below the table.
    """
    from sbbf_tool.operations.engines import engines

    report = engines(type_name, engine_name)
    if as_json:
        render.show_json("engines", report)
    else:
        _show_table(report) if engine_name is None else _show_engine(report)
    stop_if_unread()


def _show_table(report: EnginesReport) -> None:
    readers = [engine for engine in report.engines if engine.uses_filters]
    notes: dict[str, str] = {}

    def format_cell(verdict: EngineVerdict) -> str:
        harmful = [f"{entry.sentence} [{entry.source}]" for entry in (verdict, verdict.older_verdict) if entry is not None and entry.effect]
        return " ".join([_CELLS[verdict.verdict], *(notes.setdefault(note, str(len(notes) + 1)) for note in harmful)])

    rows = [(family.name, *(format_cell(engine.verdicts[index]) for engine in readers)) for index, family in enumerate(report.families)]
    render.show_table(("type", *(engine.id for engine in readers)), rows)
    for note, number in notes.items():
        say(f"{number}: {note}")
    say(f"never use filters: {', '.join(engine.name for engine in report.engines if not engine.uses_filters)}")


def _show_engine(report: EnginesReport) -> None:
    (engine,) = report.engines
    say(f"{engine.name} {engine.version}: {engine.predicates or engine.default_explanation}")
    for field in ("default", "length", "metrics", "caution", "source"):
        if getattr(engine, field):
            say(f"  {field}: {getattr(engine, field)}")
    if engine.unused_arrow_types:
        say(f"  uses no filter if ARROW:schema has the type: {', '.join(engine.unused_arrow_types)}")
    rows = [
        (label, mark, entry.sentence.removeprefix(f"{engine.name}: "), entry.evidence)
        for family, verdict in zip(report.families, engine.verdicts, strict=True)
        for label, mark, entry in ((family.name, _CELLS[verdict.verdict], verdict), ("", "", verdict.older_verdict))
        if entry is not None
    ]
    if engine.uses_filters:
        render.show_table(("type", "filter", "explanation", "evidence"), rows)
