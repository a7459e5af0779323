"""What `repair` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.add import BuiltFilter
from sbbf_tool.reports.findings import ERROR, Finding
from sbbf_tool.reports.rows import FileRow


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
    takes_rebuild: tuple[str, ...] = ()
    """Rules of `left` whose findings `rebuild` repairs."""
    unproven: tuple[str, ...] = ()
    """Chunks whose pages cannot be decoded, so that nothing is known of their filters: place and reason."""
    cut_back_to: int | None = None
    """The length that the file had before an append to it was interrupted, and has again. A dry run then looks no further."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow decoded too, to the same values: of a writer that the tests do not know, or without statistics."""
    not_cross_checked: int = 0
    """Column chunks that pyarrow was to decode too, and cannot."""

    @property
    def is_clean(self) -> bool:
        """There was nothing to do."""
        return not self.steps and self.cut_back_to is None

    @property
    def is_sound(self) -> bool:
        """Nothing is left that is an error."""
        return not any(finding.severity == ERROR for finding in self.left)


@dataclass(frozen=True)
class RepairRow(FileRow):
    report: RepairReport | None = None
