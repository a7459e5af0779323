"""Stages of .ci/run and .ci/nightly: `--stage NAME` fails for a skip that tests/allowed_skips.toml
does not expect of this stage.

A skipped test detects nothing, so where CI installs what a test needs, a skip is a failure. Each
stage also adds a line to the file that SBBF_STAGES names: stage, cases, seconds, and the memory of
its largest process.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ALLOWED_SKIPS = Path(__file__).parents[1] / "allowed_skips.toml"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stage",
        help="Fail for skips that tests/allowed_skips.toml allows neither in all stages nor here.",
    )


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--stage")
    if name:
        allowed = tomllib.loads(ALLOWED_SKIPS.read_text())
        config.pluginmanager.register(
            Stage(config, name, allowed["always"] + allowed.get(name, [])), "stage"
        )


class Stage:
    """Counts cases and skips in the process that reports; the workers of pytest-xdist only pass on
    what they did not collect."""

    def __init__(self, config: pytest.Config, name: str, allowed: list[str]) -> None:
        self._config = config
        self._name = name
        self._allowed = allowed
        self._begin = time.monotonic()
        self._cases = 0
        self._skips: Counter[str] = Counter()
        self._modules: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._cases += report.when == "call" or report.skipped
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skips[_reason(report)] += 1

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
        self._skips.update(self._modules.values())
        for reason in [
            reason
            for reason in self._skips
            if any(re.fullmatch(pattern, reason, re.DOTALL) for pattern in self._allowed)
        ]:
            del self._skips[reason]
        if self._skips and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if table := os.environ.get("SBBF_STAGES"):
            peak = max(
                resource.getrusage(who).ru_maxrss
                for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            )
            megabytes = peak / (1e6 if sys.platform == "darwin" else 1e3)
            with open(table, "a") as lines:
                lines.write(
                    f"{self._name:24}{self._cases:7}{time.monotonic() - self._begin:7.0f} "
                    f"s{megabytes:7.0f} MB\n"
                )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._skips and not hasattr(self._config, "workeroutput"):
            terminalreporter.section(
                f"skips that stage {self._name} does not expect", red=True, bold=True
            )
            for reason, tests in sorted(self._skips.items()):
                terminalreporter.write_line(f"{tests} skipped: {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    longrepr = report.longrepr
    text = longrepr[2] if isinstance(longrepr, (tuple, list)) else str(longrepr)
    return text.removeprefix("Skipped: ")
