"""`engines`: who uses a Bloom filter, and on which columns.

The facts are in `engines.toml`, beside this module, whose head says how they are written down: each with the release it is true of,
where one can read it, and whether it was seen by running the engine. They go stale; a verdict is advice, never a proof.

The file is read (`engine_table`) when it is first asked for. Columns of the plainest types never ask: nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import Column

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import ColumnFamily, EngineReport, EnginesReport, EngineVerdict

USED, UNUSED, HARM = "used", "unused", "harm"
EFFECTS = ("loses rows", "fails")
EVIDENCE = ("run", "source", "issue")
PLACES = {"top": "top-level columns", "struct": "fields of structs", "map": "values of maps", "list": "values inside lists and maps"}

_FEW = 2
"""A type that at most so many engines use a filter on is worth a word."""

_BLOCK_BYTES = 32

# Every engine that reads filters uses one on these, or nearly, and none comes to harm: a test holds the table to it.
_PLAIN_TYPES = frozenset(
    ("INT32", "INT32 INT(32,signed)", "INT64", "INT64 INT(64,signed)", "FLOAT", "DOUBLE", "BYTE_ARRAY STRING", "INT32 DATE")
)


def engines(type_name: str | None = None, engine_name: str | None = None) -> EnginesReport:
    """The table: all of it, or the families of columns that `type_name` means and the engine that `engine_name` means.

    A type is named as `inspect` prints it, or by a part of that: `INT64 TIMESTAMP(MILLIS,UTC)`, `timestamp`, `float16`. Raises
    UsageError, with what comes near, where nothing has the name.
    """
    everything = _table()
    chosen = [everything.families.index(family) for family in _families_named(type_name)]
    asked = everything.engines if engine_name is None else (engine(engine_name),)
    return replace(
        everything,
        families=tuple(everything.families[at] for at in chosen),
        engines=tuple(replace(one, verdicts=tuple(one.verdicts[at] for at in chosen)) for one in asked),
    )


def engine(name: str) -> EngineReport:
    """The engine of this name, whatever its case, or the one that the system of this name reads through. Raises UsageError."""
    known = {spelling.casefold(): one for one in _table().engines for spelling in (*one.aliases, one.name, one.id)}
    found = known.get(name.casefold())
    if found is None:
        raise UsageError(f"no engine {name!r}", hint=_near(name, known, (one.id for one in _table().engines)))
    return found


def verdicts_for(
    column: Column,
    *,
    arrow_type: str | None = None,
    bitset_bytes: int | None = None,
    has_length: bool = True,
    dictionary_encoded: bool = False,
) -> tuple[EngineVerdict, ...]:
    """One verdict of each engine on a filter of `column`, in the table's order.

    What is known of column and filter makes them sharper: the column's type in the file's ARROW:schema (`arrow_schema.arrow_type`), the
    size of the filter's bitset, whether the footer states its length, and whether its chunk is dictionary-encoded throughout.
    """
    at = _table().families.index(family_of(column))
    place = _place(column)
    found = []
    for one in _table().engines:
        verdict = one.verdicts[at]
        if one.uses_filters and verdict.verdict != UNUSED:
            verdict = (
                _by_place(one, verdict, place)
                or _by_arrow_type(one, verdict, arrow_type)
                or _by_form(one, verdict, bitset_bytes, has_length)
                or (_by_dictionary(one, verdict) if dictionary_encoded else None)
                or verdict
            )
        found.append(verdict)
    return tuple(found)


def warnings_for(column: Column) -> list[str]:
    """What one should know before relying on a filter of `column`, worst first; nothing for the common types.

    Engines that lose rows or fail come first, then those whose older releases did, then a word where hardly any engine uses the filter.
    """
    if column.type_name in _PLAIN_TYPES and not column.max_repetition:
        return []
    verdicts = verdicts_for(column)
    said = [verdict.sentence for verdict in verdicts if verdict.verdict == HARM]
    said += [verdict.past.sentence for verdict in verdicts if verdict.past is not None]
    users = [verdict.name for verdict in verdicts if verdict.verdict == USED]
    if len(users) <= _FEW:
        readers = sum(one.uses_filters for one in _table().engines)
        what = PLACES[_place(column)] if column.max_repetition else family_of(column).name
        who = f"only {' and '.join(users)} use{'s' if len(users) == 1 else ''}" if users else "none uses"
        said.append(f"of {readers} engines that use filters {who} one on {what}")
    return said


def family_of(column: Column) -> ColumnFamily:
    """The first family that fits the column."""
    digits = column.logical.precision if column.logical is not None else 0
    return _family(column.type_name, digits, column.type_length > _bytes_needed(digits))


@lru_cache(maxsize=1024)
def _family(type_name: str, digits: int, padded: bool) -> ColumnFamily:
    def fits(family: ColumnFamily) -> bool:
        return (
            any(_named(pattern, type_name) for pattern in family.types)
            and (family.precision is None or family.precision[0] <= digits <= family.precision[1])
            and family.padded in (None, padded)
        )

    return next(filter(fits, _table().families))


def _named(pattern: str, type_name: str) -> bool:
    """Physical type by physical type and logical by logical: `INT64` is not `INT64 DECIMAL(9,2)`, and `* *` is any that has both."""
    from fnmatch import fnmatchcase

    return all(fnmatchcase(name, wanted) for wanted, name in zip(pattern.partition(" "), type_name.partition(" "), strict=True))


def _bytes_needed(digits: int) -> int:
    """Bytes of the largest two's complement number of so many decimal digits."""
    largest: int = 10**digits - 1
    return largest.bit_length() // 8 + 1


