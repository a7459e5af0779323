"""The rows that have the keys of a DataFrame: file, row group, row and key.

The keys are sorted and packed into one block, which Spark broadcasts to each executor and each
Python worker parses once. There (`key_finder`), statistics select a slice of the keys for each row
group, the filter is asked for the slice, and the column is read where it may hold any: for most
files in C, at a fraction of what Spark's own join costs.

Spark's join finds the rows of the files whose column Spark would convert to compare it with the
keys, and of all files if the keys are too many for a block. The log says how many files these are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sbbf_tool import log
from sbbf_tool.file.context import Context
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.plain import escape_bytes, from_plain
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.running.discover import address_of, path_of
from sbbf_tool.spark.causes import convert_errors, wait_for
from sbbf_tool.spark.key_finder import LEFT, Block, FoundRows, Search, finder_of
from sbbf_tool.spark.rows import Batches, keep_on_cluster, map_in_arrow

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

MOST_KEYS = 4_000_000
MOST_KEY_BYTES = 128 << 20
"""These limit the memory of a Python worker, which holds about 60 bytes per key."""
_GLOB_SIGN = re.compile(r"[][{}*?\\]")


def find_rows(groups: DataFrame, key_frame: DataFrame, search: Search) -> DataFrame:
    """Find the rows that have one of the keys (`key`) in groups of files (`units`, `number`).

    The rows of all files but those that are left to Spark are found now, and kept on the cluster.
    """
    from pyspark.sql.functions import broadcast

    def find(batches: Batches) -> Batches:
        for batch in batches:
            # Each row has a copy of the block.
            for row in range(batch.num_rows):
                stream = batch.column("stream")[row].as_py()
                # There is no block without any key, which no row has.
                if stream is None:
                    continue
                block = Block(stream, batch.column("is_whole")[row].as_py())
                finder = finder_of(block, search)
                units = batch.column("units")[row].as_py()
                files = [from_plain(ListedFile, unit) for unit in units]
                for found in finder.find(files):
                    yield from found.batches()

    schema = _schema_of(key_frame)
    key_frame = key_frame.where("key IS NOT NULL")
    pairs = groups.join(broadcast(_pack_keys(key_frame)), "number", "left")
    rows = keep_on_cluster(map_in_arrow(pairs, find, schema))
    left = rows.where(rows["status"] == LEFT).select("reason", "path")
    files_left = sorted(wait_for(rows.sparkSession, left.collect))
    if not files_left:
        return rows
    num_left = format_count(len(files_left), "file")
    log.info("Spark compares the keys with column %s itself: %s", search.column, num_left)
    united = rows.where(rows["status"] != LEFT)
    for _, files in groupby(files_left, key=lambda file: file["reason"]):
        paths = [file["path"] for file in files]
        united = united.unionByName(_join_in_spark(paths, key_frame, search, schema))
    return united


def _schema_of(key_frame: DataFrame) -> StructType:
    from pyspark.sql.types import LongType, StringType, StructType

    return (
        StructType()
        .add("path", StringType())
        .add("row_group", LongType())
        .add("row", LongType())
        .add("key", key_frame.schema["key"].dataType)
        .add("status", StringType())
        .add("reason", StringType())
    )


def _pack_keys(key_frame: DataFrame) -> DataFrame:
    """Return a row with all distinct keys, sorted, as a stream of Arrow; no row without any key."""

    def pack(batches: Batches) -> Batches:
        arrays = []
        num_keys = 0
        num_bytes = 0
        for batch in batches:
            arrays.append(batch.column(0))
            num_keys += batch.num_rows
            num_bytes += batch.nbytes
            if num_keys > MOST_KEYS or num_bytes > MOST_KEY_BYTES:
                break
        if num_keys:
            is_whole = num_keys <= MOST_KEYS and num_bytes <= MOST_KEY_BYTES
            yield _pack(arrays, is_whole=is_whole)

    schema = "stream binary, is_whole boolean, number int"
    return map_in_arrow(key_frame.coalesce(1), pack, schema)


def _pack(arrays: list[pa.Array], *, is_whole: bool) -> pa.RecordBatch:
    keys = arrays[0].slice(0, 0)
    if is_whole:
        try:
            distinct = pc.unique(pa.chunked_array(arrays))
            if pa.types.is_floating(keys.type):
                distinct = pc.unique(pc.add(distinct, pa.scalar(0, keys.type)))  # of -0.0, 0.0
            keys = distinct.take(pc.sort_indices(distinct))
        except pa.ArrowNotImplementedError:
            is_whole = False
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays([keys], names=["key"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    columns = {
        "stream": pa.array([sink.getvalue().to_pybytes()], pa.binary()),
        "is_whole": [is_whole],
        "number": pa.array([0], pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)


# --- Spark's own join ---


class _RowsOfFile(NamedTuple):
    """Where a file has the rows of a batch."""

    path: str
    are_rows: NDArray[np.bool_]
    first_rows: NDArray[np.int64]
    """Number of the first row of each row group."""


def _join_in_spark(
    paths: list[str], key_frame: DataFrame, search: Search, schema: StructType
) -> DataFrame:
    """Join the keys with files whose column has one type."""

    def locate(batches: Batches) -> Batches:
        first_rows = _FirstRows(Context(search.keys, strict=search.strict))
        for batch in batches:
            rows = batch.column("row_index").to_numpy()
            for place in _list_places(batch.column("file_path"), first_rows):
                selected = rows[place.are_rows]
                row_groups = np.searchsorted(place.first_rows, selected, "right") - 1
                selected_paths = pa.repeat(pa.scalar(place.path), len(selected))
                keys = batch.column("key").filter(pa.array(place.are_rows))
                yield from FoundRows(selected_paths, keys, row_groups, selected).batches()

    with convert_errors():
        patterns = [_GLOB_SIGN.sub(r"\\\g<0>", address_of(path)) for path in paths]
        stored = key_frame.sparkSession.read.parquet(*patterns)
        rows = stored.select(
            _column_of(stored, search.column).alias("stored"),
            "_metadata.file_path",
            "_metadata.row_index",
        )
        keys = key_frame.distinct()
        joined = rows.join(keys, rows["stored"] == keys["key"])
        return map_in_arrow(joined.select("file_path", "row_index", "key"), locate, schema)


def _column_of(frame: DataFrame, name: str) -> Column:
    if name in frame.columns:
        quoted_name = name.replace("`", "``")
        name = f"`{quoted_name}`"
    return frame[name]


class _FirstRows(dict[str, "NDArray[np.int64]"]):
    """The number of the first row of each row group, by path."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __missing__(self, path: str) -> NDArray[np.int64]:
        with ParquetFile.open(path, self._context) as file:
            footer = file.footer
            counts = [footer.num_rows(at) or 0 for at in range(footer.num_row_groups)]
        self[path] = np.cumsum([0, *counts])[:-1]
        return self[path]


def _list_places(addresses: pa.Array, first_rows: _FirstRows) -> Iterator[_RowsOfFile]:
    """Yield each file of a batch."""
    encoded = addresses.dictionary_encode()
    numbers = encoded.indices.to_numpy()
    for number, address in enumerate(encoded.dictionary.to_pylist()):
        path = path_of(address)
        yield _RowsOfFile(escape_bytes(path), numbers == number, first_rows[path])
