"""An unfinished append: commands that change the file undo it; where a file cannot be opened, the error names it.

The storage package knows the journal of such an append but not the footer format; this module combines the two.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool import log
from sbbf_tool.display import redact
from sbbf_tool.errors import ChangedError, RefusedError, SbbfError, UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.footer import TAIL_BYTES, Footer, parse_tail
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.encryption.file_cipher import KeyRing


class InterruptedAppend(NamedTuple):
    """The outcome for an interrupted append: the length to which the file was truncated, or would be; None without such an append."""

    truncated_to: int | None
    warnings: tuple[str, ...] = ()


def finish(name: str, ring: KeyRing | None, *, changes: bool) -> InterruptedAppend:
    """Undo an interrupted append to a file, or only report it if the command does not change this file.

    Raises ChangedError if the append is still running, WriteError and, if the command changes the file, RefusedError for its journal.
    """
    if changes:
        length = places.recover(name, partial(ensure_footer, ring))
        if length is not None:
            log.info("undid an interrupted append to %s: %s", redact(name), format_count(length, "byte"))
        return InterruptedAppend(length)
    try:
        return InterruptedAppend(places.interrupted_length(name, partial(ensure_footer, ring)))
    except ChangedError:
        raise
    except RefusedError as error:
        return InterruptedAppend(None, (str(error),))


def ensure_footer(ring: KeyRing | None, read: Callable[[int, int], bytes], end: int) -> None:
    """Raise UnreadableError unless the first `end` bytes of a file end with a footer that parses.

    If the footer is encrypted and its key is not in `ring`, the FileCryptoMetaData must parse.
    """
    tail = parse_tail(read(end - TAIL_BYTES, TAIL_BYTES), end)
    stored = read(tail.start, tail.length)
    if ring is None and not tail.encrypted:
        Footer(stored, tail.start)
        return
    from sbbf_tool.encryption.footers import parse_footer

    with suppress(RefusedError):
        parse_footer(stored, tail.start, encrypted=tail.encrypted, ring=ring)


def explain(error: UnreadableError, name: str) -> None:
    """Add to the error of an unreadable file that an unfinished append is the reason, if that is the case."""
    try:
        length = places.interrupted_length(name, partial(ensure_footer, None))
    except ChangedError as running:
        error.message, error.hint = f"{running.message} ({error.message})", running.hint
    except SbbfError:
        return
    else:
        if length is not None:
            error.message = f"an append to it was interrupted ({error.message})"
            error.hint = "repair undoes the append"
