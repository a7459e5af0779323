"""The Arrow types that writers based on Arrow store in the footer, under the key `ARROW:schema`: a
serialized schema in base64.

Readers based on Arrow use these types instead of the column's Parquet type.
"""

from __future__ import annotations

import base64
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from sbbf_tool.parquet.columns import Column, is_leaf
from sbbf_tool.parquet.footer import Footer

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = "ARROW:schema"


def arrow_type(footer: Footer, column: Column) -> str | None:
    """Return the type of a top-level column in the file's ARROW:schema: an extension's name, such
    as `arrow.uuid`, or the name of the type without its parameters, such as `decimal32`.

    Returns None if the file has no such schema, and for all columns except fixed-length bytes and
    DECIMAL: all readers interpret other Parquet types alike, and the look-up imports pyarrow.
    """
    is_decimal = column.logical is not None and column.logical.kind == "DECIMAL"
    if column.nested or not (is_decimal or column.physical == "FIXED_LEN_BYTE_ARRAY"):
        return None
    entries = footer.metadata.key_value_metadata or ()
    stored = next((entry.value for entry in entries if entry.key == _KEY), None)
    if stored is None:
        return None
    # A table may have another name for the column.
    leaves = list(filter(is_leaf, footer.metadata.schema[1:]))
    types = _types_of(stored)
    return types.get(leaves[column.index].name)


@lru_cache(maxsize=2)
def _types_of(stored: str) -> dict[str, str]:
    """Map the names of fields to their types, leaving out names that several fields have."""
    import pyarrow as pa

    try:
        message = base64.b64decode(stored)
        schema = pa.ipc.read_schema(pa.py_buffer(message))
    except (pa.ArrowException, OSError, ValueError):
        return {}  # damaged, or written by a later version of Arrow
    times = Counter(schema.names)
    return {field.name: _name_of(field) for field in schema if times[field.name] == 1}


def _name_of(field: pa.Field) -> str:
    extension = (field.metadata or {}).get(b"ARROW:extension:name")
    if extension is not None:
        return str(extension, "utf-8", "replace")
    kind = field.type
    return str(getattr(kind, "extension_name", "")) or str(kind).partition("(")[0]
