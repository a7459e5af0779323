"""From the options and settings of `sbbf check` to the policy they mean."""

from __future__ import annotations

import json
from typing import Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.config import read_config
from sbbf_tool.operations.check import Policy
from sbbf_tool.operations.rules import RULES
from sbbf_tool.operations.rules.rule import Limits

_LIMITS = ("require", "max_fpp", "max_bytes_share", "min_ndv", "min_chunk_bytes")


def from_options(options: dict[str, Any], config: str | None) -> Policy:
    """Options that were given, then settings of the file. Raises UsageError."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    settings = {**(read_config(config) if config else {}), **given}
    limits = Limits(**{name: settings.pop(name) for name in _LIMITS if name in settings})
    return Policy(limits=limits, **settings)


def show_rules(*, as_json: bool) -> None:
    """All rules, in the order of their families."""
    rows = [
        {"name": rule.name, "theme": rule.theme, "severity": rule.severity, "reads": rule.reads.name.lower(), "message": rule.message}
        for rule in RULES
    ]
    if as_json:
        click.echo(json.dumps([{**row, "why": rule.why} for row, rule in zip(rows, RULES, strict=True)]))
    else:
        render.show_table(tuple(rows[0]), [tuple(row.values()) for row in rows])
