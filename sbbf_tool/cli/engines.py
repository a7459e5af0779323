"""`sbbf engines`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import COLUMNS, split_names
from sbbf_tool.cli.page import SCREEN_ROWS, Page
from sbbf_tool.cli.tables import COUNT, NAME, SENTENCE, SUMMARY, WORD, Heading
from sbbf_tool.frozen import replace

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import EngineReport, EnginesReport, EngineVerdict

_CELLS = {"used": "used", "unused": "-", "harm": "HARM"}
_SYMBOLS = {"used": "+", "unused": "-", "harm": "!"}


def _count_used(engine: EngineReport) -> str:
    if not engine.uses_filters:
        return "none"
    used = sum(verdict.verdict == "used" for verdict in engine.verdicts)
    return f"{used} of {len(engine.verdicts)}"


def _describe_predicates(engine: EngineReport) -> str:
    """Return which predicates query a filter or, for an engine that uses none, why."""
    return engine.predicates or engine.default_explanation


_ENGINES = (
    Heading("engine", NAME, of="name"),
    Heading("tested release", WORD, 2, "version"),
    Heading("types used", WORD, of=_count_used),
    Heading(
        "harmful", COUNT, of=lambda engine: sum(each.is_harmful for each in engine.verdicts) or None
    ),
    Heading("predicates", SUMMARY, 1, _describe_predicates),
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
@COLUMNS.option(
    "--type",
    "type_name",
    "Show what each engine does with types whose name contains this.",
    metavar="TYPE",
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
    if names == ("all",):
        outputs.print("engines", engines(type_name), _show_all)
    elif not names:
        show = _show_type if type_name else _show_engines
        outputs.print("engines", engines(type_name), show)
    elif len(names) == 1 and not re.search(r"-\d", names[0]):
        outputs.print("engines", engines(type_name, names[0]), _show_engine)
    else:
        report = engines(type_name, mine=names)
        outputs.print("engines", report, partial(_show_chosen, names=names))


def _show_engines(page: Page, report: EnginesReport) -> None:
    page.table(_ENGINES, report.engines)
    page.say(
        "sbbf engines ENGINE and sbbf engines --type TYPE explain each, sbbf engines all shows "
        "all types in one table"
    )


def _show_type(page: Page, report: EnginesReport) -> None:
    rows: list[tuple[str, ...]] = []
    for index, family in enumerate(report.families):
        for engine in report.engines:
            verdicts = _format_verdict(engine, engine.verdicts[index])
            rows.extend((family.name, engine.name, *cells) for cells in verdicts)
    columns: Sequence[Heading] = _TYPE
    if len(report.families) == 1:
        page.say(f"{report.families[0].name}:")
        columns = _TYPE[1:]
        rows = [row[1:] for row in rows]
    harm = _CELLS["harm"]
    page.table(columns, rows, most_rows=SCREEN_ROWS, matters=lambda row: harm in row)


def _show_engine(page: Page, report: EnginesReport) -> None:
    (engine,) = report.engines
    page.say(f"{engine.name} {engine.version}: {_describe_predicates(engine)}")
    for field in ("default", "length", "metrics", "caution", "source"):
        if getattr(engine, field):
            page.say(f"  {field}: {getattr(engine, field)}")
    if engine.unused_arrow_types:
        types = ", ".join(engine.unused_arrow_types)
        page.say(f"  uses no filter if ARROW:schema has the type: {types}")
    if engine.uses_filters:
        rows: list[tuple[str, ...]] = []
        for family, verdict in zip(report.families, engine.verdicts, strict=True):
            rows.extend((family.name, *cells) for cells in _format_verdict(engine, verdict))
        page.table(_ENGINE, rows, matters=lambda row: row[1] == _CELLS["harm"])


def _format_verdict(engine: EngineReport, verdict: EngineVerdict) -> Iterator[tuple[str, str, str]]:
    """Yield the cells of a verdict, and those of the verdict for older releases if there is one."""
    for mark, entry in ((_CELLS[verdict.verdict], verdict), ("", verdict.older_verdict)):
        if entry is not None:
            yield mark, entry.sentence.removeprefix(f"{engine.name}: "), entry.evidence


def _show_chosen(page: Page, report: EnginesReport, names: Sequence[str]) -> None:
    """Show types and the engines that `names` chose, side by side, with verdicts in words."""
    from sbbf_tool.query_engines.verdicts import is_release

    for name, engine in zip(names, report.engines, strict=False):
        if not is_release(name, engine):
            page.say(
                f"{name} was not run; shown is {engine.name} {engine.version}, the newest "
                "release up to it that was"
            )
    for engine in report.engines:
        date = f", run on {engine.releases[-1].date}" if engine.releases else ""
        page.say(f"{engine.name} {engine.version}{date}: {_describe_predicates(engine)}")
    titles = [f"{engine.name} {engine.version}" for engine in report.engines]
    _show_words(page, report, titles, whole=False)


def _show_all(page: Page, report: EnginesReport) -> None:
    """Show types and all engines that use filters: on a terminal in symbols, else in words."""
    users = [engine for engine in report.engines if engine.uses_filters]
    used = replace(report, engines=tuple(users))
    if page.width is not None:
        _show_symbols(page, used)
    else:
        _show_words(page, used, [engine.id for engine in users], whole=True)
    idle = [engine.name for engine in report.engines if not engine.uses_filters]
    if idle:
        page.say(f"never use filters: {', '.join(idle)}")


def _show_words(page: Page, report: EnginesReport, titles: Sequence[str], *, whole: bool) -> None:
    """Print the verdicts as words, with numbered notes, in a column for each title of an engine."""
    notes = _Notes()
    rows = list(_list_types(report, notes.format_cell))
    columns = [Heading(title, WORD) for title in titles]
    page.table([_TYPE[0], *columns], _without_unused(rows), whole=whole)
    notes.show(page)
    _show_unused(page, rows)


def _show_symbols(page: Page, report: EnginesReport) -> None:
    """Print the verdicts as symbols, in columns of the engines' numbers."""
    rows = list(_list_types(report, _format_symbol))
    numbers = range(1, len(report.engines) + 1)
    columns = [Heading(str(number), WORD, number) for number in numbers]
    page.table([_TYPE[0], *columns], _without_unused(rows), whole=True)
    names = [f"{number} {engine.id}" for number, engine in enumerate(report.engines, 1)]
    page.say(f"engines: {', '.join(names)}")
    page.say(
        "+ uses filters of this type; - does not; ! loses rows or fails; +! or -!: does so in "
        "older releases"
    )
    page.say("sbbf engines ENGINE and --type explain each; --all shows words and sources")
    _show_unused(page, rows)


