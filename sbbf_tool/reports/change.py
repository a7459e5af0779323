"""What the reports of all verbs that change one file have in common."""

from __future__ import annotations

from collections.abc import Iterable

from sbbf_tool.frozen import Frozen, field
from sbbf_tool.numbers import format_count, format_percent
from sbbf_tool.reports.rows import OK, REFUSED, SKIPPED
from sbbf_tool.reports.tabular import Tabular


class ChangeReport(Tabular):
    """The file before and after a change."""

    _first = ("file",)

    file: str
    output: str
    """Path of the new file, which is `file` if it was changed in place."""
    dry_run: bool
    old_bytes: int
    new_bytes: int
    old_end_hash: str
    """BLAKE2b of the footer of the old file, and at least its last 64 bytes, in hexadecimal."""
    new_end_hash: str
    """The same of the new file."""
    is_first_change: bool = field(default=False, kw_only=True)
    """Whether the new file begins with the whole old one, at whose end no earlier change by `sbbf`
    was."""

    @property
    def only_removes(self) -> bool:
        """Whether the change removed filters and did nothing else, whatever the verb is called."""
        return False

    def outcome(self, *, in_table: bool = False) -> tuple[str, str | None]:
        """Return the status of the file in a run, and the reason if it is not `ok`; `in_table` is
        whether a commit replaces the file."""
        filters = getattr(self, "saturated_filters", ())
        if filters:
            return REFUSED, explain_refusal(filters)
        is_same = self.old_bytes == self.new_bytes and self.output == self.file
        if in_table and is_same and not self.dry_run:
            return SKIPPED, "the file has nothing to change"
        return OK, None

    def repeat(self) -> ChangeReport:
        """Return the report of a second run, if nothing else changes the file meanwhile; this one
        if that is not known."""
        return self


class SaturatedFilter(Frozen):
    """A filter that was built, but not written, because it would exclude hardly any value."""

    row_group: int
    column: str
    bitset_bytes: int
    fpp: float
    """False-positive rate estimated from the bits that are set."""


def explain_refusal(
    filters: Iterable[SaturatedFilter], ndv: float | None = None, sized_for: int | None = None
) -> str:
    """Explain why these filters were left out, and how to write them; `ndv` is the number of
    distinct values that one of them holds, and `sized_for` the number that the request states."""
    by_column: dict[str, list[SaturatedFilter]] = {}
    for saturated in filters:
        by_column.setdefault(saturated.column, []).append(saturated)
    parts = []
    for column, members in by_column.items():
        worst = max(members, key=lambda saturated: saturated.fpp)
        rate = f"{format_percent(worst.fpp)} with {worst.bitset_bytes:,} bytes"
        parts.append(
            f"column {column}: {format_count(len(members), 'filter')} left out, whose "
            f"false-positive rate would be {rate}"
        )
    values = ""
    if ndv is not None:
        values = f" (a row group has {format_count(round(ndv), 'distinct value')})"
    if sized_for is not None:
        cause = f"{sized_for:,} is the stated number of distinct values"
        if ndv is not None:
            cause += f", and a row group has {round(ndv):,}"
        return f"{'; '.join(parts)}; {cause}; state more, or force that they are written"
    return f"{'; '.join(parts)}; allow larger filters{values}, or force that they are written"


class BuiltFilter(Frozen):
    """One filter that was written."""

    row_group: int
    column: str
    values: int
    """Number of non-null values that were hashed; each value of a dictionary page counts once."""
    estimated_ndv: float | None
    offset: int
    header_bytes: int
    bitset_bytes: int
    fpp: float
    """False-positive rate estimated from the bits that are set."""


class RemovedFilter(Frozen):
    row_group: int
    column: str
