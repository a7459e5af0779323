"""What the engines that read the files make of filters on a column: those that the user names, or all in the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import has_interval_mark
from sbbf_tool.query_engines.terms import HARM, PLACES, USED
from sbbf_tool.query_engines.verdicts import classify_place, find_family, list_verdicts, load_table

if TYPE_CHECKING:
    from sbbf_tool.parquet.footer import Footer
    from sbbf_tool.reports.engines import EngineReport, EngineVerdict


_FEW = 2
"""A type is reported as rarely used if at most this many engines use a filter on it."""


# Nearly every engine that reads filters uses them on these types, and on none of these types is a filter harmful; a test verifies that.
_PLAIN_TYPES = frozenset(("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY STRING", "INT32 DATE"))


@lru_cache(maxsize=8)
def engines_of(names: tuple[str, ...]) -> tuple[EngineReport, ...]:
    """Return the engines, or releases such as `duckdb-1.4`, with these names; all engines without names. Raises UsageError."""
    from sbbf_tool.query_engines.releases import find_release

    reports = {name: find_release(name) for name in names}
    if len({report.id for report in reports.values()}) < len(reports):
        raise UsageError(f"the names {', '.join(names)} mean an engine twice", hint="name one release of each")
    return tuple(reports.values()) or load_table().engines


def as_engines(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of engines as a tuple; none for `all`. Raises UsageError for an unknown name; without names, reads no table."""
    if (engine_names := as_names(names, "engine")) in ((), ("all",)):
        return ()
    engines_of(engine_names)
    return engine_names


class Use(NamedTuple):
    """What the engines that matter make of filters on a column."""

    users: list[EngineVerdict]
    """Those that use a filter."""
    harm: str | None
    """The harm to one of them for which the column should have no filter; None if filters harm none, or fewer than use them."""
    dictionary_users: list[EngineVerdict]
    """Those of the users that query a dictionary that holds all values instead."""


@lru_cache(maxsize=256)
def use_of(column: Column, names: tuple[str, ...], *, arrow_type: str | None = None, has_interval_mark: bool = False) -> Use:
    """Return what the named engines make of filters on `column`; without names, all engines count, but none is known to read the files."""
    engines = {report.id: report for report in engines_of(names)}
    verdicts = list_verdicts(column, engines_of(names), arrow_type=arrow_type, has_interval_mark=has_interval_mark)
    users = [verdict for verdict in verdicts if verdict.verdict == USED]
    harms = [verdict.sentence for verdict in verdicts if verdict.verdict == HARM]
    harm = harms[0] if harms and (names or len(harms) >= len(users)) else None
    return Use(users, harm, [verdict for verdict in users if engines[verdict.engine].dictionary_first])


def use_in(footer: Footer, column: Column, names: Iterable[str]) -> Use:
    """Return the same for a column of a file."""
    return use_of(column, tuple(names), arrow_type=arrow_type(footer, column), has_interval_mark=has_interval_mark(footer, column))


def harm_in(footer: Footer, column: Column, names: Iterable[str]) -> str | None:
    """Return `Use.harm` for a column of a file."""
    return None if _is_plain(column) else use_in(footer, column, names).harm


def unused_in(footer: Footer, column: Column, names: tuple[str, ...]) -> str | None:
    """Return that none of the engines uses filters on a column of a file; None if one does, or is harmed."""
    if _is_plain(column) and not names:
        return None
    use = use_in(footer, column, names)
    return None if use.users or use.harm else _say_unused(column, names)


def _say_unused(column: Column, names: tuple[str, ...]) -> str:
    engines = [report.name for report in engines_of(names)]
    who = "no engine uses" if not names else f"{' and '.join(engines)} {'do' if len(engines) > 1 else 'does'} not use"
    return f"{who} filters on {PLACES[classify_place(column)] if column.max_repetition else column.type_name}"


def _is_plain(column: Column) -> bool:
    """Return whether the table has no warning about filters of the column, so that it need not be read."""
    return column.type_name in _PLAIN_TYPES and not column.max_repetition


def list_warnings(column: Column, names: Iterable[str] = (), *, has_interval_mark: bool = False) -> list[str]:
    """List the warnings about a filter of `column` in the named engines, or in all, the worst first; in all, none for the common types.

    Engines that lose rows or fail come first, then engines with older releases that did; a note follows if few engines use the filter.
    """
    names = tuple(names)
    if _is_plain(column) and not names:
        return []
    engines = engines_of(names)
    verdicts = list_verdicts(column, engines, has_interval_mark=has_interval_mark)
    harms = [verdict.sentence for verdict in verdicts if verdict.verdict == HARM]
    warnings = harms + [verdict.older_verdict.sentence for verdict in verdicts if verdict.older_verdict is not None]
    users = [verdict.name for verdict in verdicts if verdict.verdict == USED]
    if not users and names:
        warnings += [] if harms else [_say_unused(column, names)]
    elif len(users) <= _FEW < len(engines):
        readers = sum(report.uses_filters for report in engines)
        family = find_family(column)
        # The last family holds all types without one of their own, so its name says nothing about this column.
        name = column.type_name if family == load_table().families[-1] else family.name
        columns = PLACES[classify_place(column)] if column.max_repetition else name
        subject = f"only {users[0]} uses" if len(users) == 1 else f"{' and '.join(users)} alone use" if users else "none uses"
        warnings.append(f"of the {readers} engines that use filters, {subject} them on {columns}")
    return warnings


def engine_warnings(footer: Footer, columns: Iterable[int], names: Iterable[str]) -> Iterator[str]:
    """Yield the warnings about filters of these columns of a file."""
    for index in sorted(columns):
        column = footer.columns[index]
        for warning in list_warnings(column, names, has_interval_mark=has_interval_mark(footer, column)):
            yield f"column {column.name}: {warning}"