def _place(column: Column) -> str:
    if column.max_repetition:
        return "map" if column.max_repetition == 1 and column.path[-2:] == ("key_value", "value") else "list"
    return "struct" if column.nested else "top"


def _unused(one: EngineReport, verdict: EngineVerdict, says: str) -> EngineVerdict:
    told = {"says": says, "source": one.source, "evidence": one.evidence}
    return replace(verdict, verdict=UNUSED, effect=None, cure=None, since=None, past=None, **told)


def _by_place(one: EngineReport, verdict: EngineVerdict, place: str) -> EngineVerdict | None:
    return None if place in one.places else _unused(one, verdict, f"Comparisons of {PLACES[place]} do not reach its filters.")


def _by_arrow_type(one: EngineReport, verdict: EngineVerdict, arrow_type: str | None) -> EngineVerdict | None:
    if arrow_type not in one.unused_arrow_types:
        return None
    return _unused(one, verdict, f"The file's ARROW:schema says {arrow_type}, a type that its filter has no case for.")


def _by_form(one: EngineReport, verdict: EngineVerdict, bitset_bytes: int | None, has_length: bool) -> EngineVerdict | None:
    """What a filter's own form makes of the verdict; None where the engine takes the form."""
    if one.needs_length and not has_length:
        return _unused(one, verdict, "It ignores filters whose bloom_filter_length is missing.")
    limits = _limits_broken(one, bitset_bytes) if bitset_bytes is not None else []
    if not limits:
        return None
    says = f"it takes bitsets of {' and '.join(limits)}, and this one has {bitset_bytes:,} bytes"
    if one.bad_size not in EFFECTS:
        return _unused(one, verdict, f"Ignored: {says}.")
    cure = "give the column a filter of another size"
    return replace(verdict, verdict=HARM, says=says, source=one.source, evidence=one.evidence, effect=one.bad_size, cure=cure)


def _limits_broken(one: EngineReport, bitset_bytes: int) -> list[str]:
    broken = []
    if one.min_bytes is not None and bitset_bytes < one.min_bytes:
        broken.append(f"at least {one.min_bytes:,} bytes")
    if one.max_bytes is not None and bitset_bytes > one.max_bytes:
        broken.append(f"at most {one.max_bytes:,} bytes")
    if one.power_of_two and bitset_bytes & (bitset_bytes - 1):
        broken.append("a power of two")
    if one.whole_blocks and bitset_bytes % _BLOCK_BYTES:
        broken.append(f"whole blocks of {_BLOCK_BYTES} bytes")
    return broken


def _by_dictionary(one: EngineReport, verdict: EngineVerdict) -> EngineVerdict | None:
    return _unused(one, verdict, "The chunk's dictionary answers first, and exactly.") if one.dictionary_first else None


def _families_named(name: str | None) -> list[ColumnFamily]:
    families = _table().families
    if name is None:
        return list(families)
    wanted = " ".join(name.split()).casefold()
    exact = [family for family in families if wanted in (family.id, family.name.casefold(), *(kind.casefold() for kind in family.types))]
    part = [family for family in families if any(wanted in kind.casefold() for kind in (family.id, family.name, *family.types))]
    if not exact and not part:
        # With its parameters, such as INT32 DECIMAL(9,2) or the latter word alone; what the last family is for would fit anything.
        part = [family for family in families[:-1] if any(_means(wanted, kind.casefold()) for kind in family.types)]
    if not exact and not part:
        names = {spelling.casefold() for family in families for spelling in (family.name, family.id)}
        raise UsageError(f"no type {name!r}", hint=_near(name, names, (family.name for family in families)))
    return exact or part


def _means(wanted: str, pattern: str) -> bool:
    logical = pattern.partition(" ")[2]
    return _named(pattern, wanted) or (logical not in ("", "*") and _named(logical, wanted))


def _near(name: str, known: Iterable[str], all_names: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.casefold(), list(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(all_names)}"


@lru_cache(maxsize=1)
def _table() -> EnginesReport:
    from sbbf_tool.operations.engine_table import load_table

    return load_table()
