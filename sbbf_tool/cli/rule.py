"""`sbbf rule`."""

from __future__ import annotations

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.page import SCREEN_ROWS, Page
from sbbf_tool.cli.tables import SUMMARY, WORD, Heading
from sbbf_tool.reports.findings import RulesReport

_COLUMNS = (
    Heading("name", WORD),
    Heading("group", WORD, 2),
    Heading("severity", WORD),
    Heading("reads", WORD, 3),
    Heading("message", SUMMARY, 1),
)


@click.command(cls=Command)
@click.argument("rule", metavar="[RULE]", required=False)
@output_options()
def command(rule: str | None, outputs: Outputs) -> None:
    """Explain a rule of sbbf check or of an extension: what it finds, why, which readers it harms,
    an example and the fix.

    \b
    $ sbbf rule saturated
    $ sbbf rule

    Without RULE, all rules are listed, those of extensions last.
    """
    from sbbf_tool.rules.catalog import all_rules, report_rule
    from sbbf_tool.verbs.check import find_rule

    if rule is None:
        outputs.print("rules", RulesReport(tuple(map(report_rule, all_rules()))), _show_rules)
    else:
        outputs.print("rules", RulesReport((find_rule(rule),)), _show_rule)


def _show_rules(page: Page, report: RulesReport) -> None:
    page.table(_COLUMNS, report.rules, most_rows=SCREEN_ROWS)
    if page.is_terminal:
        page.say("sbbf rule NAME explains a rule")


def _show_rule(page: Page, report: RulesReport) -> None:
    (rule,) = report.rules
    page.say(f"{rule.name}: {rule.severity}, group {rule.group}, reads {rule.reads}")
    for line in rule.explanation:
        page.say(line)
