"""How the filters of a column compare with its declaration: a row of the report of `apply`."""

from __future__ import annotations

from collections.abc import Sequence

from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.reports.change import BuiltFilter


class DeclaredColumn(Frozen):
    """One column of a file: its row groups by how their filters compare with the declaration,
    before the change."""

    column: str
    is_declared: bool
    """Whether a declaration names the column; if not, it has filters that none declares."""
    fpp: float | None
    """Target false-positive rate; None for a column that is not declared."""
    satisfied: int
    """Row groups whose filter satisfies the declaration, or that need none."""
    missing: int
    weaker: int
    """Row groups whose filter has a measured false-positive rate above 1.25 x the target."""
    too_large: int
    """Row groups whose filter has more than 4 x the size that its values need, or is above a
    limit."""
    broken: int
    """Row groups whose filter readers cannot use: unreadable, of a draft, or without the values."""
    undeclared: int
    """Row groups with a filter that no declaration names."""
    limited: int
    """Row groups whose filter, a present one that stays or a new one, a limit on the size keeps
    from the target rate, or prevents."""
    bytes: int
    """Bytes of the column's existing filters, as the footer states them."""
    bytes_to_replace: int
    """Of these, bytes of filters that the change replaces or removes."""
    estimated_bytes: int
    """Bytes of the filters to build, at most: every value counts as distinct."""
    fact: str | None
    """What is wrong with the first filter that does not satisfy the declaration."""

    @property
    def deviations(self) -> int:
        """Row groups whose filters do not satisfy the declaration."""
        return self.missing + self.weaker + self.too_large + self.broken

    def before(self, built: Sequence[BuiltFilter]) -> DeclaredColumn:
        """Return the column before a change that built these of its filters, which were missing."""
        size = 0
        for bloom in built:
            size += bloom.header_bytes + bloom.bitset_bytes
        return replace(
            self,
            satisfied=max(0, self.satisfied - len(built)),
            missing=self.missing + len(built),
            bytes=self.bytes - size,
            estimated_bytes=self.estimated_bytes + size,
        )

    def repeat(self, new_bytes: int, num_removals: int) -> DeclaredColumn:
        """Return the column in a second run, after a change that built `new_bytes` of filters and
        removed `num_removals` filters."""
        return replace(
            self,
            satisfied=self.satisfied + self.deviations,
            missing=0,
            weaker=0,
            too_large=0,
            broken=0,
            undeclared=0 if num_removals else self.undeclared,
            bytes=self.bytes - self.bytes_to_replace + new_bytes,
            bytes_to_replace=0,
            estimated_bytes=0,
            fact=None,
        )
