"""An unfinished append: commands that change the file undo it; where a file cannot be opened, the
error names it.

The storage package knows the journal of such an append but not the footer format; this module
combines the two.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool import log
from sbbf_tool.display import redact
from sbbf_tool.errors import ChangedError, RefusedError, SbbfError, UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.columns import leaf_columns
from sbbf_tool.parquet.footer import TAIL_BYTES, Footer, Leaves, Tail, parse_tail
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.encryption.file_cipher import FileCipher, KeyRing


def undo(
    name: str, target: str, ring: KeyRing | None, dry_run: bool = False
) -> tuple[list[str], int | None]:
    """Undo an interrupted append to a file, and remove temporary files of killed commands beside
    it.

    Returns warnings as text, and the length that the file was truncated to, or None. A dry run
    changes nothing, and returns the length of the real run. Raises ChangedError if the append is
    still running, WriteError, and RefusedError if the file would have to change although the result
    is written to another `target`, or if its journal cannot be trusted.
    """
    changes = target == name and not dry_run
    warnings = []
    length = None
    try:
        length = places.recover(name, partial(ensure_footer, ring), changes=changes)
    except RefusedError as error:
        if changes or isinstance(error, ChangedError):
            raise
        warnings.append(str(error))
    if length is not None and dry_run:
        warnings.append(
            f"{name}: an append to it was not finished: the next command that changes it, such "
            "as repair, undoes the append"
        )
    elif length is not None and not changes:
        hint = "repair the file in place first"
        raise RefusedError(
            "an append to the file was interrupted, and undoing it would change the file",
            file=name,
            hint=hint,
        )
    elif length is not None:
        warnings.append(
            f"{name}: an append to the file had been interrupted; the file was truncated to "
            f"{length:,} bytes"
        )
        size = format_count(length, "byte")
        log.info("undid an interrupted append to %s: %s", redact(name), size)
    if not dry_run:
        places.sweep(name)
    return warnings, length


def ensure_footer(ring: KeyRing | None, read: Callable[[int, int], bytes], end: int) -> None:
    """Raise UnreadableError unless the first `end` bytes of a file end with a footer that parses.

    If the footer is encrypted and its key is not in `ring`, the FileCryptoMetaData must parse.
    """
    tail = parse_tail(read(end - TAIL_BYTES, TAIL_BYTES), end)
    with suppress(RefusedError):
        parse_stored_footer(read(tail.start, tail.length), tail, ring)


def parse_stored_footer(
    stored: bytes, tail: Tail, ring: KeyRing | None, leaves: Leaves = leaf_columns
) -> tuple[Footer, FileCipher | None]:
    """Parse a footer, encrypted or not, and return it and its cipher: see `encryption.footers`."""
    if ring is None and not tail.encrypted:
        return Footer(stored, tail.start, leaves=leaves), None
    from sbbf_tool.encryption.file_cipher import parse_footer

    return parse_footer(stored, tail.start, encrypted=tail.encrypted, ring=ring, leaves=leaves)


def explain(error: UnreadableError, name: str) -> None:
    """Add to the error of an unreadable file that an unfinished append is the reason, if that is
    the case."""
    try:
        length = places.recover(name, partial(ensure_footer, None), changes=False)
    except ChangedError as running:
        error.message = f"{running.message} ({error.message})"
        error.hint = running.hint
        return
    except SbbfError:
        return
    if length is not None:
        error.message = f"an append to it was interrupted ({error.message})"
        error.hint = "repair undoes the append"
