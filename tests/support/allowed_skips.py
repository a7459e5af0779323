"""Skipped tests, counted by reason against tests/allowed_skips.toml: a run with `--allowed-skips TABLE` fails if one more is skipped.

A skipped test detects nothing, so the run reports new skips. The reasons in the file are regular expressions that match a whole
reason.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ALLOWED_SKIPS = Path(__file__).parents[1] / "allowed_skips.toml"


def read_allowances(path: Path, tables: Iterable[str]) -> dict[str, int]:
    """Return how many tests may be skipped for each reason, added up over the tables.

    Raises pytest.UsageError if the file has no such table.
    """
    document = tomllib.loads(path.read_text())
    allowances: Counter[str] = Counter()
    for table in tables:
        if table not in document:
            raise pytest.UsageError(f"{path.name} has no table {table}; it has {', '.join(document)}")
        allowances.update(document[table])
    return dict(allowances)


def find_excess(reasons: dict[str, int], allowances: dict[str, int]) -> list[str]:
    """Compare the number of tests skipped for each reason with the number allowed; a line for each excess."""
    counts: Counter[str] = Counter()
    lines = []
    for reason, tests in sorted(reasons.items()):
        patterns = [pattern for pattern in allowances if re.fullmatch(pattern, reason, re.DOTALL)]
        if patterns:
            counts[patterns[0]] += tests
        else:
            lines.append(f"{tests} skipped, none allowed: {reason}")
    excess = {pattern: tests for pattern, tests in counts.items() if tests > allowances[pattern]}
    return lines + [f"{tests} skipped, {allowances[pattern]} allowed: {pattern}" for pattern, tests in excess.items()]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--allowed-skips",
        action="append",
        metavar="TABLE",
        help="Fail if more tests are skipped than this table of tests/allowed_skips.toml allows; tables that are given together add up.",
    )


def pytest_configure(config: pytest.Config) -> None:
    tables = config.getoption("--allowed-skips")
    if tables:
        is_worker = hasattr(config, "workerinput")
        config.pluginmanager.register(SkipCount(config, {} if is_worker else read_allowances(ALLOWED_SKIPS, tables)), "skip-count")


class SkipCount:
    """Counts skips in the process that reports; the workers of pytest-xdist only pass on what they did not collect."""

    def __init__(self, config: pytest.Config, allowances: dict[str, int]) -> None:
        self._config = config
        self._allowances = allowances
        self._reasons: Counter[str] = Counter()
        self._modules: dict[str, str] = {}
        self._excess: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._reasons[_reason(report)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._modules[report.nodeid] = _reason(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self._modules.update(getattr(node, "workeroutput", {}).get("skipped_modules", {}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["skipped_modules"] = self._modules
            return
        self._reasons.update(self._modules.values())
        self._excess = find_excess(self._reasons, self._allowances)
        if self._excess and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._excess:
            terminalreporter.section("more skips than tests/allowed_skips.toml allows", red=True, bold=True)
            for line in self._excess:
                terminalreporter.write_line(line)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    longrepr = report.longrepr
    text = longrepr[2] if isinstance(longrepr, (tuple, list)) else str(longrepr)
    return text.removeprefix("Skipped: ")