def _list_types(
    report: EnginesReport, format_verdict: Callable[[EngineVerdict], str]
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each type: its name, and the verdict of each engine."""
    for index, family in enumerate(report.families):
        yield family.name, *(format_verdict(engine.verdicts[index]) for engine in report.engines)


def _is_unused(row: Sequence[str]) -> bool:
    """Return whether no engine uses a filter on the type, or is harmed by it."""
    return set(row[1:]) == {_CELLS["unused"]}


def _without_unused(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [row for row in rows if not _is_unused(row)]


def _show_unused(page: Page, rows: Sequence[tuple[str, ...]]) -> None:
    """Print the types that the table leaves out."""
    unused = [row[0] for row in rows if _is_unused(row)]
    if unused:
        page.say(f"no filter is used on: {'; '.join(unused)}")


class _Notes:
    """The numbered notes below a table of verdicts: what is harmful, and the evidence for it."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def format_cell(self, verdict: EngineVerdict) -> str:
        """Return the verdict as a word, with the numbers of its notes, which are added."""
        words = [_CELLS[verdict.verdict]]
        for entry in (verdict, verdict.older_verdict):
            if entry is not None and entry.effect:
                note = f"{entry.sentence} [{entry.source}]"
                words.append(self._numbers.setdefault(note, str(len(self._numbers) + 1)))
        return " ".join(words)

    def show(self, page: Page) -> None:
        for note, number in self._numbers.items():
            page.say(f"{number}: {note}")


def _format_symbol(verdict: EngineVerdict) -> str:
    symbol = _SYMBOLS[verdict.verdict]
    older = verdict.older_verdict
    if older is not None and older.effect:
        return f"{symbol}!"
    return symbol
