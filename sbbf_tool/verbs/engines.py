"""`engines`: list which query engines use Bloom filters, and on which columns; see
`query_engines.verdicts`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.query_engines.verdicts import (
    find_engine,
    find_release,
    is_match,
    load_table,
    suggest_names,
)

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import ColumnFamily, EnginesReport


def engines(
    type: str | None = None, engine: str | None = None, *, mine: str | Iterable[str] = ()
) -> EnginesReport:
    """Return the table of query engines, or only the families of columns of a `type` and
    one `engine`.

    A type is a name that `inspect` prints, or a part of it: `INT64 TIMESTAMP(MILLIS,UTC)`,
    `timestamp`, `float16`. `mine` are releases of engines (`duckdb-1.4`, `spark-4.0`); the verdicts
    are then those on the newest release up to each that was run. Raises UsageError, with similar
    names, for an unknown name.
    """
    report = load_table()
    families = tuple(_find_families(type))
    indexes = list(map(report.families.index, families))
    releases = as_names(mine, "release")
    if releases and engine is not None:
        raise UsageError("give either the name of an engine or releases")
    if releases:
        reports = tuple(map(find_release, releases))
    elif engine is not None:
        reports = (find_engine(engine),)
    else:
        reports = report.engines
    chosen = []
    for report_of_engine in reports:
        verdicts = tuple(map(report_of_engine.verdicts.__getitem__, indexes))
        chosen.append(replace(report_of_engine, verdicts=verdicts))
    return replace(report, families=families, engines=tuple(chosen))


def _find_families(name: str | None) -> list[ColumnFamily]:
    families = load_table().families
    if name is None:
        return list(families)
    text = " ".join(name.split()).casefold()
    matches = list(_match_families(families, text)) if text else []
    if not matches:
        names: set[str] = set()
        for family in families:
            names.update((family.name.casefold(), family.id.casefold()))
        hint = suggest_names(name, names, [family.name for family in families])
        raise UsageError(f"unknown type {name!r}", hint=hint)
    return matches


def _match_families(families: Sequence[ColumnFamily], text: str) -> Iterable[ColumnFamily]:
    """Return the families that have this name, in lower case; otherwise those with a part of it."""
    exact = []
    partial = []
    for family in families:
        names = list(map(str.casefold, (family.id, family.name, *family.types)))
        if text in names:
            exact.append(family)
        if any(text in name for name in names):
            partial.append(family)
    if exact or partial:
        return exact or partial
    # This may be a type with parameters: INT32 DECIMAL(9,2) or DECIMAL(9,2). The last family's
    # types would match any name.

    def has_parameters(family: ColumnFamily) -> bool:
        return any(_is_type(text, kind.casefold()) for kind in family.types)

    return filter(has_parameters, families[:-1])


def _is_type(text: str, pattern: str) -> bool:
    logical = pattern.partition(" ")[2]
    return is_match(pattern, text) or (logical not in ("", "*") and is_match(logical, text))
