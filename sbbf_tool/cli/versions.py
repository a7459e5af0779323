"""The implementations that this installation uses: the kernel of the filters, and the reader of footers."""

from __future__ import annotations

from sbbf_tool.bloom import kernels
from sbbf_tool.parquet import structs


def describe_implementations() -> tuple[str, ...]:
    """Describe each implementation in one line."""
    return kernels.describe(), structs.describe()
