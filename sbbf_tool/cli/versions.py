"""The implementations that this installation uses, of those that can do the same work: filter kernel and footer reader."""

from __future__ import annotations

from sbbf_tool.bloom import kernels
from sbbf_tool.parquet import structs


def describe_implementations() -> tuple[str, ...]:
    """Describe each implementation in one line."""
    return kernels.describe(), structs.describe()
