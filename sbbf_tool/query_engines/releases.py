"""Find the run of a release that a user names, such as `duckdb-1.4`, `spark-4.0` or `chdb-4.4`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sbbf_tool.errors import UsageError
from sbbf_tool.query_engines.runs import ReleaseRun, numbers_of, read_runs
from sbbf_tool.query_engines.verdicts import find_engine
from sbbf_tool.reports.engines import EngineReport

_SEPARATOR = re.compile(r"-\d")
_RELEASE = re.compile(r"(?P<name>.+?)[-= @]+v?(?P<version>\d+(\.\w+)*)")


def find_release(text: str) -> EngineReport:
    """Return the table of the engine as it was in this release: that of the newest release up to it that was run.

    `duckdb-1.4` is the newest release of 1.4 that was run. The name is that of an engine or, with the versions of its package, of the
    package: `chdb-4.4`. A name without a version stands for the newest release. Raises UsageError.
    """
    match = _RELEASE.fullmatch(text.strip())
    if match is None or _SEPARATOR.search(match["name"]):
        return _find_engine_without_version(text.strip())
    name, version = match["name"], match["version"]
    of_package = [run for runs in read_runs().values() for run in runs if run.package.split()[0] == name.casefold() != run.engine]
    engine = find_engine(of_package[0].engine if of_package else name)
    if not engine.releases:
        raise UsageError(f"no release of {engine.name} was run", hint=f"name it without a version, for {engine.version}")
    if not of_package and name.casefold() not in (engine.id, engine.name.casefold()):
        raise UsageError(f"the versions of {name} are not those of {engine.name}", hint=f"name a version of {engine.id}")
    return _read_release(engine, of_package or read_runs()[engine.id], version, is_package=bool(of_package))


def is_release(text: str, engine: EngineReport) -> bool:
    """Return whether `engine`, which `find_release` returned for this text, is the very release or one of those that it names."""
    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        return True
    (release,) = engine.releases
    target = numbers_of(match["version"])
    return any(numbers_of(version)[: len(target)] == target for version in (release.version, release.package.split()[1]))


def _find_engine_without_version(text: str) -> EngineReport:
    """Return the newest table of an engine. Raises UsageError, for an engine with something that is no version too."""
    name, _, version = text.partition("-")
    try:
        return find_engine(text)
    except UsageError as error:
        try:
            engine = find_engine(name)
        except UsageError:
            raise error from None
    raise UsageError(f"{version!r} of {text!r} is no version", hint=f"name one such as {engine.id}-{engine.version}")


def _read_release(engine: EngineReport, runs: Sequence[ReleaseRun], version: str, *, is_package: bool) -> EngineReport:
    from sbbf_tool.query_engines.table import read_release

    target = numbers_of(version)
    older = [run for run in runs if _numbers(run, is_package)[: len(target)] <= target]
    if not older:
        oldest = runs[0].package if is_package else f"{engine.name} {runs[0].version}"
        raise UsageError(f"{engine.name} {version} is older than the releases that were run", hint=f"the oldest is {oldest}")
    return read_release(older[-1])


def _numbers(run: ReleaseRun, is_package: bool) -> list[int]:
    return numbers_of(run.package.split()[1] if is_package else run.version)
