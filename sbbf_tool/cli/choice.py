"""Another verb that an option of an extension chooses for a command, such as `explain --run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sbbf_tool.cli.progress import show_progress

if TYPE_CHECKING:
    from sbbf_tool.cli.files import Files
    from sbbf_tool.verbs.verb import CombiningVerb

_KEY = "sbbf.choice"


class VerbChoice(NamedTuple):
    """A verb about all files together, in place of that of the command."""

    make: Callable[..., CombiningVerb[Any, Any]]
    """Makes the verb of the files and the other arguments of the command. Raises
    click.UsageError."""
    show: Callable[[Files, Any], int]
    """Prints the answer, and returns the exit code."""
    step: str
    """What is done, for the line of progress."""

    def choose(self) -> None:
        """Let the command of the current context carry this verb."""
        click.get_current_context().meta[_KEY] = self

    def carry(self, files: Files, *arguments: object) -> int:
        """Carry the verb to the files, and print its answer; return the exit code."""
        plan = files.plan(self.make(files, *arguments))
        with show_progress(self.step):
            answer = plan.combine()
        return self.show(files, answer)


def chosen_verb() -> VerbChoice | None:
    """Return the verb that an option of an extension has chosen."""
    choice: VerbChoice | None = click.get_current_context().meta.get(_KEY)
    return choice
