"""The table of runs, `runs.toml` beside the table of engines: write it, and keep the runs that it
has."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sbbf_tool.query_engines
from sbbf_tool.query_engines.runs import OUTCOMES, ReleaseRun, order_of, parse_runs
from sbbf_tool.query_engines.table import read_families
from sbbf_tool.query_engines.terms import CANNOT_COMPARE, PREDICATES

RUNS = Path(sbbf_tool.query_engines.__file__).with_name("runs.toml")
_WIDTH = 140
_HEADER = """\
# What releases of query engines do with Bloom filters: written by tests/engine_matrix/run.py,
# not by hand.
#
# questions       A hash of the files and conditions that were run.
# families        The ids, in engines.toml, of the families of columns that were run.
# [[runs]]        Releases of an engine, from the oldest on, that do the same: version, package and
#                 day of the run.
# [[runs.on]]     What they do in queries with these predicates, by families: used, loses rows,
#                 fails, or cannot compare (they have no such comparison, or cannot read the type).
#                 They use no filter on the other families. They have no predicate that is missing.
"""


def keep_runs(path: Path, digest: str) -> list[ReleaseRun]:
    """Return the runs in the file; none if they are of other questions."""
    data = tomllib.loads(path.read_text()) if path.exists() else {}
    return parse_runs(data) if data.get("questions") == digest else []


def write_runs(path: Path, digest: str, runs: Iterable[ReleaseRun]) -> None:
    """Write the runs, by engine and version."""
    families = [family.id for family in read_families()]
    groups: list[list[ReleaseRun]] = []
    for run in sorted(runs, key=lambda run: (run.engine, *order_of(run))):
        if (
            groups
            and groups[-1][0].engine == run.engine
            and _outcomes(groups[-1][0]) == _outcomes(run)
        ):
            groups[-1].append(run)
        else:
            groups.append([run])
    in_runs = {
        family
        for group in groups
        for by_family in group[0].outcomes.values()
        for family in by_family
    }
    tested = [family for family in families if family in in_runs]
    parts = [_HEADER, f'questions = "{digest}"', _format_list("families", tested)]
    for group in groups:
        parts += ["", "[[runs]]", f'engine = "{group[0].engine}"', "releases = ["]
        parts += [
            f'  {{ version = "{run.version}", package = "{run.package}", date = {run.date} }},'
            for run in group
        ]
        parts.append("]")
        for predicates, by_family in _group_predicates(_outcomes(group[0])):
            parts += ["", "[[runs.on]]", _format_list("predicates", predicates)]
            for outcome in OUTCOMES:
                if members := [family for family in tested if by_family.get(family) == outcome]:
                    parts.append(
                        _format_list(outcome if " " not in outcome else f'"{outcome}"', members)
                    )
    path.write_text("\n".join([*parts, ""]))


def _outcomes(run: ReleaseRun) -> dict[str, Mapping[str, str]]:
    """Return the outcomes of the predicates that the engine has."""
    return {
        name: by_family
        for name, by_family in run.outcomes.items()
        if set(by_family.values()) != {CANNOT_COMPARE}
    }


def _group_predicates(
    outcomes: Mapping[str, Mapping[str, str]],
) -> list[tuple[list[str], Mapping[str, str]]]:
    """Return predicates with the same outcomes together."""
    groups: list[tuple[list[str], Mapping[str, str]]] = []
    for name in (name for name in PREDICATES if name in outcomes):
        for names, by_family in groups:
            if outcomes[name] == by_family:
                names.append(name)
                break
        else:
            groups.append(([name], outcomes[name]))
    return groups


def _format_list(name: str, values: Sequence[Any]) -> str:
    words = [f'"{value}"' for value in values]
    line = f"{name} = [{', '.join(words)}]"
    if len(line) <= _WIDTH:
        return line
    rows = textwrap.wrap(
        " ".join(f"{word}," for word in words),
        _WIDTH - 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join([f"{name} = [", *(f"  {row}" for row in rows), "]"])
