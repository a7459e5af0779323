"""How each engine uses a filter on a column: the verdict in the table, refined by facts about the
column and its filter.

The facts are in `engines.toml` beside this module; comments at its top document their format. Each
fact has the release for which it is true, its source, and whether it was verified by running the
engine. Facts become outdated; a verdict is advice, not a guarantee.

The file is read at the first look-up. The common types need no look-up, because there are no
warnings about them. The engines that count are those that the user names, or all in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import has_interval_mark
from sbbf_tool.parquet.statistics import Bounds, bounds, bounds_by_form
from sbbf_tool.query_engines.terms import EFFECTS, HARM, PLACES, UNUSED, USED

if TYPE_CHECKING:
    from sbbf_tool.parquet.footer import Footer
    from sbbf_tool.query_engines.runs import ReleaseRun
    from sbbf_tool.reports.engines import ColumnFamily, EngineReport, EnginesReport, EngineVerdict


def find_engine(name: str) -> EngineReport:
    """Find the engine by its name in upper or lower case, or by the name of a system that reads
    through it. Raises UsageError."""
    engines = load_table().engines
    reports = {}
    for report in engines:
        for spelling in (*report.aliases, report.name, report.id):
            reports[spelling.casefold()] = report
    match = reports.get(name.casefold())
    if match is None:
        hint = suggest_names(name, reports, (report.id for report in engines))
        raise UsageError(f"unknown engine {name!r}", hint=hint)
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

    Optional facts refine the verdicts: the column's type in the file's ARROW:schema
    (`arrow_schema.arrow_type`), the size of the filter's bitset, whether the footer states the
    length of the filter, and whether it marks filters of INTERVAL as DuckDB does.
    """
    index = load_table().families.index(find_family(column))
    place = classify_place(column)
    refined_verdicts = []
    for report in engines or load_table().engines:
        verdict = report.verdicts[index]
        if has_interval_mark and (report.id, verdict.family) == ("duckdb", "interval"):
            verdict = replace(
                verdict,
                verdict=USED,
                explanation="Used, because the file has the key duckdb.interval_bloom_filter.",
            )
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
        if not any(is_match(pattern, type_name) for pattern in family.types):
            return False
        if family.precision is not None:
            least, most = family.precision
            if not least <= digits <= most:
                return False
        return family.padded in (None, padded)

    from sbbf_tool.query_engines.table import read_families

    return next(filter(fits, read_families()))


def is_match(pattern: str, type_name: str) -> bool:
    """Return whether a pattern matches a type: its physical part the physical type, and its logical
    part the logical type.

    `INT64` does not match `INT64 DECIMAL(9,2)`, and `* *` matches any type with a logical part.
    """
    from fnmatch import fnmatchcase

    return all(
        fnmatchcase(name, expected)
        for expected, name in zip(pattern.partition(" "), type_name.partition(" "), strict=True)
    )


def _count_needed_bytes(digits: int) -> int:
    """Return the number of bytes that hold any two's complement number with this many decimal
    digits."""
    largest: int = 10**digits - 1
    return largest.bit_length() // 8 + 1


def trusted_bounds(
    engine: EngineReport, footer: Footer, row_group: int, column: Column
) -> Bounds | None:
    """Return the bounds of a chunk that the engine compares with values, right or wrong; None if it
    compares none."""
    if engine.bounds is None:
        return bounds(footer, row_group, column)
    family = find_family(column).id
    for form, stated in bounds_by_form(footer, row_group, column).items():
        if family in getattr(engine.bounds, form):
            return stated
    return None


def classify_place(column: Column) -> str:
    if column.max_repetition == 1 and column.path[-2:] == ("key_value", "value"):
        return "map"
    if column.max_repetition:
        return "list"
    return "struct" if column.nested else "top"


def _name_place_or(name: str, column: Column) -> str:
    """Return the words for values inside lists and maps, or `name` for any other column."""
    return PLACES[classify_place(column)] if column.max_repetition else name


