"""`sbbf completion`. A script of the shell calls `sbbf` with `_SBBF_COMPLETE=<shell>_complete`, which prints what can follow."""

from __future__ import annotations

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.completion.scripts import SCRIPTS


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(tuple(SCRIPTS)))
def command(shell: str) -> None:
    """Print the script that completes commands, options, files, columns, rules and engines in a shell. A column is completed from the
    footer of the file that is already on the command line; a URL is never read.

    \b
    bash (~/.bashrc):                    eval "$(sbbf completion bash)"
    zsh (~/.zshrc, after compinit):      eval "$(sbbf completion zsh)"
    fish (~/.config/fish/config.fish):   sbbf completion fish | source
    """
    click.echo(SCRIPTS[shell], nl=False)
