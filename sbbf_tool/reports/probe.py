"""What `probe` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class RowGroupAnswer:
    """What one row group's filter says of one value: `absent`, `maybe`, `no filter` or `cannot say`, with the reason for the last."""

    row_group: int
    answer: str
    reason: str | None = None

    @property
    def is_absent(self) -> bool:
        return self.answer == "absent"


@dataclass(frozen=True)
class ValueAnswer:
    value: str
    row_groups: tuple[RowGroupAnswer, ...]
    note: str | None = None

    @property
    def is_absent(self) -> bool:
        """Certainly in no row group. True of a file without row groups."""
        return all(answer.is_absent for answer in self.row_groups)


@dataclass(frozen=True)
class ProbeReport:
    file: str
    column: str
    type: str
    values: tuple[ValueAnswer, ...]
    bytes_read: int
    requests: int = 0
    """Questions put to a server; 0 for a local file."""

    @property
    def is_absent(self) -> bool:
        """Every value is certainly absent from the whole file."""
        return all(value.is_absent for value in self.values)


@dataclass(frozen=True)
class ProbeRow(FileRow):
    report: ProbeReport | None = None
