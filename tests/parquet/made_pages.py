"""Files with pages of every form, most of few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def _make_table(rows: int) -> pa.Table:
    """Columns of several types, with nulls and lists, of few and of many distinct values."""
    rng = np.random.default_rng(3)
    few = rng.integers(0, 40, rows)
    nulls = rng.random(rows) < 0.3
    blocks = np.arange(rows) // 500 % 2 == 0
    return pa.table(
        {
            "number": few,
            "text": pa.array(few.astype("U"), mask=nulls),
            "distinct": pa.array(np.arange(rows).astype("U"), mask=blocks),
            "double": pa.array(few * 0.5, mask=blocks),
            "fixed": pa.array([b"%05d" % value for value in few], pa.binary(5)),
            "list": pa.array([[int(value), None] * int(value % 3) for value in few]),
            "struct": pa.array([{"a": int(v) if v % 3 else None} if v % 5 else None for v in few]),
            "null": pa.array([None] * rows, pa.int32()),
            "flag": few % 2 == 0,
        }
    )


FORMS: dict[str, dict[str, Any]] = {
    "small pages": {"data_page_size": 1, "write_batch_size": 7},
    "version 2": {"data_page_size": 200, "write_batch_size": 50, "data_page_version": "2.0"},
    "no compression": {"data_page_size": 1, "write_batch_size": 30, "compression": "none"},
    "checksums": {"data_page_size": 1, "write_batch_size": 30, "write_page_checksum": True},
    "other codec": {"data_page_size": 1, "write_batch_size": 30, "compression": "zstd"},
    "large pages": {},
}


DICTIONARIES: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False},
    "both": {"dictionary_pagesize_limit": 500},
}


def write_files(folder: Path, rows: int = 3000) -> list[Path]:
    """Write files of each form, with a dictionary, without one, and with one that is given up."""
    table = _make_table(rows)
    paths = []
    for name, options in FORMS.items():
        for kind, more in DICTIONARIES.items():
            path = folder / f"{name} {kind}.parquet"
            pq.write_table(table, path, row_group_size=2000, **options, **more)
            paths.append(path)
    return paths
