"""`sbbf rule`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.output import stop_if_unread
from sbbf_tool.cli.page import Page

if TYPE_CHECKING:
    from sbbf_tool.reports.rules import RulesReport


@click.command(cls=Command)
@click.argument("rule", metavar="[RULE]", required=False)
@output_options()
def command(rule: str | None, outputs: Outputs) -> None:
    """Explain a rule of sbbf check or of an extension: what it finds, why, which readers it harms, an example and the fix.

    \b
    $ sbbf rule saturated
    $ sbbf rule

    Without RULE, the rules of sbbf check are listed, as with sbbf check --list-rules.
    """
    from sbbf_tool.cli import policy

    if rule is None:
        policy.show_rules(outputs)
        return
    from sbbf_tool.reports.rules import RulesReport
    from sbbf_tool.verbs.check import find_rule

    report = RulesReport((find_rule(rule),))
    outputs.print("rules", report, _show_rule)
    stop_if_unread()


def _show_rule(page: Page, report: RulesReport) -> None:
    (rule,) = report.rules
    page.heading(f"{rule.name}: {rule.severity}, group {rule.group}, reads {rule.reads}")
    for line in rule.explanation:
        page.say(line)
