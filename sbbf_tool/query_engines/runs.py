"""The runs of query engines: what their releases do with filters on each family of columns, from
`runs.toml`.

`tests/engine_matrix/run.py` writes that file; comments at its top document its format. Its results
are facts; `engines.toml` explains them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pkgutil import get_data
from typing import Any

from sbbf_tool.frozen import Frozen
from sbbf_tool.query_engines.terms import (
    CANNOT_COMPARE,
    EFFECTS,
    FAILS,
    IN,
    IN_MANY,
    LOSES_ROWS,
    PREDICATES,
    UNUSED,
    USED,
)

OUTCOMES = (USED, LOSES_ROWS, FAILS, CANNOT_COMPARE)
"""The outcomes that the file lists; the others are `unused`."""
_QUERIES = frozenset((USED, *EFFECTS))
"""The outcomes of a release that queries the filter."""


class ReleaseRun(Frozen):
    """What one release of an engine does."""

    engine: str
    version: str
    package: str
    """Name and release of the package that was installed."""
    date: str
    """Day of the run, YYYY-MM-DD."""
    outcomes: Mapping[str, Mapping[str, str]]
    """For each predicate the outcome of each family that was run."""

    @property
    def uses_filters(self) -> bool:
        return bool(self.predicates)

    def outcome_of(self, family: str) -> str:
        """Return the outcome for a family: harm with any predicate, otherwise `used` with any
        predicate, otherwise `unused`."""
        outcomes = [by_family.get(family) for by_family in self.outcomes.values()]
        for outcome in (*EFFECTS, USED):
            if outcome in outcomes:
                return outcome
        return UNUSED

    def predicates_of(self, family: str) -> tuple[str, ...]:
        """Return the predicates that query a filter on columns of a family."""

        def queries_filter(predicate: str) -> bool:
            return self.outcomes.get(predicate, {}).get(family) in _QUERIES

        return tuple(filter(queries_filter, PREDICATES))

    @property
    def predicates(self) -> tuple[str, ...]:
        """The predicates that query a filter on any column."""

        def queries_filter(predicate: str) -> bool:
            return not _QUERIES.isdisjoint(self.outcomes.get(predicate, {}).values())

        return tuple(filter(queries_filter, PREDICATES))


@lru_cache(maxsize=1)
def read_runs() -> dict[str, tuple[ReleaseRun, ...]]:
    """Read the runs of each engine, from the oldest release to the newest, once."""
    import tomllib  # most calls need no table

    data = get_data(__package__, "runs.toml")
    assert data is not None, "the package contains the file"
    runs: dict[str, list[ReleaseRun]] = {}
    for run in parse_runs(tomllib.loads(data.decode())):
        runs.setdefault(run.engine, []).append(run)
    sorted_runs = {}
    for engine, of_engine in runs.items():
        sorted_runs[engine] = tuple(sorted(of_engine, key=order_of))
    return sorted_runs


def parse_runs(data: Mapping[str, Any]) -> list[ReleaseRun]:
    """Parse the content of `runs.toml`."""
    runs = []
    for entry in data["runs"]:
        outcomes = {}
        for group in entry.get("on", ()):
            for predicate in group["predicates"]:
                outcomes[predicate] = _expand(group, data["families"])
        for release in entry["releases"]:
            date = str(release["date"])
            package = release["package"]
            runs.append(ReleaseRun(entry["engine"], release["version"], package, date, outcomes))
    return runs


def _expand(group: Mapping[str, Any], families: Iterable[str]) -> dict[str, str]:
    """Return the outcome of each family, from the families that a group lists by outcome."""
    by_family = dict.fromkeys(families, UNUSED)
    for outcome in reversed(OUTCOMES):
        for family in group.get(outcome, ()):
            if family in by_family:
                by_family[family] = outcome
    return by_family


def order_of(run: ReleaseRun) -> tuple[list[int], list[int]]:
    """Return a key that sorts the runs of an engine from the oldest release to the newest."""
    return numbers_of(run.version), numbers_of(run.package)


def numbers_of(version: str) -> list[int]:
    """Return the numbers of a version."""
    return [int(number) for number in re.findall(r"\d+", version)]


def describe_predicates(runs: Sequence[ReleaseRun]) -> str | None:
    """Describe the predicates that query filters in the newest of these runs, and since which
    release; None if none does."""
    first = find_first_using(runs)
    if first is None or not runs[-1].uses_filters:
        return None
    from_the_first = []
    since: dict[str, list[str]] = {}
    by_predicate = {}
    for name in runs[-1].predicates:
        by_predicate[name] = _find_first_use(runs, name)
    for name, run in by_predicate.items():
        if name == IN_MANY and by_predicate.get(IN) is run:
            continue  # it says no more than IN
        if run is first:
            from_the_first.append(name)
        else:
            since.setdefault(run.version, []).append(name)
    parts = []
    if from_the_first:
        parts.append(_join(from_the_first))
    for version, names in since.items():
        parts.append(f"since {version} {_join(names)}")
    return ", and ".join(parts)


def find_first_using(runs: Iterable[ReleaseRun]) -> ReleaseRun | None:
    """Return the oldest of these releases that uses filters; None if none does."""
    for run in runs:
        if run.uses_filters:
            return run
    return None


def _find_first_use(runs: Sequence[ReleaseRun], predicate: str) -> ReleaseRun:
    """Return the oldest of the newest releases that use filters in queries with this predicate,
    without a gap."""
    result = runs[-1]
    for run in reversed(runs):
        if predicate not in run.predicates:
            break
        result = run
    return result


def _join(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
