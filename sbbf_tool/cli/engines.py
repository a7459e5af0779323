"""`sbbf engines`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import split_names
from sbbf_tool.cli.page import SCREEN_ROWS, Page
from sbbf_tool.cli.tables import COUNT, NAME, SENTENCE, SUMMARY, WORD, Heading

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import EngineReport, EnginesReport, EngineVerdict

_CELLS = {"used": "used", "unused": "-", "harm": "HARM"}


def _count_used(engine: EngineReport) -> str:
    used = sum(verdict.verdict == "used" for verdict in engine.verdicts)
    return f"{used} of {len(engine.verdicts)}" if engine.uses_filters else "none"


_ENGINES = (
    Heading("engine", NAME, of="name"),
    Heading("tested release", WORD, 2, "version"),
    Heading("types used", WORD, of=_count_used),
    Heading(
        "harmful",
        COUNT,
        of=lambda engine: sum(verdict.is_harmful for verdict in engine.verdicts) or None,
    ),
    Heading(
        "predicates", SUMMARY, 1, lambda engine: engine.predicates or engine.default_explanation
    ),
)
_ENGINE = (
    Heading("type", NAME),
    Heading("filter", WORD),
    Heading("explanation", SENTENCE),
    Heading("evidence", WORD, 1),
)
_TYPE = (
    _ENGINE[0],
    Heading("engine", NAME),
    _ENGINE[1],
    Heading("explanation", SUMMARY),
    _ENGINE[3],
)


@click.command(cls=Command)
@click.option(
    "--type",
    "type_name",
    metavar="TYPE",
    help="Show what each engine does with types whose name contains this.",
)
@click.argument("name", nargs=-1, metavar="[ENGINE... | all]")
@output_options()
def command(type_name: str | None, name: tuple[str, ...], outputs: Outputs) -> None:
    """List which query engines use Bloom filters, for each type of column, and which of them lose
    rows or fail.

    \b
    $ sbbf engines --type decimal
    $ sbbf engines duckdb-1.4 spark-4.0

    Without a name, each row is an engine: for how many types of columns it uses filters, and for
    how many a filter harms queries. A dash means that the engine does not use filters of that type.

    ENGINE is an engine, or a system that reads through one: each type is shown for it. Several are
    shown side by side, as are releases such as duckdb-1.4: the verdicts are those on the newest
    release up to each that was run. The name all shows all engines in one table.
    """
    from sbbf_tool.verbs.engines import engines

    names = split_names(name)
    if not names or names == ("all",):
        report, show = (
            engines(type_name),
            _show_side_by_side if names else _show_type if type_name else _show_engines,
        )
    elif len(names) == 1 and not re.search(r"-\d", names[0]):
        report, show = engines(type_name, names[0]), _show_engine
    else:
        report, show = engines(type_name, mine=names), partial(_show_side_by_side, names=names)
    outputs.print("engines", report, show)


def _show_engines(page: Page, report: EnginesReport) -> None:
    page.table(_ENGINES, report.engines)
    page.say(
        "sbbf engines ENGINE and sbbf engines --type TYPE explain each, sbbf engines all shows "
        "all types in one table"
    )


def _show_type(page: Page, report: EnginesReport) -> None:
    rows = [
        (family.name, engine.name, *cells)
        for index, family in enumerate(report.families)
        for engine in report.engines
        for cells in _format_verdict(engine, engine.verdicts[index])
    ]
    is_single = len(report.families) == 1
    if is_single:
        page.say(f"{report.families[0].name}:")
    harm = _CELLS["harm"]
    page.table(
        _TYPE[is_single:],
        [row[is_single:] for row in rows],
        most_rows=SCREEN_ROWS,
        matters=lambda row: harm in row,
    )


def _show_engine(page: Page, report: EnginesReport) -> None:
    (engine,) = report.engines
    page.say(f"{engine.name} {engine.version}: {engine.predicates or engine.default_explanation}")
    for field in ("default", "length", "metrics", "caution", "source"):
        if getattr(engine, field):
            page.say(f"  {field}: {getattr(engine, field)}")
    if engine.unused_arrow_types:
        page.say(
            f"  uses no filter if ARROW:schema has the type: {', '.join(engine.unused_arrow_types)}"
        )
    if engine.uses_filters:
        verdicts = zip(report.families, engine.verdicts, strict=True)
        rows = [
            (family.name, *cells)
            for family, verdict in verdicts
            for cells in _format_verdict(engine, verdict)
        ]
        page.table(_ENGINE, rows, matters=lambda row: row[1] == _CELLS["harm"])


def _format_verdict(engine: EngineReport, verdict: EngineVerdict) -> Iterator[tuple[str, str, str]]:
    """Yield the cells of a verdict, and those of the verdict for older releases if there is one."""
    for mark, entry in ((_CELLS[verdict.verdict], verdict), ("", verdict.older_verdict)):
        if entry is not None:
            yield mark, entry.sentence.removeprefix(f"{engine.name}: "), entry.evidence


def _show_side_by_side(page: Page, report: EnginesReport, names: Sequence[str] = ()) -> None:
    """Show types and engines, of which `names` are chosen: in words, or all engines on a terminal
    in symbols, in columns of their numbers.

    Types for which no engine uses a filter, or is harmed by it, are listed below the table.
    """
    from sbbf_tool.query_engines.verdicts import is_release

    engines = [engine for engine in report.engines if names or engine.uses_filters]
    for name, engine in zip(names, engines, strict=False):
        if not is_release(name, engine):
            page.say(
                f"{name} was not run; shown is {engine.name} {engine.version}, the newest "
                "release up to it that was"
            )
    for engine in engines if names else ():
        date = next((f", run on {release.date}" for release in engine.releases[-1:]), "")
        page.say(
            f"{engine.name} {engine.version}{date}: "
            f"{engine.predicates or engine.default_explanation}"
        )
    has_symbols = page.width is not None and not names
    titles = [f"{engine.name} {engine.version}" if names else engine.id for engine in engines]
    columns = [
        Heading(str(number) if has_symbols else title, WORD, has_symbols * number)
        for number, title in enumerate(titles, 1)
    ]
    notes: dict[str, str] = {}
    rows = [
        (
            family.name,
            *(
                (_symbol if has_symbols else _format_cell)(engine.verdicts[index], notes)
                for engine in engines
            ),
        )
        for index, family in enumerate(report.families)
    ]
    unused = [row for row in rows if {*row[1:]} == {_CELLS["unused"]}]
    page.table(
        [Heading("type", NAME), *columns],
        [row for row in rows if row not in unused],
        whole=not names,
    )
    if has_symbols:
        page.say(
            f"engines: {', '.join(f'{number} {title}' for number, title in enumerate(titles, 1))}"
        )
        page.say(
            "+ uses filters of this type; - does not; ! loses rows or fails; +! or -!: does so "
            "in older releases"
        )
        page.say("sbbf engines ENGINE and --type explain each; --all shows words and sources")
    for note, number in notes.items():
        page.say(f"{number}: {note}")
    if unused:
        page.say(f"no filter is used on: {'; '.join(row[0] for row in unused)}")
    if idle := [engine.name for engine in report.engines if engine not in engines]:
        page.say(f"never use filters: {', '.join(idle)}")


def _format_cell(verdict: EngineVerdict, notes: dict[str, str]) -> str:
    """Return the verdict as a word, with the numbers of its notes, which are added."""
    harmful = [
        f"{entry.sentence} [{entry.source}]"
        for entry in (verdict, verdict.older_verdict)
        if entry is not None and entry.effect
    ]
    return " ".join(
        [
            _CELLS[verdict.verdict],
            *(notes.setdefault(note, str(len(notes) + 1)) for note in harmful),
        ]
    )


def _symbol(verdict: EngineVerdict, notes: dict[str, str]) -> str:
    has_older_effect = verdict.older_verdict is not None and verdict.older_verdict.effect
    return {"used": "+", "unused": "-", "harm": "!"}[verdict.verdict] + (
        "!" if has_older_effect else ""
    )
