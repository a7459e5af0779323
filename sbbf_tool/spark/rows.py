"""Rows in Spark: the schema of a dataclass, Arrow tables as DataFrames and back, and functions that
map Arrow batches on executors.

PySpark 3.5 has no Arrow tables in its API. There, a row is a batch as the bytes of an Arrow stream,
which `mapInArrow` makes on executors and reads again.

If an executor is lost, Spark computes a lazy frame again, from files that have changed; a unit of
work could then be missing from both the old and the new tasks. So listings and outcomes are
computed once and kept. The driver has room for some; `spark.driver.maxResultSize` limits what one
job may send it. More rows stay in the checkpoint folder of the session, which survives the loss of
executors, or else on the executors, from where the driver streams them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sbbf_tool.reports.plain import from_batch, schema_of
from sbbf_tool.spark.causes import (
    convert_errors,
    end_with_spark,
    is_classic,
    quiet_about_pandas,
    wait_for,
)
from sbbf_tool.spark.session import version_check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


Batches = Iterator[pa.RecordBatch]

PACKED = "rows binary"
"""Schema of packed rows: each row of it holds many rows, as a stream of Arrow."""

_LARGE = 1 << 20
"""Bytes of a pickled function that are sent to each executor once, and not with each job."""
_TYPE_NAMES = {
    "string": "string",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
    "binary": "binary",
}


def ddl_of(row: type) -> str:
    """Return the schema of a dataclass as Spark's DDL."""
    return ddl(schema_of(row))


def ddl(fields: Iterable[pa.Field]) -> str:
    """Return Arrow's fields as Spark's DDL; all columns are nullable."""
    return ", ".join(f"`{field.name}` {type_name(field.type)}" for field in fields)


def type_name(kind: pa.DataType) -> str:
    """Return an Arrow type as Spark's DDL."""
    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (f"`{field.name}`: {type_name(field.type)}" for field in kind)
        return f"struct<{', '.join(fields)}>"
    return _TYPE_NAMES[str(kind)]


def map_in_arrow(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: str | StructType
) -> DataFrame:
    """Call `mapInArrow` without its warning about pandas, which is not used here; executors need
    the version of this package."""
    return map_shipped(frame, shipped(function), schema)


def map_shipped(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: str | StructType
) -> DataFrame:
    """Call `mapInArrow` with a function that is `shipped`."""
    with quiet_about_pandas():
        return frame.mapInArrow(function, schema)


def shipped(
    function: Callable[[Batches], Batches], spark: SparkSession | None = None
) -> Callable[[Batches], Batches]:
    """Return a function as executors get it: it checks the version of this package there before
    anything is unpickled. Executors keep a large one that is for many jobs of a session."""
    from pyspark import cloudpickle

    ensure_same_version = version_check()
    pickled = cloudpickle.dumps(partial(_call, function))  # type: ignore[no-untyped-call]
    kept = None
    if spark is not None and is_classic(spark) and len(pickled) > _LARGE:
        kept = spark.sparkContext.broadcast(pickled)
        pickled = b""

    def call(batches: Batches) -> Batches:
        # Pickled by value, as is the check: what another version would unpickle may be missing
        # there, or mean something else.
        from pickle import loads

        ensure_same_version()
        yield from loads(pickled if kept is None else kept.value)(batches)

    return call


def _call(function: Callable[[Batches], Batches], batches: Batches) -> Batches:
    with end_with_spark():
        yield from function(map(with_usual_types, batches))