def _refine_verdict(
    report: EngineReport,
    verdict: EngineVerdict,
    place: str,
    arrow_type: str | None,
    bitset_bytes: int | None,
    has_length: bool,
) -> EngineVerdict:
    """Refine a verdict: the facts may show that the engine does not use the filter, or that a
    filter of this size is harmful."""
    of_report = replace(verdict, source=report.source, evidence=report.evidence)
    limits = [] if bitset_bytes is None else _list_violated_limits(report, bitset_bytes)
    if place not in report.places:
        explanation = f"Comparisons of {PLACES[place]} do not reach its filters."
    elif arrow_type in report.unused_arrow_types:
        explanation = (
            f"Its filter does not support {arrow_type}, the type in the file's ARROW:schema."
        )
    elif report.needs_length and not has_length:
        explanation = "It ignores filters without bloom_filter_length."
    elif limits:
        explanation = (
            f"it accepts only bitsets {' and '.join(limits)}, and this one has "
            f"{bitset_bytes:,} bytes"
        )
        if report.bad_size in EFFECTS:
            return replace(
                of_report,
                verdict=HARM,
                explanation=explanation,
                effect=report.bad_size,
                fix="rebuild the filter with another size",
            )
        explanation = f"Ignored: {explanation}."
    else:
        return verdict
    return replace(
        of_report,
        verdict=UNUSED,
        explanation=explanation,
        effect=None,
        fix=None,
        since=None,
        older_verdict=None,
    )


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
    """Return the hint for an unknown name: the `spellings` that are similar to it, or all names if
    none is similar."""
    from difflib import get_close_matches

    matches = get_close_matches(name.casefold(), list(spellings), n=3)
    if matches:
        return f"did you mean {' or '.join(matches)}?"
    names = list(all_names)
    separator = "; " if any("," in name for name in names) else ", "
    return f"known names: {separator.join(names)}"


_SEPARATOR = re.compile(r"-\d")
_RELEASE = re.compile(r"(?P<name>.+?)[-= @]+v?(?P<version>\d+(\.\w+)*)")


def find_release(text: str) -> EngineReport:
    """Return the table of the engine as it was in this release: that of the newest release up to it
    that was run.

    `duckdb-1.4` is the newest release of 1.4 that was run. The name is that of an engine or, with
    the versions of its package, of the package: `chdb-4.4`. A name without a version stands for the
    newest release. Raises UsageError.
    """
    from sbbf_tool.query_engines.runs import read_runs

    match = _RELEASE.fullmatch(text.strip())
    if match is None or _SEPARATOR.search(match["name"]):
        return _find_engine_without_version(text.strip())
    name = match["name"]
    version = match["version"]
    of_package = [
        run
        for run in chain.from_iterable(read_runs().values())
        if run.package.split()[0] == name.casefold() != run.engine
    ]
    engine = find_engine(of_package[0].engine if of_package else name)
    if not engine.releases:
        raise UsageError(
            f"no release of {engine.name} was run",
            hint=f"name it without a version, for {engine.version}",
        )
    if not of_package and name.casefold() not in (engine.id, engine.name.casefold()):
        raise UsageError(
            f"the versions of {name} are not those of {engine.name}",
            hint=f"name a version of {engine.id}",
        )
    runs = of_package or read_runs()[engine.id]
    return _read_release(engine, runs, version, is_package=bool(of_package))


def is_release(text: str, engine: EngineReport) -> bool:
    """Return whether `engine`, which `find_release` returned for this text, is the very release or
    one of those that it names."""
    from sbbf_tool.query_engines.runs import numbers_of

    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        return True
    (release,) = engine.releases
    target = numbers_of(match["version"])
    versions = (release.version, release.package.split()[1])
    return any(numbers_of(version)[: len(target)] == target for version in versions)


def _find_engine_without_version(text: str) -> EngineReport:
    """Return the newest table of an engine. Raises UsageError, for an engine with something that is
    no version too."""
    name, _, version = text.partition("-")
    try:
        return find_engine(text)
    except UsageError as error:
        try:
            engine = find_engine(name)
        except UsageError:
            raise error from None
    raise UsageError(
        f"{version!r} of {text!r} is no version",
        hint=f"name one such as {engine.id}-{engine.version}",
    )


