"""`sbbf rule`, and the examples of the rules, which are those of the golden reports."""

from __future__ import annotations

import json
from pathlib import Path

import sbbf_tool.rules
from sbbf_tool.cli import run
from sbbf_tool.display import to_json
from sbbf_tool.rules.catalog import HARMED_READERS, RULES, all_rules
from support.tables import each

GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLES = Path(sbbf_tool.rules.__file__).with_name("examples.json")
NAMES = [rule.name for rule in RULES]
ALL_RULES = all_rules()


def golden_example(rule: str) -> dict[str, str | None]:
    report = json.loads((GOLDEN / rule / "expected.json").read_text())
    findings = [finding for finding in report["findings"] if finding["rule"] == rule]
    finding = next((finding for finding in findings if finding["fix"]), findings[0])
    evidence = finding["evidence"][0]
    row_group = "" if evidence["row_group"] is None else f", row group {evidence['row_group']}"
    fix = " ".join(finding["fix"]["command"]).replace(report["file"], "FILE") if finding["fix"] else None
    place = "" if finding["column"] is None else f"column {finding['column']}{row_group}: "
    return {"example": place + evidence["fact"], "fix": fix}


def test_the_examples_are_those_of_the_golden_reports(request):
    text = to_json({name: golden_example(name) for name in NAMES if (GOLDEN / name).is_dir()}, indent=1) + "\n"
    if request.config.getoption("--bless"):
        EXAMPLES.write_text(text)
    assert EXAMPLES.read_text() == text


@each("rule", ALL_RULES)
def test_each_rule_is_explained(rule, capfd):
    assert run(["rule", rule.name]) == 0
    out, err = capfd.readouterr()
    heading, message, why, *more = out.splitlines()
    assert heading == f"{rule.name}: {rule.severity}, group {rule.group}, reads {rule.reads.name.lower()}"
    assert (message, why, err) == (rule.message, rule.why, "")
    labels = [line.split(" ")[0] for line in more]
    assert labels == [*(["readers:"] if rule.name in HARMED_READERS else []), "example:", "fix:"]


def test_harmed_readers_are_named_by_the_rule():
    assert HARMED_READERS.keys() <= set(NAMES)
    for rule in RULES:
        for reader in HARMED_READERS.get(rule.name, ()):
            assert reader.split(" ")[0] in rule.message + rule.why


def test_without_a_name_all_rules_are_listed(capfd):
    assert run(["rule"]) == 0
    assert [line.split()[0] for line in capfd.readouterr().out.splitlines()[1:]] == [rule.name for rule in all_rules()]
