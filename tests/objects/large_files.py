"""A Parquet file that is large enough for part copies: 5 MiB of old bytes."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, ROW_GROUPS = 225_000, 3
PRESENT, ABSENT = 7_000_003, 7_000_004
"""A stored value of `id`, and an absent one between min and max."""


@cache
def large() -> bytes:
    """Write three row groups of random even `id` (and PRESENT once) and 16 bytes of `payload` per
    row, 5.4 MB."""
    random = np.random.default_rng(7)
    ids = random.integers(0, 1 << 40, ROWS) * 2
    ids[ROWS // 2] = PRESENT
    payload = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), ROWS, [None, pa.py_buffer(random.bytes(ROWS * 16))]
    )
    out = io.BytesIO()
    table = pa.table({"id": ids, "payload": payload})
    # The size of 20,000 payloads, at which newer versions of pyarrow end a page anyway: tests count
    # what is read ahead of one.
    pq.write_table(
        table,
        out,
        row_group_size=ROWS // ROW_GROUPS,
        compression="none",
        use_dictionary=False,
        data_page_size=320_000,
    )
    return out.getvalue()


def small(rows: int = 300) -> bytes:
    out = io.BytesIO()
    pq.write_table(
        pa.table({"id": range(0, rows * 2, 2), "name": [f"name {n}" for n in range(rows)]}),
        out,
        row_group_size=100,
    )
    return out.getvalue()
