"""The use that each engine makes of a filter on a column: the table's verdict, refined by what is known of the column and its filter.

The facts are in `engines.toml`, beside this module, whose head states their form: each with the release for which it is true, where it
is documented, and whether it was verified by running the engine. They become outdated; a verdict is advice, not a guarantee.

The file is read at the first look-up. Columns of the plainest types need none: there is nothing to report about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.query_engines.terms import EFFECTS, HARM, PLACES, UNUSED, USED

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import ColumnFamily, EngineReport, EnginesReport, EngineVerdict

_FEW = 2
"""The most engines that use a filter on a type for which there is a warning."""


# Nearly every engine that reads filters uses one on these, and none is harmed by it: a test holds the table to it.
_PLAIN_TYPES = frozenset(
    ("INT32", "INT32 INT(32,signed)", "INT64", "INT64 INT(64,signed)", "FLOAT", "DOUBLE", "BYTE_ARRAY STRING", "INT32 DATE")
)


def engine(name: str) -> EngineReport:
    """Return the engine of this name, whatever its case, or the one that the system of this name reads through. Raises UsageError."""
    known = {spelling.casefold(): one for one in table().engines for spelling in (*one.aliases, one.name, one.id)}
    found = known.get(name.casefold())
    if found is None:
        raise UsageError(f"no engine {name!r}", hint=near_names(name, known, (one.id for one in table().engines)))
    return found


def verdicts_for(
    column: Column,
    *,
    arrow_type: str | None = None,
    bitset_bytes: int | None = None,
    has_length: bool = True,
) -> tuple[EngineVerdict, ...]:
    """Return one verdict of each engine on a filter of `column`, in the table's order.

    Knowledge about column and filter refines them: the column's type in the file's ARROW:schema (`arrow_schema.arrow_type`), the size
    of the filter's bitset, and whether the footer states its length.
    """
    at = table().families.index(family_of(column))
    place = _place(column)
    found = []
    for one in table().engines:
        verdict = one.verdicts[at]
        if one.uses_filters and verdict.verdict != UNUSED:
            verdict = _sharpen(one, verdict, place, arrow_type, bitset_bytes, has_length)
        found.append(verdict)
    return tuple(found)


def warnings_for(column: Column) -> list[str]:
    """Return what to know before relying on a filter of `column`, worst first; nothing for the common types.

    Engines that lose rows or fail come first, then those whose older releases did, then a note where hardly any engine uses the filter.
    """
    if column.type_name in _PLAIN_TYPES and not column.max_repetition:
        return []
    verdicts = verdicts_for(column)
    said = [verdict.sentence for verdict in verdicts if verdict.verdict == HARM]
    said += [verdict.older_verdict.sentence for verdict in verdicts if verdict.older_verdict is not None]
    users = [verdict.name for verdict in verdicts if verdict.verdict == USED]
    if len(users) <= _FEW:
        readers = sum(one.uses_filters for one in table().engines)
        what = PLACES[_place(column)] if column.max_repetition else family_of(column).name
        who = f"only {' and '.join(users)} use{'s' if len(users) == 1 else ''}" if users else "none uses"
        said.append(f"of {readers} engines that use filters {who} one on {what}")
    return said


def family_of(column: Column) -> ColumnFamily:
    """Return the first family that fits the column."""
    digits = column.logical.precision if column.logical is not None else 0
    return _family(column.type_name, digits, column.type_length > _bytes_needed(digits))


@lru_cache(maxsize=1024)
def _family(type_name: str, digits: int, padded: bool) -> ColumnFamily:
    def fits(family: ColumnFamily) -> bool:
        return (
            any(is_named(pattern, type_name) for pattern in family.types)
            and (family.precision is None or family.precision[0] <= digits <= family.precision[1])
            and family.padded in (None, padded)
        )

    return next(filter(fits, table().families))


def is_named(pattern: str, type_name: str) -> bool:
    """Return whether a pattern fits a type, physical by physical and logical by logical.

    `INT64` is not `INT64 DECIMAL(9,2)`, and `* *` is any type that has both.
    """
    from fnmatch import fnmatchcase

    return all(fnmatchcase(name, wanted) for wanted, name in zip(pattern.partition(" "), type_name.partition(" "), strict=True))


def _bytes_needed(digits: int) -> int:
    """Return the bytes of the largest two's complement number of this many decimal digits."""
    largest: int = 10**digits - 1
    return largest.bit_length() // 8 + 1


def _place(column: Column) -> str:
    if column.max_repetition:
        return "map" if column.max_repetition == 1 and column.path[-2:] == ("key_value", "value") else "list"
    return "struct" if column.nested else "top"


def _sharpen(
    one: EngineReport,
    verdict: EngineVerdict,
    place: str,
    arrow_type: str | None,
    bitset_bytes: int | None,
    has_length: bool,
) -> EngineVerdict:
    """Refine a verdict: facts about column and filter may keep an engine from using it, or make a filter of a bad size harmful."""
    if place not in one.places:
        explanation = f"Comparisons of {PLACES[place]} do not reach its filters."
    elif arrow_type in one.unused_arrow_types:
        explanation = f"The file's ARROW:schema says {arrow_type}, a type that its filter has no case for."
    elif one.needs_length and not has_length:
        explanation = "It ignores filters whose bloom_filter_length is missing."
    elif bitset_bytes is not None and (limits := _limits_broken(one, bitset_bytes)):
        explanation = f"it takes bitsets of {' and '.join(limits)}, and this one has {bitset_bytes:,} bytes"
        if one.bad_size in EFFECTS:
            harm = replace(verdict, verdict=HARM, explanation=explanation, source=one.source, evidence=one.evidence)
            return replace(harm, effect=one.bad_size, fix="give the column a filter of another size")
        explanation = f"Ignored: {explanation}."
    else:
        return verdict
    refined = replace(verdict, verdict=UNUSED, explanation=explanation, source=one.source, evidence=one.evidence)
    return replace(refined, effect=None, fix=None, since=None, older_verdict=None)


def _limits_broken(one: EngineReport, bitset_bytes: int) -> list[str]:
    broken = []
    if one.min_bytes is not None and bitset_bytes < one.min_bytes:
        broken.append(f"at least {one.min_bytes:,} bytes")
    if one.max_bytes is not None and bitset_bytes > one.max_bytes:
        broken.append(f"at most {one.max_bytes:,} bytes")
    if one.power_of_two and bitset_bytes & (bitset_bytes - 1):
        broken.append("a power of two")
    if one.whole_blocks and bitset_bytes % BLOCK_BYTES:
        broken.append(f"whole blocks of {BLOCK_BYTES} bytes")
    return broken


def table() -> EnginesReport:
    # Most calls need no table, and reading it costs an import of tomllib.
    from sbbf_tool.query_engines.table import load_table

    return load_table()


def near_names(name: str, known: Iterable[str], all_names: Iterable[str]) -> str:
    """Return the hint for a name that is none of `known`."""
    from difflib import get_close_matches

    near = get_close_matches(name.casefold(), list(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(all_names)}"
