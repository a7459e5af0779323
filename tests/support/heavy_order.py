"""Which heavy tests a run with a time limit starts, and in which order.

With `--heavy-seconds N` the tests of changed rooms come first, the others in an order drawn by a hash of the commit and the test's name,
so that none is always last. A test starts only if the minutes it states still fit; the others are reported as `not run`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Generator, Iterable
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest

REPOSITORY = Path(__file__).parents[2]
NOT_RUN = "not run"
MINUTES = 2.0
"""The minutes of a test whose marker states none."""

ROOMS = {
    "sbbf_tool/editing": ("tests/faults",),
    "sbbf_tool/operations/paimon": ("tests/paimon",),
    "sbbf_tool/query_engines": ("tests/interop", "tests/query_engines"),
    "sbbf_tool/storage": ("tests/faults", "tests/objects"),
    "pyspark_sbbf": ("tests/spark",),
}
"""Packages with tests in a further folder beside the one of the same name."""


def find_test_paths(changed_files: Iterable[str]) -> set[str]:
    """Return the folders and files of the tests of changed files."""
    paths = set()
    for name in changed_files:
        path = PurePosixPath(name)
        if path.parts[0] == "sbbf_tool" and len(path.parts) > 2:
            paths.add(f"tests/{path.parts[1]}")
        elif path.parts[0] == "tests":
            paths.add(name)
        paths.update(folder for package, folders in ROOMS.items() if path.is_relative_to(package) for folder in folders)
    return paths


def draw_order(names: Iterable[str], changed_files: Iterable[str], commit: str) -> list[str]:
    """Sort the names of tests: those of changed rooms first, each part in the order of a hash of commit and name."""
    paths = [PurePosixPath(path) for path in find_test_paths(changed_files)]

    def key(name: str) -> tuple[bool, bytes]:
        file = PurePosixPath(name.partition("::")[0])
        return not any(file.is_relative_to(path) for path in paths), sha256(f"{commit} {name}".encode()).digest()

    return sorted(set(names), key=key)


def stated_minutes(item: pytest.Item) -> float:
    """Return the minutes that an item's markers state: those of the test, and those of its environment."""
    heavy, environment = item.get_closest_marker("heavy"), item.get_closest_marker("environment")
    minutes = heavy.kwargs.get("minutes", MINUTES) if heavy else 0
    return minutes + (environment.kwargs["minutes"] if environment else 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--heavy-seconds", type=float, help="Start no heavy test that would end later than this after the run began.")


def pytest_configure(config: pytest.Config) -> None:
    seconds = config.getoption("--heavy-seconds")
    if seconds is not None:
        config.pluginmanager.register(HeavyTests(time.monotonic() + seconds), "heavy-tests")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    return (NOT_RUN, "-", ("NOT RUN", {"yellow": True})) if report.outcome == NOT_RUN else None


class _OutOfTime(pytest.skip.Exception):
    """A test would end too late."""


class HeavyTests:
    """A plugin that orders the tests and starts those that can finish before `end` (of the monotonic clock)."""

    def __init__(self, end: float) -> None:
        self._end = end

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        names = {item: _drawn_name(item) for item in items}
        order = {name: place for place, name in enumerate(draw_order(names.values(), _changed_files(), _git("rev-parse", "HEAD")))}
        items.sort(key=lambda item: order[names[item]])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        # As a skip, and not in place of the whole protocol: the teardown that follows ends the fixtures that the next test does not share.
        if item.get_closest_marker("heavy") is not None and time.monotonic() + 60 * stated_minutes(item) > self._end:
            raise _OutOfTime(NOT_RUN)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and call.excinfo.errisinstance(_OutOfTime):
            report.outcome = NOT_RUN  # type: ignore[assignment]
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = terminalreporter.stats.get(NOT_RUN, [])
        if reports:
            terminalreporter.section(f"{len(reports)} not run, for want of time", yellow=True)
            for report in reports:
                terminalreporter.write_line(report.nodeid)


def _drawn_name(item: pytest.Item) -> str:
    """Return the name by which a test is ordered: its file's name where the tests of a file share an expensive fixture."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009
    shares = any(fixture.scope == "module" and fixture.baseid.endswith(".py") for definitions in fixtures for fixture in definitions)
    return item.nodeid.partition("::")[0] if shares else item.nodeid.partition("[")[0]


def _changed_files() -> list[str]:
    """Return the files that differ from the commit where the branch began, or, on the main branch, from the parent."""
    head, base = _git("rev-parse", "HEAD"), _git("merge-base", "HEAD", "origin/main")
    if not base or base == head:
        base = _git("rev-parse", "-q", "--verify", "HEAD~1")
    return _git("diff", "--name-only", base).splitlines() if base else []


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
