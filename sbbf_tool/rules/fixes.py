"""The commands that cure a finding, as program and arguments."""

from __future__ import annotations

from sbbf_tool.bloom import sizing
from sbbf_tool.rules.facts import ColumnFacts
from sbbf_tool.rules.rule import Limits

_USUAL_FPP = 0.01
_LONGEST_HEADER = 19


def repair(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    """Touches the footer alone."""
    return ("sbbf", "repair", column.file, "--in-place")


def rebuild(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    """Replaces what lies, or cannot be used, by sound filters built from the data."""
    if _gets_no_filter(column):
        return remove(column, limits)
    return ("sbbf", "repair", column.file, "--rebuild", "-c", column.name, "--in-place")


def add(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    """A filter in every row group; those that are there are built anew."""
    if _gets_no_filter(column):
        return remove(column, limits)
    replace = ("--replace",) if column.filters else ()
    fpp = () if limits.max_fpp is None else ("--fpp", f"{min(limits.max_fpp, _USUAL_FPP):g}")
    return ("sbbf", "add-filter", column.file, "-c", column.name, *replace, *fpp, "--in-place")


def _gets_no_filter(column: ColumnFacts) -> bool:
    return column.column.physical == "BOOLEAN"


def remove(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    return ("sbbf", "remove-filter", column.file, "-c", column.name, "--in-place")


def remove_bytes_too(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    """For what must not stay in the file."""
    return ("sbbf", "remove-filter", column.file, "-c", column.name, "--compact", "--in-place")


def shrink(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    """To the smallest size that keeps the usual error rate."""
    return ("sbbf", "resize", column.file, "-c", column.name, "--fpp", f"{_USUAL_FPP:g}", "--in-place")


def shrink_to_portable(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    return ("sbbf", "resize", column.file, "-c", column.name, "--bytes", str(sizing.MAX_BYTES), "--in-place")


def shrink_to_share(column: ColumnFacts, limits: Limits) -> tuple[str, ...]:
    """To the largest size that stays within the share of its data that filters may take; away with them where that is too small."""
    share = (limits.max_bytes_share or 0) * min(chunk.chunk_bytes for chunk in column.filters)
    most = 1 << max(0, int(share) - _LONGEST_HEADER).bit_length() >> 1
    if most < sizing.MIN_BYTES:
        return remove(column, limits)
    return ("sbbf", "resize", column.file, "-c", column.name, "--bytes", str(most), "--in-place")
