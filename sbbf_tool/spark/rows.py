"""Rows on their way through Spark: the schema that a row's dataclass means, units of work bundled, and rows back on the driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool import errors
from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.operations.lake.pack import pack
from sbbf_tool.operations.lake.rows import from_dict, schema_of, to_batch
from sbbf_tool.spark.session import quiet_about_pandas

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Unit = TypeVar("Unit")
Row = TypeVar("Row")
Batches = Iterator["pa.RecordBatch"]

BUNDLE_COST = 8 << 20
"""Units are dealt out to tasks in bundles of so much work, as `pack` counts it: some 30 small files."""
_TASKS_A_CORE = 4
_ROWS_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_FEW_ROWS = 64
_OURS = re.compile(r"sbbf_tool\.errors\.(\w+): (.*)")


def ddl_of(row: type) -> str:
    """The schema of a dataclass as Spark's DDL."""
    return ddl(schema_of(row))


def ddl(fields: Iterable[pa.Field]) -> str:
    """Arrow's fields as Spark's DDL; a column may be null whatever they say."""
    return ", ".join(f"`{field.name}` {_type_name(field.type)}" for field in fields)


def _type_name(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_list(kind):
        return f"array<{_type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_type_name(field.type)}' for field in kind)}>"
    return {"string": "string", "int64": "bigint", "double": "double", "bool": "boolean", "binary": "binary"}[str(kind)]


def spread(frame: DataFrame, unit: type, cost: str | None, tasks: int | None) -> DataFrame:
    """The rows of `frame`, each a `unit`, in bundles that are dealt evenly to `tasks` tasks (four a core, where None).

    `cost` names the field of bytes by which they are bundled; nothing but their number counts where None. A row of the answer is a
    bundle. It takes no job to find out how many there are: one task bundles what the others have listed.
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

    bundles = mapped(frame.select([field.name for field in fields]).repartition(1), bundle, schema)
    return bundles.repartition(tasks or _TASKS_A_CORE * cores_of(frame))


def cores_of(frame: DataFrame) -> int:
    """Tasks that the cluster does at a time, as far as Spark knows now."""
    from pyspark.sql.functions import spark_partition_id

    spark = frame.sparkSession
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # a client of Spark Connect has no context, and says so with errors of several kinds
        return int(spark.range(10_000).select(spark_partition_id()).distinct().count())


def worked(
    bundles: DataFrame, unit: type[Unit], row: type[Row], work: Callable[[Unit], Iterable[Row]], *, apart: bool = False
) -> DataFrame:
    """The rows that `work` makes of each unit of the bundles; a batch each, rather than one a bundle, where they are large: `apart`."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for bundle in batch.column(0).to_pylist():
                rows = (made for one in bundle for made in work(from_dict(unit, one)))
                if apart:
                    yield from (to_batch(row, [made]) for made in rows)
                else:
                    yield to_batch(row, rows)

    return mapped(bundles, run, ddl_of(row))


def mapped(frame: DataFrame, function: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """`mapInArrow`, which warns of pandas though none is used."""
    with quiet_about_pandas():
        return frame.mapInArrow(function, schema)


def rows_of(frame: DataFrame, row: type[Row]) -> Iterator[Row]:
    """The rows of a frame on the driver, a partition at a time; all of them are worked out first, by all executors at once."""
    with spark_errors(), quiet_about_pandas():
        kept = frame.persist()
        try:
            kept.count()
            for found in kept.toLocalIterator(prefetchPartitions=True):
                yield from_dict(row, found.asDict(recursive=True))
        finally:
            kept.unpersist()


@contextmanager
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Spark 4.0 counts rows where it hands batches to Python, 10,000 in each, and each may be a bitset; later ones count bytes too."""
    try:
        spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch")
        before = None
    except Exception:  # no such setting, which classic Spark and Spark Connect say differently
        before = spark.conf.get(_ROWS_A_BATCH)
        spark.conf.set(_ROWS_A_BATCH, _FEW_ROWS)
    try:
        yield
    finally:
        if before is not None:
            spark.conf.set(_ROWS_A_BATCH, before)


@contextmanager
def spark_errors() -> Iterator[None]:
    """What Spark raises, as errors of this package: our own, raised on an executor, as they were; others by their first line."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        said = str(error)
        ours = _OURS.search(said)
        if ours is not None and hasattr(errors, ours[1]):
            kind: type[SbbfError] = getattr(errors, ours[1])
            raise kind(ours[2]) from error
        if error.getCondition() == "PATH_NOT_FOUND":
            path = (error.getMessageParameters() or {}).get("path", "")
            raise UnreadableError("no such file or directory", file=path.removeprefix("file:")) from error
        raise SbbfError(f"Spark failed: {said.splitlines()[0] if said else type(error).__name__}") from error


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a planned file, as a unit of work."""

    path: str
    fingerprint: str | None
    row_groups: tuple[int, ...]
    data_bytes: int
