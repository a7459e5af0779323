"""Bundles of files: the units of work of a run, as rows that Spark distributes to tasks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from sbbf_tool.reports.plain import schema_of
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.running.discover import TASK_COST, pack
from sbbf_tool.spark.causes import is_classic, wait_for
from sbbf_tool.spark.rows import (
    FILES_PER_TASK,
    Batches,
    collect_few,
    computed_once,
    ddl,
    ddl_of,
    frame_of_arrow,
    keep_on_cluster,
    map_in_arrow,
    stream_batches,
    with_usual_types,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUNDLE_COST = 8 << 20
"""Cost per bundle of files, as `pack` counts it: about 30 small files. Tasks get whole bundles."""
TASKS_PER_CORE = 4
_BYTES_PER_TASK = 256 << 20
_MOST_TASKS = 1_000
"""Most tasks that are made for the number of files alone. Spark chooses the ranges of paths from a
sample of 100 paths per task, which it collects on the driver: with 10,000 tasks, the default memory
of a driver is not enough.
"""


class Size(NamedTuple):
    """Figures of a listing."""

    rows: int
    files: int
    """The rows without those that are skipped."""
    bytes: int
    """The sum of the known lengths of these files."""
    large: int
    """Number of files that cost more than one task."""


class Listing:
    """The files of a run (`ListedFile`): a table on the driver if they are few, otherwise a frame
    on the cluster."""

    def __init__(self, spark: SparkSession, files: pa.Table | DataFrame) -> None:
        self.spark = spark
        self._files = files
        self.size = self._measure()

    @classmethod
    def of(cls, frame: DataFrame, *, keep: bool = False) -> Listing:
        """Compute the rows of a listing. Above 100,000, `keep` those that a frame would not find
        again as they are now."""
        spark = frame.sparkSession
        with computed_once(frame):
            few = collect_few(frame)
            if few is not None:
                return cls(spark, few)
            if keep:
                frame = keep_on_cluster(frame)
        return cls(spark, frame)

    def frame(self) -> DataFrame:
        """Return the listing as a DataFrame."""
        if isinstance(self._files, pa.Table):
            return frame_of_arrow(self.spark, self._files, ddl_of(ListedFile))
        return self._files

    def tables(self) -> Iterator[pa.Table]:
        """Yield the listing in order, in parts of some thousand files if it is on the cluster."""
        if isinstance(self._files, pa.Table):
            yield self._files
            return
        names = schema_of(ListedFile).names
        for batch in stream_batches(self._files.select(names)):
            yield pa.Table.from_batches([batch])

    def _measure(self) -> Size:
        if isinstance(self._files, pa.Table):
            lengths = self._files["bytes"].to_pylist()
            reasons = self._files["skipped"].to_pylist()
            sizes = [size for size, reason in zip(lengths, reasons, strict=True) if reason is None]
            known = [size for size in sizes if size is not None]
            large = [size for size in known if size > TASK_COST]
            return Size(self._files.num_rows, len(sizes), sum(known), len(large))
        from pyspark.sql.functions import coalesce, col, count, lit, when
        from pyspark.sql.functions import sum as total

        is_file = col("skipped").isNull()
        size = when(is_file, col("bytes"))
        sums = self._files.agg(
            count(lit(1)),
            count(when(is_file, 1)),
            coalesce(total(size), lit(0)),
            count(when(size > TASK_COST, 1)),
        )
        return Size(*wait_for(self.spark, sums.collect)[0])

    def bundle(self, *, by_bytes: bool = False, whole: bool = False) -> DataFrame:
        """Bundle the files and distribute the bundles, each a row with a list `units`, evenly to
        tasks.

        There are four tasks per core or, if that is more, one per 1,000 files, and 1,000 tasks at
        most. Bundles are made by the lengths of files, or by their number alone. The driver sorts
        and bundles few files; of many, each task gets a range of the paths, so that few tasks work
        in the same folder. If an executor is lost, the same files are bundled in the same way
        again.

        A `whole` bundle has all files of a task, up to 1,000, and a `number`, which is 0, to join
        it by: Spark may refuse a join without an equation. Small files make fewer such tasks.
        """
        fields = list(schema_of(ListedFile))
        names = [field.name for field in fields]
        unit = pa.struct(fields)
        arrow_schema = pa.schema([("units", pa.list_(unit))])
        if whole:
            arrow_schema = arrow_schema.append(pa.field("number", pa.int64()))
        schema = ddl(arrow_schema)
        num_tasks = self._count_tasks(whole=whole)
        files_per_task = min(FILES_PER_TASK, max(1, -(-self.size.rows // num_tasks)))

        def bundle(batches: Batches) -> Batches:
            for batch in batches:
                costs = [0] * batch.num_rows
                if by_bytes:
                    costs = batch.column("bytes").to_pylist()
                if whole:
                    ends = [*range(0, len(costs), files_per_task), len(costs)]
                else:
                    packs = pack(costs, lambda size: size or 0, BUNDLE_COST)
                    ends = list(accumulate(map(len, packs), initial=0))
                units = pa.StructArray.from_arrays(batch.columns, fields=fields)
                columns = [pa.ListArray.from_arrays(pa.array(ends, pa.int32()), units)]
                if whole:
                    columns.append(pa.array([0] * len(columns[0]), pa.int64()))
                yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema)

        if not isinstance(self._files, pa.Table):
            ranges = self._files.select(names).repartitionByRange(num_tasks, "path")
            return map_in_arrow(ranges.sortWithinPartitions(names), bundle, schema)
        batches = self._files.select(names).sort_by("path").combine_chunks().to_batches()
        bundles = pa.Table.from_batches(bundle(map(with_usual_types, batches)), arrow_schema)
        frame = frame_of_arrow(self.spark, bundles, schema)
        return frame.repartition(min(num_tasks, max(1, bundles.num_rows)))

    def _count_tasks(self, *, whole: bool) -> int:
        cores = cores_of(self.spark)
        num_tasks = TASKS_PER_CORE * cores
        if whole:
            # A task without much to read costs more than it does.
            num_tasks = min(num_tasks, max(cores, self.size.bytes // _BYTES_PER_TASK))
        by_files = min(-(-self.size.rows // FILES_PER_TASK), _MOST_TASKS)
        return max(num_tasks, by_files)


def cores_of(spark: SparkSession) -> int:
    """Return the number of tasks that the cluster runs concurrently, as far as Spark knows now."""
    if is_classic(spark):
        return spark.sparkContext.defaultParallelism
    from pyspark.sql.functions import spark_partition_id

    return int(spark.range(10_000).select(spark_partition_id()).distinct().count())
