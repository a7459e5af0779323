"""When Paimon's planner uses file indexes, and how it converts a literal for an older data file.

operation/AppendOnlyFileStoreScan.java, KeyValueFileStore.java, schema/SchemaEvolutionUtil.java, casting/CastExecutors.java.
"""

from __future__ import annotations

from sbbf_tool.extensions.paimon.data_types import INTEGER_BITS, DataType
from sbbf_tool.extensions.paimon.index_options import parse_boolean
from sbbf_tool.extensions.paimon.table_schema import TableSchema


def why_unused(schema: TableSchema) -> str | None:
    """Return why Paimon's planner does not use the file indexes of the table; None when it does."""
    if not parse_boolean(schema.options, "file-index.read.enabled", default=True):
        return "file-index.read.enabled is false"
    if schema.primary_keys and not parse_boolean(schema.options, "deletion-vectors.enabled", default=False):
        return "the table has a primary key and no deletion vectors"
    return None


def why_not_convertible(current_type: DataType, file_type: DataType, key: bytes | int) -> str | None:
    """Return why a literal of the current type cannot be looked up in a file written with another type; None when it can.

    Paimon converts a literal only to a type that is equal apart from NOT NULL, and to a narrower integer type that fits the value.
    """
    if current_type.same_ignoring_null(file_type):
        return None
    file_bits = INTEGER_BITS.get(file_type.root, 0)
    if not 0 < file_bits < INTEGER_BITS.get(current_type.root, 0) or isinstance(key, bytes):
        return f"the column was {file_type} when the file was written"
    if not -(1 << file_bits - 1) <= key < 1 << file_bits - 1:
        return f"the value does not fit the file's {file_type}"
    return None
