"""The chunks of one file verified concurrently: the same report, within bounds, and an end at the first error."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, check, verify
from sbbf_tool.errors import OversizedPageError
from sbbf_tool.file import membership
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.rules import facts
from sbbf_tool.rules.facts import Reads, gather
from support.tables import each

GROUPS = 6


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "_WORTH_THREADS", 0)
    path = tmp_path / "data.parquet"
    table = pa.table({"id": range(1200), "name": [f"name {number}" for number in range(1200)]})
    pq.write_table(table, path, row_group_size=1200 // GROUPS)
    add_filters(path, ["id", "name"], in_place=True)
    return path


@each("jobs", [2, 5, None])
def test_the_report_is_the_same(path, jobs):
    assert verify(path, jobs=jobs) == verify(path, jobs=1)
    assert check(path, jobs=jobs) == check(path, jobs=1)


@each("jobs", [1, 4])
def test_the_first_error_in_the_order_of_the_chunks_is_raised(path, jobs):
    with pytest.raises(OversizedPageError) as caught:
        verify(path, jobs=jobs, max_page_bytes=100)
    assert "column id, row group 0" in str(caught.value)


@each("error", [KeyboardInterrupt, MemoryError])
def test_after_an_error_no_chunk_is_begun(path, error):
    # Threads that fetch from stores outlive the tests that started them.
    begun, before = [], set(threading.enumerate())

    def verify_filter(file, stored, bloom):
        begun.append(stored.row_group)
        if len(begun) == 1:
            raise error
        time.sleep(0.05)
        return membership.verify_filter(file, stored, bloom)

    with ParquetFile.open(path) as file, pytest.raises(error):
        gather(file, file.footer.columns, Reads.DATA, verify_filter, jobs=2)
    assert len(begun) < GROUPS
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("sbbf")]
