"""Filters built from an earlier version of a file: one change of the file means building again, a second one a refusal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.editing.edit import PrebuiltFilters
from sbbf_tool.errors import RefusedError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.storage.spool import Spool


def offer(prebuilt: PrebuiltFilters, path: Path, *, rows: int) -> None:
    """Write a version of the file, and open it as the change does."""
    pq.write_table(pa.table({"v": range(rows)}), path)
    with ParquetFile.open(path) as file:
        prebuilt.keep_filters_of(file)


def test_a_file_that_changes_twice_is_refused(tmp_path):
    path = tmp_path / "f.parquet"
    with Spool(str(path)) as spool:
        prebuilt = PrebuiltFilters(spool)
        offer(prebuilt, path, rows=1)
        offer(prebuilt, path, rows=2)
        with pytest.raises(RefusedError, match="keeps changing"):
            offer(prebuilt, path, rows=3)
