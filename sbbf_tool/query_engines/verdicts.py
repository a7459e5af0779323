"""How each engine uses a filter on a column: the verdict in the table, refined by facts about the
column and its filter.

The facts are in `engines.toml` beside this module; comments at its top document their format. Each
fact has the release for which it is true, its source, and whether it was verified by running the
engine. Facts become outdated; a verdict is advice, not a guarantee.

The file is read at the first look-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.statistics import Bounds, bounds, bounds_by_form
from sbbf_tool.query_engines.runs import ReleaseRun, numbers_of, read_runs
from sbbf_tool.query_engines.table import read_families, read_release, read_table
from sbbf_tool.query_engines.terms import EFFECTS, HARM, PLACES, UNUSED, USED
from sbbf_tool.reports.engines import ColumnFamily, EngineReport, EnginesReport, EngineVerdict

if TYPE_CHECKING:
    from sbbf_tool.parquet.footer import Footer


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
        ids = [report.id for report in engines]
        hint = suggest_names(name, reports, ids)
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
    digits = 0
    if column.logical is not None:
        digits = column.logical.precision
    is_padded = column.type_length > _count_needed_bytes(digits)
    return _match_family(column.type_name, digits, is_padded)


@lru_cache(maxsize=1024)
def _match_family(type_name: str, digits: int, padded: bool) -> ColumnFamily:
    def has_type(family: ColumnFamily) -> bool:
        return any(is_match(pattern, type_name) for pattern in family.types)

    for family in read_families():
        least, most = family.precision or (digits, digits)
        if has_type(family) and least <= digits <= most and family.padded in (None, padded):
            return family
    raise LookupError(f"no family has the type {type_name}")


def is_match(pattern: str, type_name: str) -> bool:
    """Return whether a pattern matches a type: its physical part the physical type, and its logical
    part the logical type.

    `INT64` does not match `INT64 DECIMAL(9,2)`, and `* *` matches any type with a logical part.
    """
    physical_pattern, _, logical_pattern = pattern.partition(" ")
    physical, _, logical = type_name.partition(" ")
    if bool(logical_pattern) != bool(logical):
        return False
    return fnmatchcase(physical, physical_pattern) and fnmatchcase(logical, logical_pattern)


def _count_needed_bytes(digits: int) -> int:
    """Return the number of bytes that hold any two's complement number with this many decimal
    digits."""
    largest: int = 10**digits - 1
    return largest.bit_length() // 8 + 1


def list_trusted_bounds(
    engines: Iterable[EngineReport], footer: Footer, row_group: int, column: Column
) -> Iterator[Bounds | None]:
    """Yield the bounds of a chunk that each engine compares with values, right or wrong; None if it
    compares none."""
    reliable = bounds(footer, row_group, column)
    by_form = bounds_by_form(footer, row_group, column)
    family = find_family(column).id
    for engine in engines:
        trusted = reliable
        if engine.bounds is not None:
            trusted = None
            for form, stated in by_form.items():
                if family in getattr(engine.bounds, form):
                    trusted = stated
                    break
        yield trusted


def classify_place(column: Column) -> str:
    if column.max_repetition == 1 and column.path[-2:] == ("key_value", "value"):
        return "map"
    if column.max_repetition:
        return "list"
    return "struct" if column.nested else "top"


def name_place_or(name: str, column: Column) -> str:
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
    return read_table()


def suggest_names(name: str, spellings: Iterable[str], all_names: Iterable[str]) -> str:
    """Return the hint for an unknown name: the `spellings` that are similar to it, or all names if
    none is similar."""
    from difflib import get_close_matches

    matches = get_close_matches(name.casefold(), list(spellings), n=3)
    if matches:
        return f"did you mean {' or '.join(matches)}?"
    names = list(all_names)
    separator = ", "
    if any("," in name for name in names):
        separator = "; "
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
    match = _RELEASE.fullmatch(text.strip())
    if match is None or _SEPARATOR.search(match["name"]):
        return _find_engine_without_version(text.strip())
    name = match["name"]
    version = match["version"]
    of_package = _list_runs_of_package(name.casefold())
    engine_name = of_package[0].engine if of_package else name
    engine = find_engine(engine_name)
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


def _list_runs_of_package(package: str) -> list[ReleaseRun]:
    """List the runs of a package whose name is not that of its engine."""
    runs = []
    for run in chain.from_iterable(read_runs().values()):
        name, *_ = run.package.split()
        if name == package and name != run.engine:
            runs.append(run)
    return runs


def is_release(text: str, engine: EngineReport) -> bool:
    """Return whether `engine`, which `find_release` returned for this text, is the very release or
    one of those that it names."""
    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        return True
    (release,) = engine.releases
    target = numbers_of(match["version"])
    for version in (release.version, release.package.split()[1]):
        if numbers_of(version)[: len(target)] == target:
            return True
    return False


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
    """Return the table as it was in the newest of these runs up to a version, that of the engine
    or of its package. Raises UsageError if they are all newer."""
    target = numbers_of(version)
    for run in reversed(runs):
        stated = run.version
        if is_package:
            _, stated, *_ = run.package.split()
        if numbers_of(stated)[: len(target)] <= target:
            return read_release(run)
    oldest = f"{engine.name} {runs[0].version}"
    if is_package:
        oldest = runs[0].package
    raise UsageError(
        f"{engine.name} {version} is older than the releases that were run",
        hint=f"the oldest is {oldest}",
    )


@lru_cache(maxsize=8)
def engines_of(names: tuple[str, ...]) -> tuple[EngineReport, ...]:
    """Return the engines, or releases such as `duckdb-1.4`, with these names; all engines without
    names. Raises UsageError."""
    reports = tuple(map(find_release, dict.fromkeys(names)))
    ids = {report.id for report in reports}
    if len(ids) < len(reports):
        raise UsageError(
            f"the names {', '.join(names)} mean an engine twice", hint="name one release of each"
        )
    return reports or load_table().engines


def as_engines(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of engines as a tuple; none for `all`. Raises UsageError for an unknown
    name; without names, reads no table."""
    engine_names = as_names(names, "engine")
    if engine_names in ((), ("all",)):
        return ()
    engines_of(engine_names)
    return engine_names
