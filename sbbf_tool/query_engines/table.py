"""Read the table of engines: facts and explanations from `engines.toml`, verdicts from `runs.toml`
where an engine was run.

Both are checked against the rules at the top of `engines.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import filter as filter_names
from functools import lru_cache
from pkgutil import get_data
from typing import Any

from sbbf_tool.frozen import replace
from sbbf_tool.query_engines.runs import (
    ReleaseRun,
    describe_predicates,
    find_first_using,
    read_runs,
)
from sbbf_tool.query_engines.terms import EFFECTS, EVIDENCE, HARM, PLACES, RUN, UNUSED, USED
from sbbf_tool.reports.engines import (
    ColumnFamily,
    EngineBounds,
    EngineReport,
    EnginesReport,
    EngineVerdict,
    TestedRelease,
)


@lru_cache(maxsize=1)
def read_table() -> EnginesReport:
    """Read the table, once."""
    return parse_table(_read_data(), read_runs())


@lru_cache(maxsize=1)
def read_families() -> tuple[ColumnFamily, ...]:
    """Read the families alone, once."""
    return _parse_families(_read_data())


def read_release(run: ReleaseRun) -> EngineReport:
    """Read the table of one engine as it was in one release, that of a run."""
    families = _ids_of(read_families())
    for row in _read_data()["engine"]:
        if row["id"] == run.engine:
            return _read_engine(row, families, [run])
    raise LookupError(f"no engine has the id {run.engine}")


@lru_cache(maxsize=1)
def _read_data() -> dict[str, Any]:
    import tomllib  # most calls need no table

    # Importing importlib.resources takes three times as long.
    data = get_data(__package__, "engines.toml")
    assert data is not None, "the package contains the file"
    return tomllib.loads(data.decode())


def parse_table(data: Mapping[str, Any], runs: Mapping[str, Sequence[ReleaseRun]]) -> EnginesReport:
    """Parse `engines.toml` with the runs of each engine. Raises ValueError or TypeError if it
    breaks a rule at its top."""
    families = _parse_families(data)
    family_ids = _ids_of(families)
    reports = []
    for row in data["engine"]:
        runs_of_engine = runs.get(row["id"], ())
        reports.append(_read_engine(row, family_ids, runs_of_engine, is_whole=True))
    for ids in (family_ids, _ids_of(reports)):
        if len(set(ids)) < len(ids):
            raise ValueError(f"duplicate id in {ids}")
    return EnginesReport(families, tuple(reports))


def _ids_of(rows: Iterable[ColumnFamily | EngineReport]) -> list[str]:
    return [row.id for row in rows]


def _parse_families(data: Mapping[str, Any]) -> tuple[ColumnFamily, ...]:
    families = []
    for row in data["families"]:
        fields = _freeze_values(row)
        families.append(ColumnFamily(**fields))
    return tuple(families)


def _read_engine(
    row: Mapping[str, Any],
    families: Sequence[str],
    runs: Sequence[ReleaseRun],
    *,
    is_whole: bool = False,
) -> EngineReport:
    """Read one engine. `is_whole` means that `runs` are all of them, so that each row must explain
    one."""
    facts = _read_facts(row, families, runs)
    common = {
        "engine": row["id"],
        "name": row["name"],
        "source": row["source"],
        "evidence": facts["evidence"],
    }
    if runs:
        verdicts = _judge_runs(row, families, runs, common, is_whole=is_whole)
        is_used = runs[-1].uses_filters
    else:
        verdicts = _read_verdicts(row, families, common)
        is_used = "row" in row
    report = EngineReport(**facts, verdicts=verdicts)
    is_valid = set(report.places) <= PLACES.keys() and report.evidence in EVIDENCE
    if report.uses_filters != is_used or not is_valid:
        raise ValueError(f"{report.id}: its places, rows or evidence break a rule")
    return report


def _read_facts(
    row: Mapping[str, Any], families: Sequence[str], runs: Sequence[ReleaseRun]
) -> dict[str, Any]:
    """Return the facts about an engine, those that are stated and those that its runs show."""
    facts = _freeze_values(row)
    facts.pop("row", None)
    if "bounds" in row:
        facts["bounds"] = _read_bounds(row["bounds"], families)
    if not runs:
        return facts
    run_facts = _facts_of_runs(runs)
    conflicts = facts.keys() & run_facts.keys()
    if conflicts:
        raise ValueError(
            f"{row['id']}: runs show {', '.join(sorted(conflicts))}, which breaks the rule "
            "that they are not stated"
        )
    facts |= run_facts
    if not runs[-1].uses_filters:
        facts["places"] = ()
    return facts


def _read_bounds(row: Mapping[str, Sequence[str]], families: Sequence[str]) -> EngineBounds:
    """Read the families of each form of bounds, which are those of the patterns except those of
    patterns that begin with `!`. Forms may be listed together, with commas between them."""
    by_form = {}
    for forms, patterns in row.items():
        excluding = []
        including = []
        for pattern in patterns:
            if pattern.startswith("!"):
                excluding.append(pattern.removeprefix("!"))
            else:
                including.append(pattern)
        excluded = _expand_patterns(excluding, families)
        included = _expand_patterns(including, families)
        trusted = tuple(name for name in included if name not in excluded)
        for form in forms.split(", "):
            by_form[form] = trusted
    return EngineBounds(**by_form)


def _facts_of_runs(runs: Sequence[ReleaseRun]) -> dict[str, Any]:
    """Return the facts about an engine that its runs show."""
    releases = [TestedRelease(run.version, run.package, run.date) for run in runs]
    facts: dict[str, Any] = {
        "version": runs[-1].version,
        "evidence": RUN,
        "predicates": describe_predicates(runs),
        "releases": tuple(releases),
    }
    first = find_first_using(runs)
    if first is not None and first is not runs[0]:
        facts["since"] = first.version
    return facts


_Explanations = Mapping[tuple[str, str], Mapping[str, Any]]
"""The fields of the rows of an engine, by family and outcome."""


def _judge_runs(
    row: Mapping[str, Any],
    families: Sequence[str],
    runs: Sequence[ReleaseRun],
    common: Mapping[str, str],
    *,
    is_whole: bool,
) -> tuple[EngineVerdict, ...]:
    """Return the verdict on each family that the runs show, with the explanations of the rows."""
    explanations = _read_explanations(row, families)
    judge = _Judge(row, runs, common, explanations)
    verdicts = []
    for family in families:
        verdict, start = judge.judge(family, len(runs) - 1)
        for older in reversed(range(start)):
            if runs[older].outcome_of(family) in EFFECTS:
                older_verdict, _ = judge.judge(family, older)
                verdict = replace(verdict, older_verdict=older_verdict)
                break
        verdicts.append(verdict)
    stale = explanations.keys() - judge.used
    if is_whole and stale:
        raise ValueError(
            f"{row['id']}: no run shows {stale}, which breaks the rule that each row explains one"
        )
    return tuple(verdicts)


def _read_explanations(row: Mapping[str, Any], families: Sequence[str]) -> _Explanations:
    """Read the rows of an engine that was run."""
    explanations: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in row.get("row", ()):
        fields = _without_families(entry)
        outcome = entry.get("effect") or entry["verdict"]
        for family in _expand_patterns(entry["on"], families):
            key = (family, outcome)
            if key in explanations:
                raise ValueError(f"{row['id']}: two rows on {family}")
            explanations[key] = fields
    return explanations


def _without_families(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row but for the patterns of the families that it is about."""
    fields = dict(entry)
    del fields["on"]
    return fields


