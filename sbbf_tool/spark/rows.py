"""Rows in Spark: the schema of a dataclass, Arrow tables as DataFrames and back, and functions that map Arrow batches on executors.

PySpark 3.5 has no Arrow tables in its API. There, a row is a batch as the bytes of an Arrow stream, which `mapInArrow` makes on executors
and reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.reports.arrow import schema_of
from sbbf_tool.spark.causes import quiet_about_pandas
from sbbf_tool.spark.interrupts import end_with_spark
from sbbf_tool.spark.session import version_check

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Batches = Iterator["pa.RecordBatch"]

PACKED = "task bigint, rows binary"
"""Schema of packed rows: each row of it holds many rows, as a stream of Arrow, and the number of the task that made them."""


def ddl_of(row: type) -> str:
    """Return the schema of a dataclass as Spark's DDL."""
    return ddl(schema_of(row))


def ddl(fields: Iterable[pa.Field]) -> str:
    """Return Arrow's fields as Spark's DDL; all columns are nullable."""
    return ", ".join(f"`{field.name}` {type_name(field.type)}" for field in fields)


def type_name(kind: pa.DataType) -> str:
    """Return an Arrow type as Spark's DDL."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {type_name(field.type)}' for field in kind)}>"
    return {"string": "string", "int64": "bigint", "double": "double", "bool": "boolean", "binary": "binary"}[str(kind)]


def map_in_arrow(frame: DataFrame, function: Callable[[Batches], Batches], schema: str | StructType) -> DataFrame:
    """Call `mapInArrow` without its warning about pandas, which is not used here; executors need the version of this package."""
    from pyspark import cloudpickle

    ensure_same_version, pickled = version_check(), cloudpickle.dumps(partial(_call, function))  # type: ignore[no-untyped-call]

    def call(batches: Batches) -> Batches:
        # Pickled by value, as is the check: what another version would unpickle may be missing there, or mean something else.
        from pickle import loads

        ensure_same_version()
        yield from loads(pickled)(batches)

    with quiet_about_pandas():
        return frame.mapInArrow(call, schema)


def _call(function: Callable[[Batches], Batches], batches: Batches) -> Batches:
    with end_with_spark():
        yield from function(map(with_usual_types, batches))


def with_usual_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with `string` in place of `large_string`, as a setting of Spark makes it, and likewise for `binary`."""
    import pyarrow as pa

    types = [_usual_type(kind) for kind in batch.schema.types]
    if types == batch.schema.types:
        return batch
    arrays = [array.cast(kind) for array, kind in zip(batch.columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _usual_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

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
    import pyarrow as pa

    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    packs = frame.mapInArrow(pack_batches, PACKED).collect()
    batches = [batch for _, rows in packs for batch in pa.ipc.open_stream(rows)]
    if not batches:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(frame.schema).empty_table()
    return pa.Table.from_batches(batches)


def frame_of_arrow(spark: SparkSession, table: pa.Table, ddl: str) -> DataFrame:
    """Return a table of this process as a frame with the schema `ddl`."""
    from pyspark.sql import DataFrame

    if hasattr(DataFrame, "toArrow"):
        return spark.createDataFrame(table, ddl)
    packs = [tuple(row.values()) for batch in pack_batches(iter(table.to_batches())) for row in batch.to_pylist()]
    return spark.createDataFrame(packs, PACKED).mapInArrow(_unpack_batches, ddl)


def pack_batches(batches: Batches) -> Batches:
    """Convert batches of any rows to rows of `PACKED`: to the JVM, and on the way to the driver, each is a single value."""
    import pyarrow as pa
    from pyspark import TaskContext

    options = pa.ipc.IpcWriteOptions(compression="zstd" if pa.Codec.is_available("zstd") else None)
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"task": [task], "rows": [sink.getvalue().to_pybytes()]})


def _unpack_batches(batches: Batches) -> Batches:
    import pyarrow as pa

    for batch in batches:
        for stream in batch.column("rows").to_pylist():
            yield from pa.ipc.open_stream(stream)
