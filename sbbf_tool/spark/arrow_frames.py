"""DataFrames from Arrow tables, and back, with any PySpark: 3.5 has neither in its API.

There, a row is a batch as the bytes of an Arrow stream, which `mapInArrow` makes on executors and reads again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_STREAM = "stream binary"


def collect_arrow(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame as a table on the driver."""
    import pyarrow as pa

    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    streams = frame.mapInArrow(_write_streams, _STREAM).collect()
    batches = [batch for row in streams for batch in pa.ipc.open_stream(row[0])]
    if not batches:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(frame.schema).empty_table()
    return pa.Table.from_batches(batches)


def frame_of_arrow(spark: SparkSession, table: pa.Table, ddl: str) -> DataFrame:
    """Return a table of this process as a frame with the schema `ddl`."""
    from pyspark.sql import DataFrame

    if hasattr(DataFrame, "toArrow"):
        return spark.createDataFrame(table, ddl)
    streams = [(_stream_of(batch),) for batch in table.to_batches()]
    return spark.createDataFrame(streams, _STREAM).mapInArrow(_read_streams, ddl)


def _stream_of(batch: pa.RecordBatch) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _write_streams(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([_stream_of(batch)], pa.binary())], names=["stream"])


def _read_streams(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        for stream in batch.column(0).to_pylist():
            yield from pa.ipc.open_stream(stream)
