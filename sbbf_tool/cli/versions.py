"""What does the work in this installation, where there is a choice: the kernel of the filters, and the reader of footers."""

from __future__ import annotations

from sbbf_tool.bloom import kernels
from sbbf_tool.parquet import structs


def describe_implementations() -> tuple[str, ...]:
    """Describe each implementation in one line for people."""
    return kernels.describe(), structs.describe()
