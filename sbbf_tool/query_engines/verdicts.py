"""How each engine uses a filter on a column: the verdict in the table, refined by facts about the column and its filter.

The facts are in `engines.toml` beside this module; comments at its top document their format. Each fact has the release for which it is
true, its source, and whether it was verified by running the engine. Facts become outdated; a verdict is advice, not a guarantee.

The file is read at the first look-up. The common types need no look-up, because there are no warnings about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.columns import Column
from sbbf_tool.query_engines.terms import EFFECTS, HARM, PLACES, UNUSED, USED

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import ColumnFamily, EngineReport, EnginesReport, EngineVerdict


def find_engine(name: str) -> EngineReport:
    """Find the engine by its name in upper or lower case, or by the name of a system that reads through it. Raises UsageError."""
    reports = {spelling.casefold(): report for report in load_table().engines for spelling in (*report.aliases, report.name, report.id)}
    match = reports.get(name.casefold())
    if match is None:
        raise UsageError(f"unknown engine {name!r}", hint=suggest_names(name, reports, (report.id for report in load_table().engines)))
    return match


@lru_cache(maxsize=256)
def list_verdicts(
    column: Column,
    engines: tuple[EngineReport, ...] = (),
    *,
    arrow_type: str | None = None,
    bitset_bytes: int | None = None,
    has_length: bool = True,
    has_interval_mark: bool = False,
) -> tuple[EngineVerdict, ...]:
    """List one verdict on a filter of `column` per engine, or per engine of the table.

    Optional facts refine the verdicts: the column's type in the file's ARROW:schema (`arrow_schema.arrow_type`), the size of the filter's
    bitset, whether the footer states the length of the filter, and whether it marks filters of INTERVAL as DuckDB does.
    """
    index = load_table().families.index(find_family(column))
    place = classify_place(column)
    refined_verdicts = []
    for report in engines or load_table().engines:
        verdict = report.verdicts[index]
        if has_interval_mark and (report.id, verdict.family) == ("duckdb", "interval"):
            verdict = replace(verdict, verdict=USED, explanation="Used, because the file has the key duckdb.interval_bloom_filter.")
        if report.uses_filters and verdict.verdict != UNUSED:
            verdict = _refine_verdict(report, verdict, place, arrow_type, bitset_bytes, has_length)
        refined_verdicts.append(verdict)
    return tuple(refined_verdicts)


def find_family(column: Column) -> ColumnFamily:
    """Find the first family to which the column belongs."""
    digits = column.logical.precision if column.logical is not None else 0
    return _match_family(column.type_name, digits, column.type_length > _count_needed_bytes(digits))


@lru_cache(maxsize=1024)
def _match_family(type_name: str, digits: int, padded: bool) -> ColumnFamily:
    def fits(family: ColumnFamily) -> bool:
        return (
            any(is_match(pattern, type_name) for pattern in family.types)
            and (family.precision is None or family.precision[0] <= digits <= family.precision[1])
            and family.padded in (None, padded)
        )

    from sbbf_tool.query_engines.table import read_families

    return next(filter(fits, read_families()))


def is_match(pattern: str, type_name: str) -> bool:
    """Return whether a pattern matches a type: its physical part the physical type, and its logical part the logical type.

    `INT64` does not match `INT64 DECIMAL(9,2)`, and `* *` matches any type with a logical part.
    """
    from fnmatch import fnmatchcase

    return all(fnmatchcase(name, expected) for expected, name in zip(pattern.partition(" "), type_name.partition(" "), strict=True))


def _count_needed_bytes(digits: int) -> int:
    """Return the number of bytes that hold any two's complement number with this many decimal digits."""
    largest: int = 10**digits - 1
    return largest.bit_length() // 8 + 1


def classify_place(column: Column) -> str:
    if column.max_repetition:
        return "map" if column.max_repetition == 1 and column.path[-2:] == ("key_value", "value") else "list"
    return "struct" if column.nested else "top"


def _refine_verdict(
    report: EngineReport,
    verdict: EngineVerdict,
    place: str,
    arrow_type: str | None,
    bitset_bytes: int | None,
    has_length: bool,
) -> EngineVerdict:
    """Refine a verdict: the facts may show that the engine does not use the filter, or that a filter of this size is harmful."""
    if place not in report.places:
        explanation = f"Comparisons of {PLACES[place]} do not reach its filters."
    elif arrow_type in report.unused_arrow_types:
        explanation = f"Its filter does not support {arrow_type}, the type in the file's ARROW:schema."
    elif report.needs_length and not has_length:
        explanation = "It ignores filters without bloom_filter_length."
    elif bitset_bytes is not None and (limits := _list_violated_limits(report, bitset_bytes)):
        explanation = f"it accepts only bitsets {' and '.join(limits)}, and this one has {bitset_bytes:,} bytes"
        if report.bad_size in EFFECTS:
            harm = replace(verdict, verdict=HARM, explanation=explanation, source=report.source, evidence=report.evidence)
            return replace(harm, effect=report.bad_size, fix="rebuild the filter with another size")
        explanation = f"Ignored: {explanation}."
    else:
        return verdict
    refined = replace(verdict, verdict=UNUSED, explanation=explanation, source=report.source, evidence=report.evidence)
    return replace(refined, effect=None, fix=None, since=None, older_verdict=None)


def _list_violated_limits(report: EngineReport, bitset_bytes: int) -> list[str]:
    limits = []
    if report.min_bytes is not None and bitset_bytes < report.min_bytes:
        limits.append(f"of at least {report.min_bytes:,} bytes")
    if report.max_bytes is not None and bitset_bytes > report.max_bytes:
        limits.append(f"of at most {report.max_bytes:,} bytes")
    if report.power_of_two and bitset_bytes & (bitset_bytes - 1):
        limits.append("whose size is a power of two")
    if report.whole_blocks and bitset_bytes % BLOCK_BYTES:
        limits.append(f"of whole {BLOCK_BYTES}-byte blocks")
    return limits


def load_table() -> EnginesReport:
    # This is imported here because most calls need no table, and reading the table imports tomllib.
    from sbbf_tool.query_engines.table import read_table

    return read_table()


def suggest_names(name: str, spellings: Iterable[str], all_names: Iterable[str]) -> str:
    """Return the hint for an unknown name: the `spellings` that are similar to it, or all names if none is similar."""
    from difflib import get_close_matches

    matches = get_close_matches(name.casefold(), list(spellings), n=3)
    if matches:
        return f"did you mean {' or '.join(matches)}?"
    names = list(all_names)
    return f"known names: {('; ' if any(',' in name for name in names) else ', ').join(names)}"
