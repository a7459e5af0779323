"""Memory stays flat whatever a row group holds: measured of a whole process, by the system."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.transport.TTransport import TMemoryBuffer

from sbbf_tool.bloom import sizing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.structs import parse_struct
from support.tables import each

ROWS = 100_000_000
BOUND = 400 << 20

ADD = """
import json, re, sys
from sbbf_tool import add_filters
report = add_filters(sys.argv[1], ["n"], in_place=True, append=sys.argv[2] == "append")
built = report.filters[0]
# Not getrusage, whose peak is also that of the process which this one was forked from.
peak = int(re.search("VmHWM: *\\t* *([0-9]+) kB", open("/proc/self/status").read())[1]) * 1024
print(json.dumps([peak, built.values, built.bitset_bytes]))
"""


def write_one_row_group(path) -> None:
    """Write 100 million rows in one row group. pyarrow makes two row groups, whose pages are adjacent; the footer joins them."""
    with pq.ParquetWriter(path, pa.schema({"n": pa.int64()}), use_dictionary=False, column_encoding={"n": "DELTA_BINARY_PACKED"}) as writer:
        writer.write_table(pa.table({"n": np.arange(ROWS)}), row_group_size=ROWS)
    with ParquetFile.open(path) as file:
        metadata, start = parse_struct(FileMetaData, file.footer.raw), file.footer.start
    first, second = metadata.row_groups
    first_chunk, second_chunk = first.columns[0].meta_data, second.columns[0].meta_data
    assert first_chunk.data_page_offset + first_chunk.total_compressed_size == second_chunk.data_page_offset
    first.num_rows += second.num_rows
    for count in ("num_values", "total_compressed_size", "total_uncompressed_size"):
        setattr(first_chunk, count, getattr(first_chunk, count) + getattr(second_chunk, count))
    first_chunk.statistics = first_chunk.encoding_stats = first_chunk.size_statistics = None
    metadata.row_groups = [first]
    raw = TMemoryBuffer()
    metadata.write(TCompactProtocolAcceleratedFactory().getProtocol(raw))
    with path.open("r+b") as stream:
        stream.truncate(start)
        stream.seek(start)
        stream.write(raw.getvalue() + build_tail(raw.getvalue()))


@pytest.mark.nightly(minutes=5)
@each("way", ["append", "copy"])
def test_a_row_group_of_a_hundred_million_rows(tmp_path, way):
    path = tmp_path / "f.parquet"
    write_one_row_group(path)
    with pq.ParquetFile(path) as file:
        assert file.num_row_groups == 1
        assert file.metadata.num_rows == ROWS
    done = subprocess.run([sys.executable, "-c", ADD, str(path), way], capture_output=True, text=True, check=True)
    peak, values, bitset = json.loads(done.stdout)
    assert values == ROWS
    assert bitset == sizing.MAX_BYTES
    assert peak < BOUND + bitset
