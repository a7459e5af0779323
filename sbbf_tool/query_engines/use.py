"""What the engines that read the files make of filters on a column: those that the user names, or all in the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.query_engines.releases import find_release
from sbbf_tool.query_engines.terms import HARM, USED
from sbbf_tool.query_engines.verdicts import is_plain, list_verdicts, list_warnings, load_table

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import EngineReport, EngineVerdict


def engines_of(names: Iterable[str] = ()) -> tuple[EngineReport, ...]:
    """Return the engines, or releases such as `duckdb-1.4`, with these names; all engines without names. Raises UsageError."""
    reports = {name: find_release(name) for name in names}
    if len({report.id for report in reports.values()}) < len(reports):
        raise UsageError(f"the names {', '.join(reports)} mean an engine twice", hint="name one release of each")
    return tuple(reports.values()) or load_table().engines


def warnings_of(column: Column, names: Iterable[str], *, has_interval_mark: bool) -> list[str]:
    """List the warnings about a filter of `column` in the named engines, or in all."""
    names = tuple(names)
    return list_warnings(column, engines_of(names) if names else (), has_interval_mark=has_interval_mark)


def harm_of(column: Column, names: Iterable[str], *, has_interval_mark: bool) -> str | None:
    """Return `Use.harm`."""
    return None if is_plain(column) else use_of(column, names, has_interval_mark=has_interval_mark).harm


def ensure_engines(names: Iterable[str]) -> None:
    """Raise UsageError for a name of no engine. Without names, the table is not read."""
    if names := tuple(names):
        engines_of(names)


class Use(NamedTuple):
    """What the engines that matter make of filters on a column."""

    users: list[EngineVerdict]
    """Those that use a filter."""
    harm: str | None
    """The harm to one of them for which the column should have no filter; None if filters harm none, or fewer than use them."""
    dictionary_users: list[EngineVerdict]
    """Those of the users that query a dictionary that holds all values instead."""


def use_of(column: Column, names: Iterable[str] = (), *, arrow_type: str | None = None, has_interval_mark: bool = False) -> Use:
    """Return what the named engines make of filters on `column`; without names, all engines count, but none is known to read the files."""
    names = tuple(names)
    engines = {report.id: report for report in engines_of(names)}
    verdicts = list_verdicts(column, engines.values(), arrow_type=arrow_type, has_interval_mark=has_interval_mark)
    users = [verdict for verdict in verdicts if verdict.verdict == USED]
    harms = [verdict.sentence for verdict in verdicts if verdict.verdict == HARM]
    is_harmful = bool(harms) and (bool(names) or len(harms) >= len(users))
    return Use(users, harms[0] if is_harmful else None, [verdict for verdict in users if engines[verdict.engine].dictionary_first])
