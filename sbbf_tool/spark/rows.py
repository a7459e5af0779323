"""Rows in Spark: the schema of a dataclass, bundles of units of work, and rows on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.reports.arrow import from_batch, schema_of, to_batch
from sbbf_tool.reports.plain import from_plain
from sbbf_tool.running.pack import pack
from sbbf_tool.spark.arrow_frames import collect_arrow, frame_of_arrow
from sbbf_tool.spark.causes import convert_errors
from sbbf_tool.spark.interrupts import end_with_spark, wait_for
from sbbf_tool.spark.session import quiet_about_pandas, version_check
from sbbf_tool.spark.settled import PACKED, collect_few, count_tasks, is_many, keep_on_cluster, pack_batches, unpack_rows
from sbbf_tool.storage.temporary import share_listings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Unit = TypeVar("Unit")
Row = TypeVar("Row")
Part = TypeVar("Part")
Batches = Iterator["pa.RecordBatch"]

BUNDLE_COST = 8 << 20
"""Cost per bundle of units, as `pack` counts it: about 30 small files. Tasks get whole bundles."""
_TASKS_A_CORE = 4


def ddl_of(row: type) -> str:
    """Return the schema of a dataclass as Spark's DDL."""
    return ddl(schema_of(row))


def ddl(fields: Iterable[pa.Field]) -> str:
    """Return Arrow's fields as Spark's DDL; all columns are nullable."""
    return ", ".join(f"`{field.name}` {_type_name(field.type)}" for field in fields)


def _type_name(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_list(kind):
        return f"array<{_type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_type_name(field.type)}' for field in kind)}>"
    return {"string": "string", "int64": "bigint", "double": "double", "bool": "boolean", "binary": "binary"}[str(kind)]


def bundle_units(frame: DataFrame, unit: type, cost: str | None, tasks: int | None, count: int | None = None) -> DataFrame:
    """Bundle the rows of `frame`, each a `unit`, and distribute the bundles evenly to `tasks` tasks.

    If None, there are four tasks per core or, if that is more, one per 1,000 of `count` units, and 1,000 tasks at most. `cost` names the
    field with the bytes of a unit; if None, only the number of units counts. A row of the result is a bundle. One task sorts and bundles
    the units; above 100,000, each task gets a range of the paths, so that few tasks work in the same folder. If an executor is lost, the
    same units are bundled in the same way again.
    """
    fields = list(schema_of(unit))
    schema = f"units array<struct<{', '.join(f'`{field.name}`: {_type_name(field.type)}' for field in fields)}>>"

    def bundle(batches: Batches) -> Batches:
        import pyarrow as pa

        for batch in batches:
            costs = batch.column(cost).to_pylist() if cost is not None else [0] * batch.num_rows
            ends = accumulate(map(len, pack(costs, lambda size: size or 0, BUNDLE_COST)), initial=0)
            units = pa.StructArray.from_arrays(batch.columns, fields=fields)
            yield pa.RecordBatch.from_arrays([pa.ListArray.from_arrays(pa.array(list(ends), pa.int32()), units)], names=["units"])

    names = [field.name for field in fields]
    num_tasks = tasks or count_tasks(cores_of(frame), count, _TASKS_A_CORE)
    if is_many(count):
        return map_in_arrow(frame.select(names).repartitionByRange(num_tasks, "path").sortWithinPartitions(names), bundle, schema)
    bundles = map_in_arrow(frame.select(names).repartition(1).sortWithinPartitions(names), bundle, schema)
    return bundles.repartition(num_tasks)


def cores_of(frame: DataFrame) -> int:
    """Return the number of tasks that the cluster runs concurrently, as far as Spark knows now."""
    from pyspark.sql.functions import spark_partition_id

    spark = frame.sparkSession
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # a client of Spark Connect has no context; it raises errors of several kinds
        return int(spark.range(10_000).select(spark_partition_id()).distinct().count())


def map_units(bundles: DataFrame, unit: type[Unit], row: type[Row], work: Callable[[Unit], Row]) -> DataFrame:
    """Map each unit of the bundles to the row of `work`, one batch per bundle."""

    def run(batches: Batches) -> Batches:
        with share_listings():
            for batch in batches:
                for bundle in batch.column(0).to_pylist():
                    yield to_batch(row, (work(from_plain(unit, values)) for values in bundle))

    return map_in_arrow(bundles, run, ddl_of(row))


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
        yield from function(map(_with_usual_types, batches))


def _with_usual_types(batch: pa.RecordBatch) -> pa.RecordBatch:
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


def combine_by_file(
    parts: DataFrame,
    part: type[Part],
    row: type[Row],
    work: Callable[[str, Iterator[Part]], Row],
    tasks: int | None,
    order: tuple[str, ...] = (),
) -> DataFrame:
    """Send all parts of a file to one task, in this order, and map them to the row of `work`."""

    def run(batches: Batches) -> Batches:
        rows = (item for batch in batches for item in from_batch(part, batch))
        with share_listings():
            for path, of_file in groupby(rows, key=attrgetter("path")):
                yield to_batch(row, [work(path, of_file)])

    grouped_parts = parts.repartition(tasks or cores_of(parts), "path").sortWithinPartitions("path", *order)
    return map_in_arrow(grouped_parts, run, ddl_of(row))


def rows_of(frame: DataFrame, row: type[Row]) -> Iterator[Row]:
    """Yield the rows of a frame on the driver, one partition after another; the executors compute all rows first."""
    with convert_errors(), quiet_about_pandas():
        persisted_frame = map_in_arrow(frame, pack_batches, PACKED).persist()
        try:
            yield from unpack_rows(persisted_frame, row)
        finally:
            with suppress(Exception):  # the session may have ended
                persisted_frame.unpersist()


def materialize(frame: DataFrame, row: type) -> DataFrame:
    """Compute the rows eagerly and keep them: see `settled`. If there are many, the first of them are computed twice."""
    with convert_errors(), quiet_about_pandas():
        spark = frame.sparkSession
        rows = wait_for(spark, lambda: collect_few(frame))
        return wait_for(spark, lambda: keep_on_cluster(frame)) if rows is None else frame_of_arrow(spark, rows, ddl_of(row))


def measure_listing(files: DataFrame) -> tuple[int, int]:
    """Return the number of files of a listing, without links in it, and the sum of their known sizes."""
    from pyspark.sql.functions import coalesce, col, count, lit
    from pyspark.sql.functions import sum as total

    sums = files.where(col("skipped").isNull()).agg(count(lit(1)), coalesce(total("bytes"), lit(0)))
    (row,) = wait_for(files.sparkSession, sums.collect)
    return row[0], row[1]


def compute_once(outcomes: DataFrame, row: type, report: str | None = None, count: int | None = None) -> DataFrame:
    """Run the work that changes files, and return its outcomes; `report` names a folder for them as Parquet.

    Without it, up to 100,000 outcomes are kept on the driver, and more on the cluster; `count` is their number, if known. A lazy frame
    would be a second run at each action, which finds that every file is changed already.
    """
    spark = outcomes.sparkSession
    with convert_errors(), quiet_about_pandas():
        if report is None:
            if is_many(count):
                return wait_for(spark, lambda: keep_on_cluster(outcomes))
            return frame_of_arrow(spark, wait_for(spark, lambda: collect_arrow(outcomes)), ddl_of(row))
        wait_for(spark, lambda: outcomes.write.parquet(report))
        return spark.read.parquet(report)
