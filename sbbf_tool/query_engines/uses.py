"""What the engines that matter make of filters on a column: which use them, which are harmed, and
the warnings that follow.

The common types need no look-up in the table of engines, because there are no warnings about them.
The engines that count are those that the user names, or all in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.numbers import format_columns
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import has_interval_mark
from sbbf_tool.query_engines.terms import HARM, USED
from sbbf_tool.query_engines.verdicts import (
    engines_of,
    find_family,
    list_verdicts,
    load_table,
    name_place_or,
)
from sbbf_tool.reports.engines import EngineVerdict

if TYPE_CHECKING:
    from sbbf_tool.parquet.footer import Footer

_FEW = 2
"""A type is reported as rarely used if at most this many engines use a filter on it."""


# Nearly every engine that reads filters uses them on these types, and on none of these types is a
# filter harmful; a test verifies that.
_PLAIN_TYPES = frozenset(("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY STRING", "INT32 DATE"))


class Use(NamedTuple):
    """What the engines that matter make of filters on a column."""

    users: list[EngineVerdict]
    """Those that use a filter."""
    harm: str | None
    """The harm to one of them for which the column should have no filter; None if filters harm
    none, or fewer than use them."""
    dictionary_users: list[EngineVerdict]
    """Those of the users that query a dictionary that holds all values instead."""


@lru_cache(maxsize=256)
def use_of(
    column: Column,
    names: tuple[str, ...],
    *,
    arrow_type: str | None,
    has_interval_mark: bool = False,
) -> Use:
    """Return what the named engines make of filters on `column`; without names, all engines count,
    but none is known to read the files."""
    engines = engines_of(names)
    verdicts = list_verdicts(
        column, engines, arrow_type=arrow_type, has_interval_mark=has_interval_mark
    )
    users = []
    dictionary_users = []
    harms = []
    for report, verdict in zip(engines, verdicts, strict=True):
        if verdict.verdict == HARM:
            harms.append(verdict.sentence)
        elif verdict.verdict == USED:
            users.append(verdict)
            if report.dictionary_first:
                dictionary_users.append(verdict)
    harm = None
    if harms and (names or len(harms) >= len(users)):
        harm = harms[0]
    return Use(users, harm, dictionary_users)


def use_in(footer: Footer, column: Column, names: Iterable[str]) -> Use:
    """Return the same for a column of a file."""
    return use_of(
        column,
        tuple(names),
        arrow_type=arrow_type(footer, column),
        has_interval_mark=has_interval_mark(footer, column),
    )


def depends_on_arrow(footer: Footer, column: Column, names: tuple[str, ...]) -> bool:
    """Return whether engines make more or less of filters on a column by its type in the file's
    ARROW:schema."""
    arrow_types: set[str | None] = {None}
    for report in engines_of(names):
        arrow_types.update(report.unused_arrow_types)
    mark = has_interval_mark(footer, column)
    answers = set()
    for each in arrow_types:
        use = use_of(column, names, arrow_type=each, has_interval_mark=mark)
        answers.add((bool(use.users), use.harm, use.users == use.dictionary_users))
    return len(answers) > 1


def harm_in(footer: Footer, column: Column, names: Iterable[str]) -> str | None:
    """Return `Use.harm` for a column of a file."""
    return None if _is_plain(column) else use_in(footer, column, names).harm


def unused_in(footer: Footer, column: Column, names: tuple[str, ...]) -> str | None:
    """Return that none of the engines uses filters on a column of a file; None if one does, or is
    harmed."""
    if _is_plain(column) and not names:
        return None
    use = use_in(footer, column, names)
    return None if use.users or use.harm else _say_unused(column, names)


def _say_unused(column: Column, names: tuple[str, ...]) -> str:
    columns = name_place_or(column.type_name, column)
    if not names:
        return f"no engine uses filters on {columns}"
    engine_names = [report.name for report in engines_of(names)]
    verb = "do" if len(engine_names) > 1 else "does"
    return f"{' and '.join(engine_names)} {verb} not use filters on {columns}"


def _is_plain(column: Column) -> bool:
    """Return whether the table has no warning about filters of the column, so that it need not be
    read."""
    return column.type_name in _PLAIN_TYPES and not column.max_repetition


def list_warnings(
    column: Column, names: Iterable[str] = (), *, has_interval_mark: bool = False
) -> list[str]:
    """List the warnings about a filter of `column` in the named engines, or in all, the worst
    first; in all, none for the common types.

    Engines that lose rows or fail come first, then engines with older releases that did; a note
    follows if few engines use the filter.
    """
    names = tuple(names)
    if _is_plain(column) and not names:
        return []
    engines = engines_of(names)
    verdicts = list_verdicts(column, engines, has_interval_mark=has_interval_mark)
    harms = []
    older_harms = []
    users = []
    for verdict in verdicts:
        if verdict.verdict == HARM:
            harms.append(verdict.sentence)
        if verdict.older_verdict is not None:
            older_harms.append(verdict.older_verdict.sentence)
        if verdict.verdict == USED:
            users.append(verdict.name)
    notes = []
    if not users and names:
        if not harms:
            notes.append(_say_unused(column, names))
    elif len(users) <= _FEW < len(engines):
        readers = sum(report.uses_filters for report in engines)
        notes.append(_say_few_use(column, users, readers))
    return [*harms, *older_harms, *notes]


def _say_few_use(column: Column, users: Sequence[str], readers: int) -> str:
    """Say that of the `readers`, the engines that use filters, only these use them on a column."""
    if not users:
        subject = "none uses"
    elif len(users) == 1:
        subject = f"only {users[0]} uses"
    else:
        subject = f"{' and '.join(users)} alone use"
    family = find_family(column)
    # The last family holds all types without one of their own, so its name says nothing about this
    # column.
    name = family.name
    if family == load_table().families[-1]:
        name = column.type_name
    columns = name_place_or(name, column)
    return f"of the {readers} engines that use filters, {subject} them on {columns}"


def engine_warnings(footer: Footer, columns: Iterable[int], names: Iterable[str]) -> Iterator[str]:
    """Yield the warnings about filters of these columns of a file, each once."""
    columns_of: dict[str, list[str]] = {}
    for index in sorted(columns):
        column = footer.columns[index]
        for warning in list_warnings_in(footer, column, names):
            columns_of.setdefault(warning, []).append(column.name)
    for warning, names_of_columns in columns_of.items():
        yield f"{format_columns(names_of_columns)}: {warning}"


def list_warnings_in(footer: Footer, column: Column, names: Iterable[str]) -> list[str]:
    """List the warnings about a filter of a column of a file."""
    mark = has_interval_mark(footer, column)
    return list_warnings(column, names, has_interval_mark=mark)