def with_usual_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with `string` in place of `large_string`, as a setting of Spark makes it, and
    likewise for `binary`."""
    types = [_usual_type(kind) for kind in batch.schema.types]
    if types == batch.schema.types:
        return batch
    arrays = [array.cast(kind) for array, kind in zip(batch.columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _usual_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(_usual_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_usual_type(field.type)) for field in kind])
    return kind


def collect_arrow(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame as a table on the driver."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    batches: list[pa.RecordBatch] = []
    for (rows,) in frame.mapInArrow(pack_batches, PACKED).collect():
        batches.extend(unpack(rows))
    if not batches:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(frame.schema).empty_table()
    return pa.Table.from_batches(batches)


@convert_errors()
def frame_of_arrow(spark: SparkSession, table: pa.Table, ddl: str) -> DataFrame:
    """Return a table of this process as a frame with the schema `ddl`."""
    from pyspark.sql import DataFrame

    if hasattr(DataFrame, "toArrow"):
        return spark.createDataFrame(table, ddl)
    packs = map(pack, table.to_batches())
    return frame_of_packs(spark, packs).mapInArrow(_unpack_batches, ddl)


def frame_of_packs(spark: SparkSession, packs: Iterable[bytes]) -> DataFrame:
    """Return a frame of `PACKED`, with a row for each stream of Arrow."""
    from pyspark.sql import DataFrame

    if hasattr(DataFrame, "toArrow"):
        return spark.createDataFrame(pa.table({"rows": pa.array(packs, pa.binary())}), PACKED)
    return spark.createDataFrame([(data,) for data in packs], PACKED)


def pack_batches(batches: Batches) -> Batches:
    """Convert batches of any rows to rows of `PACKED`: to the JVM, and on the way to the driver,
    each is a single value."""
    for batch in batches:
        if batch.num_rows:
            yield pa.RecordBatch.from_pydict({"rows": [pack(batch)]})


def _unpack_batches(batches: Batches) -> Batches:
    for batch in batches:
        for data in batch.column("rows").to_pylist():
            yield from unpack(data)


def pack(batch: pa.RecordBatch) -> bytes:
    """Return a batch as a stream of Arrow."""
    codec = "zstd" if pa.Codec.is_available("zstd") else None
    options = pa.ipc.IpcWriteOptions(compression=codec)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes | bytearray) -> Batches:
    """Yield the batches of a stream of Arrow."""
    with pa.ipc.open_stream(bytes(data)) as reader:
        yield from reader


Row = TypeVar("Row")

MOST_ON_DRIVER = 100_000
"""Rows of a frame that the driver keeps: some 200 bytes each, of a listing or of outcomes."""
FILES_PER_TASK = 1_000
"""Files above which a run gets further tasks, so that a task's rows are a few megabytes and a lost
task costs little."""


def collect_few(frame: DataFrame) -> pa.Table | None:
    """Compute the rows of a frame; return None if there are many."""
    rows: pa.Table = wait_for(
        frame.sparkSession, lambda: collect_arrow(frame.limit(MOST_ON_DRIVER + 1))
    )
    return None if rows.num_rows > MOST_ON_DRIVER else rows


@contextmanager
def computed_once(frame: DataFrame) -> Iterator[None]:
    """Compute each partition of a frame once in the block, and as a whole: a worker of PySpark
    whose rows are not all read prints a traceback."""
    level = frame.storageLevel
    if level.useMemory or level.useDisk:
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def keep_on_cluster(frame: DataFrame) -> DataFrame:
    """Compute the rows, and keep them where Spark finds them without computing them again."""

    def keep() -> DataFrame:
        spark = frame.sparkSession
        if is_classic(spark) and spark.sparkContext.getCheckpointDir() is not None:
            return frame.checkpoint()
        try:
            return frame.localCheckpoint()
        except (AttributeError, NotImplementedError):  # Spark Connect has checkpoints since 4.0
            persisted_frame = frame.persist()
            persisted_frame.count()
            return persisted_frame

    return wait_for(frame.sparkSession, keep)


def compute_once(outcomes: DataFrame, row: type, count: int) -> DataFrame:
    """Run the work that changes files, and return its outcomes: up to 100,000 are kept on the
    driver, and more on the cluster.

    A lazy frame would be a second run at each action, which finds that every file is changed
    already.
    """
    if count > MOST_ON_DRIVER:
        return keep_on_cluster(outcomes)
    spark = outcomes.sparkSession
    return frame_of_arrow(spark, wait_for(spark, lambda: collect_arrow(outcomes)), ddl_of(row))


def rows_of(frame: DataFrame, row: type[Row]) -> Iterator[Row]:
    """Yield the rows of a frame on the driver, one partition after another."""
    for batch in stream_batches(frame):
        yield from from_batch(row, batch)


def stream_batches(frame: DataFrame) -> Batches:
    """Yield the rows of a frame on the driver, one partition after another, as they are in it."""
    packed_frame = map_in_arrow(frame, pack_batches, PACKED)
    with convert_errors():
        packs = wait_for(
            packed_frame.sparkSession, lambda: packed_frame.toLocalIterator(prefetchPartitions=True)
        )
        for (data,) in packs:
            yield from unpack(data)
