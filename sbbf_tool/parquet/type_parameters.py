"""The parameters of types that the format forbids, or that are beyond this package (LogicalTypes.md).

They are checked once, where a column is made: a column with such a parameter is of unknown type, and no value of it is looked up.
"""

from __future__ import annotations

from math import log10

from sbbf_tool.parquet.logical import Logical

MAX_DIGITS = 1000
"""Of a DECIMAL. The format sets no limit for a BYTE_ARRAY; query engines stop at 76."""
_BYTES = {"INT32": 4, "INT64": 8}


def doubt_of(physical: str, type_length: int | None, logical: Logical | None) -> str | None:
    """Return why values of such a type cannot be told, or None. `type_length` is as the schema states it."""
    if physical == "FIXED_LEN_BYTE_ARRAY" and (type_length or 0) <= 0:
        stated = "is not stated" if type_length is None else f"is {type_length:,}"
        return f"the length of its FIXED_LEN_BYTE_ARRAY values {stated}, and must be 1 or more"
    if logical is None:
        return None
    problem = None
    if logical.kind == "DECIMAL":
        problem = _decimal_problem(physical, type_length or 0, logical)
    elif logical.kind == "INT" and logical.bits not in (8, 16, 32, 64):
        problem = "its width must be 8, 16, 32 or 64 bits"
    elif logical.kind in ("TIME", "TIMESTAMP") and not logical.unit:
        problem = "it states no unit that is known here"
    return problem and f"{logical} is no valid type: {problem}"


def _decimal_problem(physical: str, type_length: int, logical: Logical) -> str | None:
    precision, scale = logical.precision, logical.scale
    if precision < 1:
        return "its precision must be 1 or more"
    if not 0 <= scale <= precision:
        return "its scale must be from 0 to its precision"
    num_bytes = _BYTES.get(physical, type_length)
    if num_bytes and precision > (most := int((8 * num_bytes - 1) * log10(2))):
        return f"{num_bytes:,} bytes hold at most {most:,} digits"
    return f"sbbf reads at most {MAX_DIGITS:,} digits" if precision > MAX_DIGITS else None
