"""Which rules of a catalogue run: those that are selected and not ignored, by name or group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from sbbf_tool.errors import UsageError
from sbbf_tool.rules.facts import Reads


def ensure_valid(names: Iterable[str], valid: Sequence[str], noun: str) -> None:
    """Raise UsageError if a name is not valid."""
    for name in names:
        if name not in valid:
            near = get_close_matches(name, valid, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(valid)}"
            raise UsageError(f"unknown {noun} {name!r}", hint=hint)


def why_not_selected(name: str, group: str, reads: Reads, select: Collection[str], ignore: Collection[str], quick: bool) -> str | None:
    """Return why a rule without a limit does not run; None if it does."""
    if name in ignore or group in ignore:
        return "ignored"
    if select and name not in select and group not in select:
        return "not selected"
    return "a quick check does not read the data" if quick and reads is Reads.DATA else None
