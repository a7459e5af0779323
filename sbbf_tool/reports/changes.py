"""What the operations that change files answer with: `add_filters`, `remove_filters`, `repair` and `resize_filters`."""

from __future__ import annotations

from dataclasses import dataclass, field

from sbbf_tool.reports.findings import ERROR, Finding


@dataclass(frozen=True)
class BuiltFilter:
    """One filter as it was written, or, of a dry run, as it would be."""

    row_group: int
    column: str
    values: int
    """Non-null values that were hashed; each once where a dictionary page holds them all."""
    estimated_ndv: float | None
    offset: int
    header_bytes: int
    bitset_bytes: int
    fpp: float
    """Error rate measured from the bits that are set."""


@dataclass(frozen=True)
class AddReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[BuiltFilter, ...]
    data_bytes_read: int
    """Bytes of the chunks that were read to build them: of one that is all dictionary-encoded, that page and the headers of the others."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class RemoveReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    removed: tuple[tuple[int, str], ...]
    """(row group, column) of each filter taken away."""
    way: str
    """`cut back` to the footer before, `compacted`, or `new footer`."""
    unreferenced_bytes: int
    """Bytes left in the file that nothing leads to any more."""
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class RepairStep:
    """What was done with the filter of one column chunk, or, of a dry run, would be."""

    row_group: int
    column: str
    treatment: str
    """`state length`, `drop` or `rebuild`."""
    rules: tuple[str, ...]
    """Those that found something wrong with it."""
    facts: tuple[str, ...]
    """What each of them saw."""
    built: BuiltFilter | None = None
    """The filter that takes its place."""


@dataclass(frozen=True)
class RepairReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    steps: tuple[RepairStep, ...] = ()
    left: tuple[Finding, ...] = ()
    """What the rules found and nothing was done about: it takes rebuilding, or a key."""
    unproven: tuple[str, ...] = ()
    """Chunks whose pages cannot be decoded, so that nothing is known of their filters: place and reason."""
    cut_back_to: int | None = None
    """The length that the file had before an append to it was interrupted, and has again. A dry run then looks no further."""
    warnings: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """There was nothing to do."""
        return not self.steps and self.cut_back_to is None

    @property
    def is_sound(self) -> bool:
        """Nothing is left that is an error."""
        return not any(finding.severity == ERROR for finding in self.left)


@dataclass(frozen=True)
class ResizedFilter:
    """One filter that was made smaller, or built anew, or, of a dry run, would be."""

    row_group: int
    column: str
    way: str
    """`folded`, or `rebuilt` from the data."""
    offset: int
    old_bytes: int
    """Of the bitset, like `new_bytes`."""
    new_bytes: int
    old_fpp: float
    new_fpp: float


@dataclass(frozen=True)
class ResizeReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[ResizedFilter, ...]
    unchanged: int
    """Filters that already have the size."""
    left: tuple[str, ...]
    """Filters that folding does not bring to the size: place and reason."""
    data_bytes_read: int = 0
    """Bytes of the chunks that were read to rebuild filters."""
    warnings: tuple[str, ...] = ()
