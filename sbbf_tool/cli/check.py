"""`sbbf check`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from sbbf_tool.cli import formats
from sbbf_tool.cli.files import each_report
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.sizes import BYTES


@click.command(short_help="Hold filters to rules, as a gate for CI.")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option("--require", multiple=True, metavar="COLUMN", help="This column must have a filter in every row group (repeat for more).")
@click.option("--max-fpp", type=float, metavar="RATE", help="No filter may let a larger share of absent values pass.")
@click.option("--max-bytes-share", type=float, metavar="SHARE", help="Most bytes of a column's filters for each byte of its data.")
@click.option("--min-ndv", type=int, metavar="N", help="No filter may be of fewer distinct values.")
@click.option("--min-chunk-bytes", type=BYTES, metavar="BYTES", help="No filter may be of a column chunk with fewer bytes.")
@click.option("--select", multiple=True, metavar="RULE", help="Run this rule, or rules of this theme, alone (repeat for more).")
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave this rule, or rules of this theme, out (repeat for more).")
@click.option("--quick", is_flag=True, default=None, help="Leave out the rules that read data.")
@click.option("--fail-on", metavar="SEVERITY", help="Fail on findings of this severity or a worse one.  [default: error]")
@click.option("--config", metavar="FILE", help="Take settings from pyproject.toml ([tool.sbbf.check]) or another TOML file ([check]).")
@keys_option
@click.option("--format", "form", type=click.Choice(formats.NAMES), default="text", show_default=True, help="How to tell what was found.")
@click.option("--list-rules", is_flag=True, help="Show all rules, and check nothing.")
def command(paths: tuple[str, ...], form: str, config: str | None, keys: Any, list_rules: bool, **options: Any) -> int:
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
        shown.add(done.report)
        for error in done.errors:
            click.echo(f"sbbf: {error}", err=True)
        return max([int(done.report.failed), *(error.exit_code for error in done.errors)])

    with formats.opened(form) as shown:
        return max(each_report(paths, partial(checked, policy=asked, keys=keys), show))
