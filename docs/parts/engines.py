"""The page "Can I use Parquet Bloom filters?", from the table of engines and their runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from parts.markdown import table
from sbbf_tool import engines
from sbbf_tool.query_engines.runs import ReleaseRun, read_runs
from sbbf_tool.query_engines.terms import EFFECTS, HARM, PREDICATES, USED
from sbbf_tool.reports.engines import ColumnFamily, EngineReport, EnginesReport, EngineVerdict


def list_types() -> str:
    """Build the table of types: whether the newest release of each engine uses filters on them."""
    report = engines()
    readers = [engine for engine in _run_engines(report) if engine.uses_filters]
    return table(
        ["type", *(f"{engine.name} {engine.version}" for engine in readers)],
        _rows_by_type(report, readers),
    )


def list_releases() -> str:
    """Build the table of engines with the releases that were run."""
    return table(
        ["engine", "releases that were run", "filters used in", "by default"],
        map(_describe_engine, _run_engines(engines())),
    )


def list_defects() -> str:
    """List the releases that lose rows or fail."""
    report = engines()
    return "".join(f"{line}\n" for line in _list_harm(report, _run_engines(report)))


def list_changes() -> str:
    """List what changed from release to release."""
    report = engines()
    return "".join(
        f"{line}\n"
        for line in _list_changes(
            report.families, [engine for engine in _run_engines(report) if engine.uses_filters]
        )
    )


def list_sources() -> str:
    """Build the table of the engines that are known from their source or from issues."""
    header = ["engine", "state", "types used", "types harmed", "predicates", "source"]
    return table(
        header, (_describe_source(engine) for engine in engines().engines if not engine.releases)
    )


def _run_engines(report: EnginesReport) -> list[EngineReport]:
    return [engine for engine in report.engines if engine.releases]


def _rows_by_type(report: EnginesReport, readers: Sequence[EngineReport]) -> Iterator[list[str]]:
    for index, family in enumerate(report.families):
        yield [family.name, *(_format_cell(engine.verdicts[index]) for engine in readers)]


def _format_cell(verdict: EngineVerdict) -> str:
    since = f" since {verdict.since}" if verdict.since else ""
    match verdict.verdict:
        case "used":
            return f"yes{since}"
        case "harm":
            return f"**{verdict.effect}**{since}"
    return "no"


def _describe_engine(engine: EngineReport) -> list[str]:
    dates = sorted({release.date for release in engine.releases})
    versions = ", ".join(dict.fromkeys(release.version for release in engine.releases))
    days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return [
        engine.name,
        f"{versions} ({days})",
        engine.predicates or "no query",
        engine.default or "-",
    ]


def _list_harm(report: EnginesReport, run: Sequence[EngineReport]) -> Iterator[str]:
    names = {family.id: family.name for family in report.families}
    for engine in run:
        entries = [
            entry
            for verdict in engine.verdicts
            for entry in (verdict, verdict.older_verdict)
            if entry is not None and entry.effect
        ]
        entries.sort(key=lambda entry: entry.sentence)
        for _, group in groupby(entries, lambda entry: (entry.sentence, entry.since)):
            members = list(group)
            entry = members[0]
            last = entry.until or engine.version
            releases = (
                f"{entry.since} to {last}"
                if entry.since and entry.since != last
                else f"{last}"
                if entry.since
                else f"up to {last}"
            )
            types = "; ".join(names[member.family] for member in members)
            text = f"{entry.effect} on {types}: {entry.explanation}; {entry.fix}."
            yield f"- **{engine.name} {releases}** {text} [Source]({entry.source})."


def _list_changes(
    families: Sequence[ColumnFamily], readers: Sequence[EngineReport]
) -> Iterator[str]:
    for engine in readers:
        yield f"- {engine.name}"
        for older, newer in pairwise(read_runs()[engine.id]):
            if change := describe_change(older, newer, families):
                yield f"  - {newer.version}: {change}."


def describe_change(older: ReleaseRun, newer: ReleaseRun, families: Sequence[ColumnFamily]) -> str:
    """Describe what a release does with filters and the one before did not, or the other way
    around; empty if that is nothing."""
    parts = []
    if not older.uses_filters and newer.uses_filters:
        parts.append("the first that uses filters")
    for verb, outcomes in (("uses", (USED,)), ("loses rows or fails on", EFFECTS)):
        before, after = (
            [family.name for family in families if run.outcome_of(family.id) in outcomes]
            for run in (older, newer)
        )
        if new_names := [name for name in after if name not in before]:
            parts.append(f"{verb} {'filters on ' if verb == 'uses' else ''}{'; '.join(new_names)}")
        if lost_names := [name for name in before if name not in after]:
            parts.append(
                f"no longer {verb} {'filters on ' if verb == 'uses' else ''}{'; '.join(lost_names)}"
            )
    parts += [
        f"{'uses filters' if predicate in newer.predicates else 'no longer uses filters'} in "
        f"queries with {predicate}"
        for predicate in PREDICATES
        if older.uses_filters and (predicate in newer.predicates) != (predicate in older.predicates)
    ]
    return ". ".join(part[0].upper() + part[1:] for part in parts)


def _describe_source(engine: EngineReport) -> list[str]:
    num_types, num_harmful = (
        sum(verdict.verdict == kind for verdict in engine.verdicts) for kind in (USED, HARM)
    )
    evidence = {"source": "source", "issue": "issue", "run": "source, and run by a test"}[
        engine.evidence
    ]
    counts = [
        f"{num_types} of {len(engine.verdicts)}" if engine.uses_filters else "none",
        str(num_harmful) if num_harmful else "-",
    ]
    return [
        engine.name,
        engine.version,
        *counts,
        engine.predicates or "-",
        f"[{evidence}]({engine.source})",
    ]
