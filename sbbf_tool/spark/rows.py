"""Rows in Spark: the schema of a dataclass, bundles of units of work, and rows on the driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool import errors
from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.reports.arrow import from_dict, schema_of, spelling, to_batch
from sbbf_tool.runner.pack import pack
from sbbf_tool.spark.session import cause_of, quiet_about_pandas
from sbbf_tool.storage.temporary import share_listings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Unit = TypeVar("Unit")
Row = TypeVar("Row")
Batches = Iterator["pa.RecordBatch"]

BUNDLE_COST = 8 << 20
"""Cost per bundle of units, as `pack` counts it: about 30 small files. Tasks get whole bundles."""
_TASKS_A_CORE = 4
_BYTES_A_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_FEW_ROWS = "64"
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum.enabled"
_CHECKSUM_RETRY = "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch"
_OURS = re.compile(r"sbbf_tool\.errors\.(\w+): (.*)")


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


def bundle_units(frame: DataFrame, unit: type, cost: str | None, tasks: int | None) -> DataFrame:
    """Bundle the rows of `frame`, each a `unit`, and distribute the bundles evenly to `tasks` tasks (if None, four per core).

    `cost` names the field with the bytes of a unit; if None, only the number of units counts. A row of the result is a bundle. One task
    sorts and bundles all units: it needs no job to count them, and if an executor is lost, the same units are bundled in the same way
    again.
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
    bundles = map_in_arrow(frame.select(names).repartition(1).sortWithinPartitions(names), bundle, schema)
    return bundles.repartition(tasks or _TASKS_A_CORE * cores_of(frame))


def cores_of(frame: DataFrame) -> int:
    """Return the number of tasks that the cluster runs concurrently, as far as Spark knows now."""
    from pyspark.sql.functions import spark_partition_id

    spark = frame.sparkSession
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # a client of Spark Connect has no context; it raises errors of several kinds
        return int(spark.range(10_000).select(spark_partition_id()).distinct().count())


def map_units(
    bundles: DataFrame, unit: type[Unit], row: type[Row], work: Callable[[Unit], Iterable[Row]], *, apart: bool = False
) -> DataFrame:
    """Map each unit of the bundles to the rows of `work`, one batch per bundle; with `apart`, for large rows, one batch per row."""

    def run(batches: Batches) -> Batches:
        with share_listings():
            for batch in batches:
                for bundle in batch.column(0).to_pylist():
                    rows = (item for values in bundle for item in work(from_dict(unit, values)))
                    if apart:
                        yield from (to_batch(row, [item]) for item in rows)
                    else:
                        yield to_batch(row, rows)

    return map_in_arrow(bundles, run, ddl_of(row))


def map_in_arrow(frame: DataFrame, function: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """Call `mapInArrow` without its warning about pandas, which is not used here, and with the driver's `spelling` on executors."""
    with quiet_about_pandas():
        return frame.mapInArrow(partial(_call_with_spelling, spelling.get(), function), schema)


def _call_with_spelling(spell: Callable[[str], str] | None, function: Callable[[Batches], Batches], batches: Batches) -> Batches:
    spelling.set(spell)
    return function(batches)


def rows_of(frame: DataFrame, row: type[Row]) -> Iterator[Row]:
    """Yield the rows of a frame on the driver, one partition after another; the executors compute all rows first."""
    with convert_errors(), quiet_about_pandas():
        persisted_frame = frame.persist()
        try:
            persisted_frame.count()
            for values in persisted_frame.toLocalIterator(prefetchPartitions=True):
                yield from_dict(row, values.asDict(recursive=True))
        finally:
            persisted_frame.unpersist()


def materialize(frame: DataFrame, row: type) -> DataFrame:
    """Compute the rows eagerly and keep them on the driver.

    If an executor is lost, Spark computes a lazy frame again, from files that have changed; a unit could then be missing from both the old
    and the new bundles.
    """
    with convert_errors(), quiet_about_pandas():
        return frame.sparkSession.createDataFrame(frame.toArrow(), ddl_of(row))


@contextmanager
def use_publish_settings(spark: SparkSession) -> Iterator[None]:
    """Configure Spark for a job that changes the files that it reads, while the block runs; settings that this version lacks are skipped.

    Spark 4.0 limits batches for Python only by rows, 10,000 per batch, and each row may be a bitset; later versions also limit bytes. Spark
    4.2 fails a job if a lost task returns different rows the second time. Tasks of this package do: the second one reports that the file is
    already published.
    """
    settings = {_CHECKSUM: "false", _CHECKSUM_RETRY: "false"}
    if _setting(spark, _BYTES_A_BATCH) is None:
        settings[_ROWS_A_BATCH] = _FEW_ROWS
    before = {name: value for name in settings if (value := _setting(spark, name)) is not None}
    for name in before:
        spark.conf.set(name, settings[name])
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _setting(spark: SparkSession, name: str) -> str | None:
    try:
        return spark.conf.get(name)
    except Exception:  # there is no such setting; classic Spark and Spark Connect raise different errors
        return None


@contextmanager
def convert_errors() -> Iterator[None]:
    """Convert Spark's errors to errors of this package: its own errors on executors keep their class, others become one line."""
    from pyspark.errors import PySparkException

    try:
        yield
    except Exception as error:
        # py4j raises the errors of the JVM for which PySpark has no class.
        if not isinstance(error, PySparkException) and type(error).__module__.partition(".")[0] not in ("py4j", "grpc"):
            raise
        message = str(error)
        ours = _OURS.search(message)
        if ours is not None and hasattr(errors, ours[1]):
            kind: type[SbbfError] = getattr(errors, ours[1])
            raise kind(ours[2]) from error
        if isinstance(error, PySparkException) and error.getCondition() == "PATH_NOT_FOUND":
            path = (error.getMessageParameters() or {}).get("path", "")
            raise UnreadableError("no such file or directory", file=path.removeprefix("file:")) from error
        raise SbbfError(
            f"Spark failed: {cause_of(message) or type(error).__name__}",
            hint="files that are published stay changed; run the command again",
        ) from error


@dataclass(frozen=True, slots=True)
class Split:
    """A split of a planned file, as a unit of work."""

    path: str
    fingerprint: str | None
    row_groups: tuple[int, ...]
    data_bytes: int
