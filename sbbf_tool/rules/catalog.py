"""All rules, in listing order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pkgutil import get_data

from sbbf_tool.extension import load, named
from sbbf_tool.reports.rules import RuleReport
from sbbf_tool.rules import correctness, efficiency, encryption, policy
from sbbf_tool.rules import format as format_rules
from sbbf_tool.rules.rule import AnyRule, Rule

RULES: tuple[Rule, ...] = (*correctness.RULES, *format_rules.RULES, *encryption.RULES, *efficiency.RULES, *policy.RULES)
GROUPS = tuple(dict.fromkeys(rule.group for rule in RULES))
ABOUT_FILTERS = (correctness.GROUP, format_rules.GROUP, encryption.GROUP)
"""The groups of rules for defects of filters, as opposed to their cost and to requirements of the user."""

HARMED_READERS: Mapping[str, tuple[str, ...]] = {
    "empty-boolean-filter": ("DataFusion",),
    "interval-not-normalised": ("DuckDB",),
    "zero-form-missing": ("DataFusion", "parquet-java"),
    "unreadable-filter": ("Iceberg", "ClickHouse", "parquet-go"),
    "draft-dialect": ("ClickHouse", "DuckDB"),
    "missing-length": ("parquet-java 1.14.0 to 1.15.2", "Iceberg 1.8 and 1.9", "hyparquet"),
    "wrong-length": ("arrow-rs", "parquet-java", "Arrow C++", "DuckDB"),
    "partial-block": ("ClickHouse", "DuckDB", "Doris", "hyparquet"),
    "not-power-of-two": ("Arrow C++", "Velox", "Impala"),
    "under-64-bytes": ("Impala",),
    "over-128-mib": ("Trino", "parquet-java", "Arrow C++", "Velox", "Impala"),
    "larger-than-chunk": ("StarRocks",),
    "dictionary-encoded": ("parquet-java", "Impala"),
}
"""The readers that a rule's `why` names as harmed, by the rule's name; a rule that harms all or unknown readers is not listed."""


def rules_of(schema: str) -> Sequence[AnyRule]:
    """Return the rules of a kind of report: `check`, or what an extension calls its own."""
    rules: Sequence[AnyRule] = RULES if schema == "check" else load(named("rules")[schema])
    return rules


def all_rules() -> list[AnyRule]:
    """Return the rules of `check` and of all extensions."""
    return [rule for schema in ("check", *named("rules")) for rule in rules_of(schema)]


@lru_cache(maxsize=1)
def _examples() -> Mapping[str, Mapping[str, str | None]]:
    """Read the examples, which lie beside the rules: those of Parquet files are in the golden reports of the tests."""
    packages = (__package__, *(name.partition(":")[0].rpartition(".")[0] for name in named("rules").values()))
    examples: dict[str, Mapping[str, str | None]] = {}
    for package in packages:
        with suppress(FileNotFoundError):
            examples |= json.loads(get_data(package, "examples.json") or b"{}")
    return examples


def list_rules(schema: str = "check") -> tuple[RuleReport, ...]:
    """Return all rules of a kind of report as rows."""
    return tuple(map(report_rule, rules_of(schema)))


def report_rule(rule: AnyRule) -> RuleReport:
    """Return a rule as a row of a report, with its example."""
    example = _examples().get(rule.name, {})
    return RuleReport(
        *(rule.name, rule.group, rule.severity, rule.reads.name.lower(), rule.message, rule.why),
        readers=HARMED_READERS.get(rule.name, ()),
        example=example.get("example"),
        fix=example.get("fix"),
    )