class _Judge:
    """The judge of what the runs of one engine show."""

    def __init__(
        self,
        row: Mapping[str, Any],
        runs: Sequence[ReleaseRun],
        common: Mapping[str, str],
        explanations: _Explanations,
    ) -> None:
        self._row = row
        self._runs = runs
        self._common = common
        self._explanations = explanations
        self._first = find_first_using(runs)
        self.used: set[tuple[str, str]] = set()
        """The explanations that a verdict has."""

    def judge(self, family: str, last: int) -> tuple[EngineVerdict, int]:
        """Return the verdict on the releases that end with this one and do the same, and the
        position of the first of them."""
        outcome = self._runs[last].outcome_of(family)
        start = last
        while start and self._runs[start - 1].outcome_of(family) == outcome:
            start -= 1
        newest = self._runs[last]
        # An explanation may name another source than the engine's.
        fields = {**self._common, **self._explain(family, outcome, newest)}
        verdict = EngineVerdict(
            **fields,
            family=family,
            since=self._name_start(start),
            until=self._name_end(last),
            predicates=newest.predicates_of(family),
        )
        _check(verdict)
        return verdict, start

    def _name_start(self, start: int) -> str | None:
        """Return the release since which a verdict holds; None if it holds since the engine uses
        filters, or if the engine uses none."""
        if self._first is None or start <= self._runs.index(self._first):
            return None
        return self._runs[start].version

    def _name_end(self, last: int) -> str | None:
        """Return the release until which a verdict holds; None for the newest."""
        is_newest = last == len(self._runs) - 1
        return None if is_newest else self._runs[last].version

    def _explain(self, family: str, outcome: str, run: ReleaseRun) -> Mapping[str, Any]:
        """Return the fields of the row that explains an outcome, and mark it as used."""
        self.used.add((family, outcome))
        fields = self._explanations.get((family, outcome))
        if fields is not None:
            return fields
        if outcome != UNUSED:
            raise ValueError(
                f"{run.engine} {run.version}: {outcome} on {family}, which breaks the rule "
                "that a row explains it"
            )
        return {"verdict": UNUSED, "explanation": self._row["default_explanation"]}


