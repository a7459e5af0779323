"""All rules, in listing order, and the former names of rules and groups."""

from __future__ import annotations

from sbbf_tool.reports.rules import RuleReport
from sbbf_tool.rules import correctness, efficiency, encryption, policy
from sbbf_tool.rules import format as format_rules
from sbbf_tool.rules.rule import Rule

RULES: tuple[Rule, ...] = (*correctness.RULES, *format_rules.RULES, *encryption.RULES, *efficiency.RULES, *policy.RULES)
GROUPS = tuple(dict.fromkeys(rule.group for rule in RULES))
ABOUT_FILTERS = (correctness.GROUP, format_rules.GROUP, encryption.GROUP)
"""The groups of rules for defects of filters, as opposed to their cost and to requirements of the user."""

RENAMED = {
    "values-missed": "false-negatives",
    "required-filter": "missing-filter",
    "ragged-bitset": "partial-block",
    "offset-means-none": "placeholder-offset",
    "nan-unprotected": "nan-forms-missing",
    "one-zero-only": "zero-form-missing",
    "int96-stored-form-only": "int96-form-missing",
    "truth": "correctness",
    "structure": "format",
    "secrecy": "encryption",
    "worth": "efficiency",
    "limits": "policy",
}
"""New names of rules and groups, by former name."""


def list_rules() -> tuple[RuleReport, ...]:
    """Return all rules as rows of a report."""
    return tuple(RuleReport(rule.name, rule.group, rule.severity, rule.reads.name.lower(), rule.message, rule.why) for rule in RULES)
