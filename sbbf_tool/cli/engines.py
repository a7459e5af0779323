"""`sbbf engines`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, Run, View, output_options
from sbbf_tool.cli.output import stop_if_unread
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.tables import COUNT, NAME, SENTENCE, WORD, Heading

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import EngineReport, EnginesReport, EngineVerdict

_CELLS = {"used": "used", "unused": "-", "harm": "HARM"}
_HARM = "!"
_SYMBOLS = {"used": "+", "unused": "-", "harm": _HARM}
_ENGINES = (
    Heading("engine", NAME),
    Heading("tested release", WORD, 2),
    Heading("types used", WORD),
    Heading("harmful", COUNT),
    Heading("predicates", SENTENCE, 1),
)
_ENGINE = (Heading("type", NAME), Heading("filter", WORD), Heading("explanation", SENTENCE), Heading("evidence", WORD, 1))
_TYPE = (_ENGINE[0], Heading("engine", NAME), *_ENGINE[1:])


@click.command(cls=Command)
@click.option("--type", "type_name", metavar="TYPE", help="Show what each engine does with types whose name contains this.")
@click.option(
    "--engine", "engine_name", metavar="NAME", help="Show each type for this engine. NAME is an engine, or a system that reads through one."
)
@click.option(
    "--mine",
    "releases",
    multiple=True,
    metavar="NAMES",
    help="Show what these releases do (repeat for more). Several are separated by commas.",
)
@click.option("--matrix", "as_matrix", is_flag=True, help="Show all types and all engines in one table.")
@output_options()
def command(type_name: str | None, engine_name: str | None, releases: tuple[str, ...], as_matrix: bool, outputs: Outputs) -> None:
    """List which query engines use Bloom filters, for each type of column, and which of them lose rows or fail.

    \b
    $ sbbf engines --type decimal
    $ sbbf engines --mine duckdb-1.4,spark-4.0

    Without options, each row is an engine: for how many types of columns it uses filters, and for how many a filter harms queries. A dash
    means that the engine does not use filters of that type.

    With --mine, the verdicts are those on the named releases: on each the newest release up to it that was run.
    """
    from sbbf_tool.reports.engines import EnginesReport
    from sbbf_tool.verbs.engines import engines

    if as_matrix and engine_name is not None:
        raise click.UsageError("give one of --matrix and --engine")
    if engine_name is not None and releases:
        raise click.UsageError("give one of --engine and --mine")
    names = tuple(dict.fromkeys(name.strip() for text in releases for name in text.split(",") if name.strip()))
    if releases and not names:
        raise click.UsageError("--mine names no release, such as duckdb-1.4")
    report = engines(type_name, engine_name, mine=names)
    show = (
        partial(_show_matrix, names=names)
        if as_matrix
        else partial(_show_mine, names=names)
        if releases
        else _show_type
        if type_name and not engine_name
        else _show_engine
        if engine_name
        else _show_engines
    )
    outputs.print(Run(_EnginesView(show), EnginesReport, is_single=True), "engines", report)
    stop_if_unread()


class _EnginesView(View["EnginesReport"]):
    schema = "engines"

    def __init__(self, show: Callable[[Page, EnginesReport], None]) -> None:
        super().__init__()
        self._show = show

    def show(self, page: Page, report: EnginesReport) -> None:
        self._show(page, report)


def _show_engines(page: Page, report: EnginesReport) -> None:
    rows = []
    for engine in report.engines:
        share = f"{sum(verdict.verdict == 'used' for verdict in engine.verdicts)} of {len(engine.verdicts)}"
        num_harmful = sum(verdict.is_harmful for verdict in engine.verdicts)
        explanation = engine.predicates or engine.default_explanation
        rows.append((engine.name, engine.version, share if engine.uses_filters else "none", num_harmful or None, explanation))
    page.table(_ENGINES, rows)
    page.say("--type and --engine show the details, --matrix all types")


def _show_type(page: Page, report: EnginesReport) -> None:
    rows = [
        (family.name, engine.name, *cells)
        for index, family in enumerate(report.families)
        for engine in report.engines
        for cells in _format_verdict(engine, engine.verdicts[index])
    ]
    if len(report.families) == 1:
        page.say(f"{report.families[0].name}:")
        page.table(_TYPE[1:], [row[1:] for row in rows])
    else:
        page.table(_TYPE, rows)


def _show_engine(page: Page, report: EnginesReport) -> None:
    (engine,) = report.engines
    page.say(f"{engine.name} {engine.version}: {engine.predicates or engine.default_explanation}")
    for field in ("default", "length", "metrics", "caution", "source"):
        if getattr(engine, field):
            page.say(f"  {field}: {getattr(engine, field)}")
    if engine.unused_arrow_types:
        page.say(f"  uses no filter if ARROW:schema has the type: {', '.join(engine.unused_arrow_types)}")
    if engine.uses_filters:
        rows = [
            (family.name, *cells)
            for family, verdict in zip(report.families, engine.verdicts, strict=True)
            for cells in _format_verdict(engine, verdict)
        ]
        page.table(_ENGINE, rows, matters=lambda row: row[1] == _CELLS["harm"])


def _format_verdict(engine: EngineReport, verdict: EngineVerdict) -> Iterator[tuple[str, str, str]]:
    """Yield the cells of a verdict, and those of the verdict for older releases if there is one."""
    for mark, entry in ((_CELLS[verdict.verdict], verdict), ("", verdict.older_verdict)):
        if entry is not None:
            yield mark, entry.sentence.removeprefix(f"{engine.name}: "), entry.evidence


def _show_matrix(page: Page, report: EnginesReport, names: Sequence[str]) -> None:
    if page.width is not None:
        _show_symbols(page, report, names)
        return
    readers = [engine for engine in report.engines if engine.uses_filters]
    notes: dict[str, str] = {}
    columns = (Heading("type", NAME), *(Heading(f"{engine.id}-{engine.version}" if names else engine.id, WORD) for engine in readers))
    page.table(
        columns,
        [
            (family.name, *(_format_cell(engine.verdicts[index], notes) for engine in readers))
            for index, family in enumerate(report.families)
        ],
    )
    for note, number in notes.items():
        page.say(f"{number}: {note}")
    _say_idle(page, report)
    _say_not_run(page, report, names)


def _say_idle(page: Page, report: EnginesReport) -> None:
    """Name the engines that never use filters."""
    if idle := [engine.name for engine in report.engines if not engine.uses_filters]:
        page.say(f"never use filters: {', '.join(idle)}")


def _say_not_run(page: Page, report: EnginesReport, names: Sequence[str]) -> None:
    """Name the releases that were not run, and those whose table is shown."""
    from sbbf_tool.query_engines.releases import is_release

    for name, engine in zip(names, report.engines, strict=False):
        if not is_release(name, engine):
            page.say(f"{name} was not run; shown is {engine.name} {engine.version}, the newest release up to it that was")


def _show_mine(page: Page, report: EnginesReport, names: Sequence[str]) -> None:
    """Show releases side by side, and the types for which one of them uses a filter or is harmed by it."""
    _say_not_run(page, report, names)
    for engine in report.engines:
        date = next((f", run on {release.date}" for release in engine.releases[-1:]), "")
        page.say(f"{engine.name} {engine.version}{date}: {engine.predicates or engine.default_explanation}")
    columns = (Heading("type", NAME), *(Heading(f"{engine.name} {engine.version}", WORD) for engine in report.engines))
    notes: dict[str, str] = {}
    rows, unused = [], []
    for index, family in enumerate(report.families):
        cells = [_format_cell(engine.verdicts[index], notes) for engine in report.engines]
        if any(cell != _CELLS["unused"] for cell in cells):
            rows.append((family.name, *cells))
        else:
            unused.append(family.name)
    page.table(columns, rows)
    for note, number in notes.items():
        page.say(f"{number}: {note}")
    if unused:
        page.say(f"no filter is used on: {'; '.join(unused)}")


def _format_cell(verdict: EngineVerdict, notes: dict[str, str]) -> str:
    """Return the verdict as a word, with the numbers of its notes, which are added."""
    harmful = [f"{entry.sentence} [{entry.source}]" for entry in (verdict, verdict.older_verdict) if entry is not None and entry.effect]
    return " ".join([_CELLS[verdict.verdict], *(notes.setdefault(note, str(len(notes) + 1)) for note in harmful)])


def _show_symbols(page: Page, report: EnginesReport, names: Sequence[str]) -> None:
    """Show all types and all engines in a table of symbols; its columns are the numbers of the engines."""
    readers = [engine for engine in report.engines if engine.uses_filters]

    def format_cell(verdict: EngineVerdict) -> str:
        return _SYMBOLS[verdict.verdict] + (_HARM if verdict.older_verdict is not None and verdict.older_verdict.effect else "")

    columns = (Heading("type", NAME), *(Heading(str(number), WORD, number) for number in range(1, len(readers) + 1)))
    page.table(
        columns,
        [(family.name, *(format_cell(engine.verdicts[index]) for engine in readers)) for index, family in enumerate(report.families)],
        whole=True,
    )
    titles = [f"{engine.name} {engine.version}" if names else engine.name for engine in readers]
    page.say(f"engines: {', '.join(f'{number} {title}' for number, title in enumerate(titles, 1))}")
    page.say("+ uses filters of this type; - does not; ! loses rows or fails; +! or -!: does so in older releases")
    _say_idle(page, report)
    page.say("--engine and --type explain each; --all shows words and sources")
    _say_not_run(page, report, names)
