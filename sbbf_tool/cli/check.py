"""`sbbf check`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from sbbf_tool.cli import formats
from sbbf_tool.cli.files import each_report, warn_of_append
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.policy import policy_options
from sbbf_tool.cli.spelling import spell


@click.command(short_help="Hold filters to rules, as a gate for CI.")
@click.argument("paths", nargs=-1, metavar="PATH...")
@policy_options
@keys_option
@page_limit_option
@click.option("--format", "form", type=click.Choice(formats.NAMES), default="text", show_default=True, help="How to tell what was found.")
@click.option("--list-rules", is_flag=True, help="Show all rules, and check nothing.")
def command(
    paths: tuple[str, ...], form: str, config: str | None, keys: Any, max_page_bytes: int | None, list_rules: bool, **options: Any
) -> int:
    """Hold the filters of files to rules: whether they are true, well formed, secret where the data is, and worth their bytes.

    PATH is a Parquet file, a folder (all *.parquet below it) or a glob. Options of the command line go before settings of --config.
    Exit code 0: no finding is as bad as --fail-on; 1: some is; 2: an unknown rule, column or setting; 3: something could not be read.
    """
    from sbbf_tool.cli import policy
    from sbbf_tool.operations.check import Checked, checked, ensure_columns

    if list_rules:
        policy.show_rules(as_json=form == "json")
        return 0
    if not paths:
        raise click.UsageError("no file to check")
    asked = policy.from_options(options, config)
    ensure_columns(paths, asked, keys)

    def show(done: Checked) -> int:
        warn_of_append(done.report.file)
        shown.add(done.report)
        for error in done.errors:
            say(f"sbbf: {spell(str(error))}", err=True)
        return max([int(done.report.failed), *(error.exit_code for error in done.errors)])

    with formats.opened(form) as shown:
        return max(each_report(paths, partial(checked, policy=asked, keys=keys, max_page_bytes=max_page_bytes), show))
