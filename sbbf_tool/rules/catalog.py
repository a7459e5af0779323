"""All rules, in listing order."""

from __future__ import annotations

from sbbf_tool.rules import limits, secrecy, structure, truth, worth
from sbbf_tool.rules.rule import Rule

RULES: tuple[Rule, ...] = (*truth.RULES, *structure.RULES, *secrecy.RULES, *worth.RULES, *limits.RULES)
THEMES = tuple(dict.fromkeys(rule.theme for rule in RULES))
