"""Known answers of Paimon's Java, in the form that the tests need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sbbf_tool.extensions.paimon.bloom64 import KIND
from sbbf_tool.extensions.paimon.table_schema import DataType
from sbbf_tool.gregorian import date_of

Answers = dict[str, Any]


def bloom_answers(bloom: Answers) -> Iterator[tuple[Answers, str, Answers]]:
    """Yield each data file, column, and Paimon's answers of its filter."""
    for file in bloom["files"]:
        for column, answer in (file["index"] or {}).items():
            if f"entry:{KIND}" in answer:
                yield file, column, answer


def format_value(value: Any, data_type: DataType) -> str:
    """Format a value of the answers as a user would write it."""
    if isinstance(value, dict) and "hex" in value:
        return f"0x{value['hex']}"
    if isinstance(value, dict) and "bits" in value:
        raw = bytes.fromhex(value["bits"])
        return repr(float(np.frombuffer(raw, ">f4" if len(raw) == 4 else ">f8")[0]))
    if isinstance(value, dict):
        days, millis = divmod(value["millis"], 86_400_000)
        return f"{date_of(days)}T{clock(millis)}{value['nano_of_millis']:06d}"
    if data_type.root == "DATE":
        return str(date_of(int(value)))
    return clock(int(value)) if data_type.root == "TIME" else str(value)


def clock(millis: int) -> str:
    seconds, millis = divmod(millis, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"
