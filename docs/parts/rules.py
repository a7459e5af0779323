"""The pages of the rules."""

from __future__ import annotations

from itertools import chain

from parts.markdown import code, paragraphs, plain, table
from sbbf_tool.reports.rules import RuleReport
from sbbf_tool.rules.catalog import CATALOGS, list_rules

FOLDER = "reference/rules"


def read_rules() -> dict[str, RuleReport]:
    """Return all rules, those of Paimon's indexes too, by name."""
    return {rule.name: rule for rule in chain.from_iterable(map(list_rules, CATALOGS))}


def begin_page(name: str) -> str:
    """Return the page of a rule without its generated part."""
    return f'# {name}\n\n<!-- [[[cog rule("{name}") ]]] -->\n<!-- [[[end]]] -->\n'


def list_group(group: str) -> str:
    """Build the table of the rules of a group."""
    return table(["rule", "severity", "reads", "finds"], (_row_of(rule) for rule in list_rules() if rule.group == group))


def list_index_rules() -> str:
    """Build the table of the rules for Paimon's indexes."""
    rules = list_rules("paimon-check")
    return table(
        ["rule", "group", "severity", "reads", "finds"], ([name, rule.group, *row] for rule in rules for name, *row in [_row_of(rule)])
    )


def _row_of(rule: RuleReport) -> list[str]:
    return [f"[{rule.name}]({rule.name}.md)", rule.severity, rule.reads, plain(rule.message)]


def explain(name: str) -> str:
    """Explain a rule: its facts, reason, readers, example and fix."""
    rule = read_rules()[name]
    facts = table(["group", "severity", "reads"], [[f"[{rule.group}](index.md#{rule.group})", rule.severity, rule.reads]])
    parts = [plain(rule.message), facts, "## Reason", plain(rule.why)]
    if rule.readers:
        parts += ["## Readers that it harms", "\n".join(f"- {reader}" for reader in rule.readers)]
    if rule.example:
        parts += ["## Example", code(rule.example) if "`" not in rule.example else plain(rule.example)]
    is_command = rule.fix is not None and rule.fix.startswith("sbbf ")
    fix = "No command of `sbbf` fixes it." if rule.fix is None else code(rule.fix) if is_command else plain(rule.fix)
    return paragraphs(*parts, "## Fix", fix)
