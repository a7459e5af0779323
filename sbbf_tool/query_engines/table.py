"""Read the table of engines in `engines.toml`, and check it against the rules at the top of that file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import filter as filter_names
from functools import lru_cache
from pkgutil import get_data
from typing import Any

from sbbf_tool.query_engines.terms import EFFECTS, EVIDENCE, HARM, PLACES, UNUSED, USED
from sbbf_tool.reports.engines import ColumnFamily, EngineReport, EnginesReport, EngineVerdict


@lru_cache(maxsize=1)
def read_table() -> EnginesReport:
    """Read the table, once."""
    # Importing importlib.resources takes three times as long.
    data = get_data(__package__, "engines.toml")
    assert data is not None, "the package contains the file"
    return parse_table(tomllib.loads(data.decode()))


def parse_table(data: Mapping[str, Any]) -> EnginesReport:
    """Parse the table in `engines.toml`. Raises ValueError or TypeError if the table breaks a rule at the top of that file."""
    families = tuple(ColumnFamily(**{key: _freeze(value) for key, value in row.items()}) for row in data["families"])
    reports = tuple(_read_engine(row, [family.id for family in families]) for row in data["engine"])
    for ids in ([family.id for family in families], [report.id for report in reports]):
        if len(set(ids)) < len(ids):
            raise ValueError(f"duplicate id in {ids}")
    return EnginesReport(families, reports)


def _read_engine(row: Mapping[str, Any], families: Sequence[str]) -> EngineReport:
    facts = {key: _freeze(value) for key, value in row.items() if key != "row"}
    common = {"engine": row["id"], "name": row["name"], "source": row["source"], "evidence": row["evidence"]}
    current: dict[str, EngineVerdict] = {}
    older: dict[str, EngineVerdict] = {}
    for entry in row.get("row", ()):
        fields = {key: value for key, value in entry.items() if key != "on"}
        for family in _expand_patterns(entry["on"], families):
            verdict = EngineVerdict(**{**common, "family": family, **fields})
            _check(verdict)
            verdicts_by_family = older if verdict.until else current
            if family in verdicts_by_family:
                raise ValueError(f"{row['id']}: two rows on {family}")
            verdicts_by_family[family] = verdict
    default = {"verdict": UNUSED, "explanation": row["default_explanation"]}
    verdicts = [
        replace(current.get(family) or EngineVerdict(**{**common, "family": family, **default}), older_verdict=older.get(family))
        for family in families
    ]
    report = EngineReport(**facts, verdicts=tuple(verdicts))
    if report.uses_filters != bool(current) or not set(report.places) <= PLACES.keys() or report.evidence not in EVIDENCE:
        raise ValueError(f"{report.id}: its places, rows or evidence break a rule")
    return report


def _expand_patterns(patterns: Iterable[str], families: Sequence[str]) -> list[str]:
    matches: list[str] = []
    for pattern in patterns:
        ids = filter_names(families, pattern)
        if not ids:
            raise ValueError(f"{pattern!r} matches no family")
        matches += ids
    return matches


def _check(verdict: EngineVerdict) -> None:
    """Check that a row has an effect and a fix only if it is about harm, and that rows for older releases are about harm."""
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


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
