"""`sbbf engines`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.output import say, stop_if_unread

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import EnginesReport, EngineVerdict

_CELLS = {"used": "used", "unused": "-", "harm": "HARM"}


@click.command(short_help="Show which engine uses a filter on which type.")
@click.option("--type", "type_name", metavar="TYPE", help="Only types of this name, or with it in their name, such as decimal.")
@click.option("--engine", "engine_name", metavar="NAME", help="All about one engine, or about the one that a system reads through.")
@click.option("--json", "as_json", is_flag=True, help="The table as one JSON document.")
def command(type_name: str | None, engine_name: str | None, as_json: bool) -> None:
    """Show which engine uses a Bloom filter on a column of which type, and which loses rows or fails.

    A dash: it looks at no filter of that type. Numbers lead to the notes below the table.
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
    say(f"never, on any type: {', '.join(engine.name for engine in report.engines if not engine.uses_filters)}")


def _show_engine(report: EnginesReport) -> None:
    (engine,) = report.engines
    say(f"{engine.name} {engine.version}: {engine.predicates or engine.default_explanation}")
    for field in ("default", "length", "metrics", "caution", "source"):
        if getattr(engine, field):
            say(f"  {field}: {getattr(engine, field)}")
    if engine.unused_arrow_types:
        say(f"  no filter is used where a file's ARROW:schema says {', '.join(engine.unused_arrow_types)}")
    rows = [
        (label, mark, entry.sentence.removeprefix(f"{engine.name}: "), entry.evidence)
        for family, verdict in zip(report.families, engine.verdicts, strict=True)
        for label, mark, entry in ((family.name, _CELLS[verdict.verdict], verdict), ("", "", verdict.older_verdict))
        if entry is not None
    ]
    if engine.uses_filters:
        render.show_table(("type", "filter", "why", "known by"), rows)