def _read_release(
    engine: EngineReport, runs: Sequence[ReleaseRun], version: str, *, is_package: bool
) -> EngineReport:
    from sbbf_tool.query_engines.runs import numbers_of
    from sbbf_tool.query_engines.table import read_release

    target = numbers_of(version)

    def is_older(run: ReleaseRun) -> bool:
        stated = run.package.split()[1] if is_package else run.version
        return numbers_of(stated)[: len(target)] <= target

    older = list(filter(is_older, runs))
    if not older:
        oldest = runs[0].package if is_package else f"{engine.name} {runs[0].version}"
        raise UsageError(
            f"{engine.name} {version} is older than the releases that were run",
            hint=f"the oldest is {oldest}",
        )
    return read_release(older[-1])


_FEW = 2
"""A type is reported as rarely used if at most this many engines use a filter on it."""


# Nearly every engine that reads filters uses them on these types, and on none of these types is a
# filter harmful; a test verifies that.
_PLAIN_TYPES = frozenset(("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY STRING", "INT32 DATE"))


@lru_cache(maxsize=8)
def engines_of(names: tuple[str, ...]) -> tuple[EngineReport, ...]:
    """Return the engines, or releases such as `duckdb-1.4`, with these names; all engines without
    names. Raises UsageError."""
    reports = {name: find_release(name) for name in names}
    if len({report.id for report in reports.values()}) < len(reports):
        raise UsageError(
            f"the names {', '.join(names)} mean an engine twice", hint="name one release of each"
        )
    return tuple(reports.values()) or load_table().engines


def as_engines(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of engines as a tuple; none for `all`. Raises UsageError for an unknown
    name; without names, reads no table."""
    engine_names = as_names(names, "engine")
    if engine_names in ((), ("all",)):
        return ()
    engines_of(engine_names)
    return engine_names


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
    arrow_type: str | None = None,
    has_interval_mark: bool = False,
) -> Use:
    """Return what the named engines make of filters on `column`; without names, all engines count,
    but none is known to read the files."""
    engines = engines_of(names)
    verdicts = list_verdicts(
        column, engines, arrow_type=arrow_type, has_interval_mark=has_interval_mark
    )
    users = [verdict for verdict in verdicts if verdict.verdict == USED]
    harms = [verdict.sentence for verdict in verdicts if verdict.verdict == HARM]
    harm = None
    if harms and (names or len(harms) >= len(users)):
        harm = harms[0]
    with_dictionaries = {report.id for report in engines if report.dictionary_first}
    dictionary_users = [verdict for verdict in users if verdict.engine in with_dictionaries]
    return Use(users, harm, dictionary_users)


def use_in(footer: Footer, column: Column, names: Iterable[str]) -> Use:
    """Return the same for a column of a file."""
    return use_of(
        column,
        tuple(names),
        arrow_type=arrow_type(footer, column),
        has_interval_mark=has_interval_mark(footer, column),
    )


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
    columns = _name_place_or(column.type_name, column)
    if not names:
        return f"no engine uses filters on {columns}"
    engines = [report.name for report in engines_of(names)]
    verb = "do" if len(engines) > 1 else "does"
    return f"{' and '.join(engines)} {verb} not use filters on {columns}"


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
    warnings = [verdict.sentence for verdict in verdicts if verdict.verdict == HARM]
    has_harm = bool(warnings)
    older = [verdict.older_verdict for verdict in verdicts]
    warnings += [verdict.sentence for verdict in older if verdict is not None]
    users = [verdict.name for verdict in verdicts if verdict.verdict == USED]
    if not users and names:
        if not has_harm:
            warnings.append(_say_unused(column, names))
    elif len(users) <= _FEW < len(engines):
        readers = sum(report.uses_filters for report in engines)
        warnings.append(_say_few_use(column, users, readers))
    return warnings


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
    name = column.type_name if family == load_table().families[-1] else family.name
    columns = _name_place_or(name, column)
    return f"of the {readers} engines that use filters, {subject} them on {columns}"


def engine_warnings(footer: Footer, columns: Iterable[int], names: Iterable[str]) -> Iterator[str]:
    """Yield the warnings about filters of these columns of a file."""
    for index in sorted(columns):
        column = footer.columns[index]
        mark = has_interval_mark(footer, column)
        for warning in list_warnings(column, names, has_interval_mark=mark):
            yield f"column {column.name}: {warning}"
