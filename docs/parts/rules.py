"""The rules: a table for each group, and the explanation of each rule below it."""

from __future__ import annotations

from collections.abc import Iterable

from parts.markdown import code, paragraphs, plain, table
from sbbf_tool.reports.findings import RuleReport
from sbbf_tool.rules.catalog import list_rules


def explain_group(group: str) -> str:
    """Explain the rules of a group."""
    return _explain(rule for rule in list_rules() if rule.group == group)


def explain_index_rules() -> str:
    """Explain the rules for Paimon's indexes."""
    return _explain(list_rules("paimon-check"))


def _explain(rules: Iterable[RuleReport]) -> str:
    rows, parts = [], []
    for rule in rules:
        rows.append(
            [
                f"[{rule.name}](#{rule.name})",
                rule.group,
                rule.severity,
                rule.reads,
                plain(rule.message),
            ]
        )
        parts += [f"### {rule.name}", plain(rule.message), plain(rule.why)]
        if rule.readers:
            parts.append(f"Readers that it harms: {', '.join(rule.readers)}.")
        if rule.example:
            parts.append(
                f"Example: {code(rule.example) if '`' not in rule.example else plain(rule.example)}"
            )
        is_command = rule.fix is not None and rule.fix.startswith("sbbf ")
        fix = (
            "no command of `sbbf` fixes it."
            if rule.fix is None
            else code(rule.fix)
            if is_command
            else plain(rule.fix)
        )
        parts.append(f"Fix: {fix}")
    return paragraphs(table(["rule", "group", "severity", "reads", "finds"], rows), *parts)
