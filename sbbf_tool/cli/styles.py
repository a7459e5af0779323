"""The five styles of the output, by meaning. Words always carry the meaning too, so that nothing is lost without colours."""

from __future__ import annotations

import re
from typing import Any

import click

CERTAIN, MAYBE, ERROR, WARNING, FAINT = "certain", "maybe", "error", "warning", "faint"

_STYLES: dict[str, dict[str, Any]] = {
    CERTAIN: {"fg": "green"},
    MAYBE: {"fg": "cyan"},
    ERROR: {"fg": "red", "bold": True},
    WARNING: {"fg": "yellow"},
    FAINT: {"dim": True},
}

_WORDS = {
    CERTAIN: ("absent", "verified", "all values found", "skipped", "used", "add", "+"),
    MAYBE: ("maybe", "remains", "keep"),
    ERROR: ("error", "false negatives", "unreadable", "not verified", "HARM", "loses rows", "fails", "!"),
    WARNING: ("warning", "cannot say", "+!", "-!"),
    FAINT: ("info", "note", "none", "no filter", "no gain", "-"),
}
_MEANINGS = {word: style for style, words in _WORDS.items() for word in words}
"""The style of a word that is a whole cell of a table."""

_LABEL = re.compile(r"(?:sbbf: )?((error|warning|info|note|fix|undo|hidden):) ")
_LABEL_STYLES = {"error": ERROR, "warning": WARNING}


def paint(text: str, style: str | None) -> str:
    """Return the text in a style, with the codes that a terminal interprets."""
    return text if style is None else click.style(text, **_STYLES[style])


def style_of(word: str) -> str | None:
    """Return the style of a cell of words; None for words without one."""
    return _MEANINGS.get(word)


def paint_label(line: str, *, is_error: bool = False) -> str:
    """Paint the label with which a line begins, such as `warning:`; the label of an error is `sbbf:`."""
    match = _LABEL.match(line)
    if match is None:
        return paint("sbbf:", ERROR) + line[5:] if is_error and line.startswith("sbbf:") else line
    return line[: match.start(1)] + paint(match[1], _LABEL_STYLES.get(match[2], FAINT)) + line[match.end(1) :]


def paint_last(lines: list[str], word: str) -> list[str]:
    """Paint the last `word` before a colon in the lines, in its style."""
    for at in reversed(range(len(lines))):
        before, label, after = lines[at].rpartition(f"{word}:")
        if label:
            return [*lines[:at], before + paint(label, style_of(word)) + after, *lines[at + 1 :]]
    return lines
