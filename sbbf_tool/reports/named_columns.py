"""What files have under the names of columns that a request names: files of one folder may have different schemas."""

from __future__ import annotations

from sbbf_tool.frozen import Frozen


class NamedColumn(Frozen):
    """What one file has under the name of a requested column."""

    name: str
    """The name as requested."""
    type: str | None
    """Type of the column; `partition` if the folder of the file states its value; None if the file has no such column."""
    reason: str | None = None
    """If the file has no such column: the error, with similar names."""
