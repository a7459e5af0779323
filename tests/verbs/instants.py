"""Files of INT96 instants in any form: pages of 12 bytes by pyarrow, and a footer that calls them
INT96."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.parquet.idl.ttypes import FileMetaData, Type
from support.corpus_edits import edit_footer

DAY = 86_400 * 10**9
EPOCH = 2_440_588
ARROW_21 = "parquet-cpp-arrow version 21.0.0"


def rounded_down(instant: int) -> bytes:
    return stored(EPOCH + instant // DAY, instant % DAY)


def towards_zero(instant: int) -> bytes:
    """Split an instant into day and nanoseconds with truncating division, as C++ does."""
    days, nanos = divmod(abs(instant), DAY)
    return stored(EPOCH - days, -nanos) if instant < 0 else stored(EPOCH + days, nanos)


def day_early(instant: int) -> bytes:
    """Store a day or more of nanoseconds, which no known writer does."""
    return stored(EPOCH + instant // DAY - 1, instant % DAY + DAY)


def day_late(instant: int) -> bytes:
    """Store a negative time of day, also since 1970 and at midnight."""
    return stored(EPOCH + instant // DAY + 1, instant % DAY - DAY)


def stored(day: int, nanos: int) -> bytes:
    return struct.pack("<qi", nanos, day)


def write_int96(
    path: Path,
    row_groups: Iterable[list[bytes | None]],
    created_by: str | None = ARROW_21,
    **options: Any,
) -> Path:
    """Write a file of one INT96 column, `at`, whose values are these bytes."""
    schema = pa.schema([("at", pa.binary(12))])
    with pq.ParquetWriter(path, schema, **options) as writer:
        for values in row_groups:
            writer.write_table(pa.table({"at": pa.array(values, pa.binary(12))}, schema))

    def change(metadata: FileMetaData) -> None:
        metadata.created_by = created_by
        metadata.column_orders = None
        for element in metadata.schema:
            if element.name == "at":
                element.type, element.type_length = Type.INT96, None
        for group in metadata.row_groups:
            for chunk in group.columns:
                chunk.meta_data.type, chunk.meta_data.statistics = Type.INT96, None

    return edit_footer(path, change)
