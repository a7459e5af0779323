"""The answer to a shell: what can follow, or nothing. Errors are silent, and a file system that hangs is given up."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping

import click

VARIABLE = "_SBBF_COMPLETE"
_MOST_SECONDS = 5.0
_SEPARATOR = "\x1f"


def answer(program: click.Group, environment: Mapping[str, str]) -> int:
    """Print the script of a shell (`bash_source`) or what can follow the line that its variables hold (`bash_complete`)."""
    shell, _, step = environment[VARIABLE].partition("_")
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda number, frame: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
    try:
        if step == "source":
            from sbbf_tool.cli.completion.scripts import SCRIPTS

            text = SCRIPTS.get(shell, "")
        else:
            text = "".join(f"{item}\0" for item in _items(program, shell, environment))
        sys.stdout.buffer.write(os.fsencode(text))
    except BaseException:
        # An error in the middle of a command line would only disturb its writer.
        return 0
    return 0


def _items(program: click.Group, shell: str, environment: Mapping[str, str]) -> Iterator[str]:
    from sbbf_tool.cli.completion.candidates import complete
    from sbbf_tool.cli.completion.line import parse_line
    from sbbf_tool.display import escape

    if shell == "bash":
        line = parse_line(environment["_SBBF_LINE"], environment.get("_SBBF_BREAKS", ""))
        candidates = complete(program, line.words[1:], line.current)
        yield "files" if candidates.are_files else "words"
        words = (line.insert(candidates.prefix + word) for word, _ in candidates.words)
        yield from (word for word in words if word is not None)
        return
    typed = environment.get("_SBBF_WORDS", "")
    candidates = complete(program, typed.split(_SEPARATOR) if typed else [], environment.get("_SBBF_CURRENT", ""))
    yield "files" if candidates.are_files else "words"
    for word, text in candidates.words:
        # zsh has split the option off, and quotes what it inserts; fish does not know of the part after the sign.
        yield word if shell == "zsh" else candidates.prefix + word
        yield escape(" ".join(text.split()))
