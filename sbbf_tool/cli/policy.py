"""The options of `sbbf check`, and the policy that the options and the configuration file state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.config import read_config
from sbbf_tool.cli.sizes import BYTES

if TYPE_CHECKING:
    from sbbf_tool.operations.check import Policy

_LIMITS = ("require", "max_fpp", "max_bytes_share", "min_ndv", "min_chunk_bytes")


_OPTIONS = (
    click.option("--require", multiple=True, metavar="COLUMN", help="This column must have a filter in every row group (repeat for more)."),
    click.option("--max-fpp", type=float, metavar="RATE", help="Maximum false-positive rate of a filter."),
    click.option(
        "--max-bytes-share", type=float, metavar="SHARE", help="Maximum size of a column's filters, in bytes per byte of its data."
    ),
    click.option("--min-ndv", type=int, metavar="N", help="Minimum number of distinct values in a filter."),
    click.option("--min-chunk-bytes", type=BYTES, metavar="BYTES", help="Minimum size, in bytes, of a column chunk that has a filter."),
    click.option("--select", multiple=True, metavar="RULE", help="Run only this rule, or the rules of this group (repeat for more)."),
    click.option("--ignore", multiple=True, metavar="RULE", help="Skip this rule, or the rules of this group (repeat for more)."),
    click.option("--quick", is_flag=True, default=None, help="Skip the rules that read data."),
    click.option("--fail-on", metavar="SEVERITY", help="Fail on findings of at least this severity.  [default: error]"),
    click.option("--config", metavar="FILE", help="Read settings from pyproject.toml ([tool.sbbf.check]) or another TOML file ([check])."),
)


def policy_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the policy to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def from_options(options: dict[str, Any], config: str | None) -> Policy:
    """Merge command-line options over the settings of the configuration file. Raises UsageError."""
    from sbbf_tool.operations.check import Policy
    from sbbf_tool.rules.rule import Limits

    overrides = {name: value for name, value in options.items() if value not in (None, ())}
    settings = {**({} if config is None else read_config(config)), **overrides}
    limits = Limits(**{name: settings.pop(name) for name in _LIMITS if name in settings})
    return Policy(limits=limits, **settings)


def show_rules(*, as_json: bool) -> None:
    """Print all rules, group by group."""
    from sbbf_tool.rules.catalog import RULES

    rows = [
        {"name": rule.name, "group": rule.group, "severity": rule.severity, "reads": rule.reads.name.lower(), "message": rule.message}
        for rule in RULES
    ]
    if as_json:
        render.show_json("rules", {"rules": [{**row, "why": rule.why} for row, rule in zip(rows, RULES, strict=True)]})
    else:
        render.show_table(tuple(rows[0]), [tuple(row.values()) for row in rows])
