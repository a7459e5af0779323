"""When Paimon's planner looks at file indexes at all, and what becomes of a literal on its way to an older data file.

operation/AppendOnlyFileStoreScan.java, KeyValueFileStore.java, schema/SchemaEvolutionUtil.java, casting/CastExecutors.java.
"""

from __future__ import annotations

from sbbf_tool.paimon.data_types import INTEGER_BITS, DataType
from sbbf_tool.paimon.index_options import boolean_option
from sbbf_tool.paimon.table_schema import TableSchema


def why_unused(schema: TableSchema) -> str | None:
    """Why Paimon's planner does not look at the table's file indexes; None when it does."""
    if not boolean_option(schema.options, "file-index.read.enabled", default=True):
        return "file-index.read.enabled is false"
    if schema.primary_keys and not boolean_option(schema.options, "deletion-vectors.enabled", default=False):
        return "a primary-key table without deletion vectors"
    return None


def why_not_pushed(today: DataType, in_file: DataType, key: bytes | int) -> str | None:
    """Why a literal of today's type cannot be asked of a file written under another type; None when it can.

    Paimon takes literals only through the same type, but for NOT NULL, and from a wider integer to a narrower one that holds the value.
    """
    if today.same_ignoring_null(in_file):
        return None
    narrow = INTEGER_BITS.get(in_file.root, 0)
    if not 0 < narrow < INTEGER_BITS.get(today.root, 0) or isinstance(key, bytes):
        return f"the column was {in_file} when the file was written"
    if not -(1 << narrow - 1) <= key < 1 << narrow - 1:
        return f"the value does not fit the file's {in_file}"
    return None