def _read_verdicts(
    row: Mapping[str, Any], families: Sequence[str], common: Mapping[str, Any]
) -> tuple[EngineVerdict, ...]:
    """Return the verdict on each family that the rows state, of an engine that was not run."""
    current: dict[str, EngineVerdict] = {}
    older: dict[str, EngineVerdict] = {}
    for entry in row.get("row", ()):
        fields = {**common, **_without_families(entry)}
        for family in _expand_patterns(entry["on"], families):
            verdict = EngineVerdict(family=family, **fields)
            _check(verdict)
            verdicts_by_family = current
            if verdict.until:
                verdicts_by_family = older
            if family in verdicts_by_family:
                raise ValueError(f"{row['id']}: two rows on {family}")
            verdicts_by_family[family] = verdict
    verdicts = []
    for family in families:
        verdict = current.get(family) or EngineVerdict(
            family=family,
            verdict=UNUSED,
            explanation=row["default_explanation"],
            **common,
        )
        verdicts.append(replace(verdict, older_verdict=older.get(family)))
    return tuple(verdicts)


def _expand_patterns(patterns: Iterable[str], families: Sequence[str]) -> list[str]:
    matches = []
    for pattern in patterns:
        ids = filter_names(families, pattern)
        if not ids:
            raise ValueError(f"{pattern!r} matches no family")
        matches += ids
    return matches


def _check(verdict: EngineVerdict) -> None:
    """Check that a row has an effect and a fix only if it is about harm, and that rows for older
    releases are about harm."""
    is_harm = verdict.verdict == HARM
    is_consistent = (
        verdict.verdict in (USED, UNUSED, HARM)
        and verdict.evidence in EVIDENCE
        and verdict.source.startswith("https://")
        and (verdict.effect in EFFECTS) == is_harm == (verdict.fix is not None)
        and (is_harm or verdict.until is None)
    )
    if not is_consistent:
        raise ValueError(f"{verdict.engine}: the row on {verdict.family} breaks a rule: {verdict}")


def _freeze_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with tuples in place of lists."""
    frozen = dict(row)
    for name, value in row.items():
        if isinstance(value, list):
            frozen[name] = tuple(value)
    return frozen
