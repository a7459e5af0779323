"""DataFrames of files (`ListedFile`) for the stages of `pipeline`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from sbbf_tool.file.partitions import PathPredicate
from sbbf_tool.reports.arrow import from_batch, to_batch
from sbbf_tool.reports.rows import LINK, ListedFile
from sbbf_tool.runner.discover import discover as find_files
from sbbf_tool.runner.discover import path_of
from sbbf_tool.runner.selection import Selection
from sbbf_tool.spark.rows import Batches, convert_errors, ddl_of, map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LISTED_AT_ONCE = 10_000


def find_location(spark: SparkSession, name: str) -> str | None:
    """Return the location of a table in Spark's catalog; None for a view."""
    with convert_errors():
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()
    # A column may have the name too; what describes the table follows the columns.
    return path_of(rows[-1]["data_type"]) if rows else None


def list_table(spark: SparkSession, selection: Selection) -> DataFrame:
    """List the live files of a table (`ListedFile`)."""
    return frame_of(spark, selection.files())


def frame_of(spark: SparkSession, files: Iterable[ListedFile]) -> DataFrame:
    """Return a listing that this process has made as a DataFrame."""
    import pyarrow as pa

    return spark.createDataFrame(pa.Table.from_batches([to_batch(ListedFile, files)]), ddl_of(ListedFile))


def list_paths(spark: SparkSession, names: list[str], predicate: PathPredicate | None, links: bool) -> DataFrame:
    """List files, folders, globs and stores on an executor (`ListedFile`), some thousand per batch; see `runner.discover`."""

    def find(batches: Batches) -> Batches:
        for batch in batches:
            listing = find_files(batch.column("name").to_pylist(), predicate, links=links)
            while rows := list(islice(listing, _LISTED_AT_ONCE)):
                yield to_batch(ListedFile, rows)

    name_frame = spark.createDataFrame([(name,) for name in names], "name string").coalesce(1)
    return map_in_arrow(name_frame, find, ddl_of(ListedFile))


def list_hadoop(spark: SparkSession, names: list[str]) -> DataFrame:
    """List paths of Hadoop's file systems with Spark: columns `path`, `bytes` and `modified`, in seconds."""
    from pyspark.sql.functions import col

    with convert_errors():
        # This source reads the contents of files only if its column `content` is selected.
        listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet").load(names)
    return listing.select("path", col("length").alias("bytes"), col("modificationTime").cast("double").alias("modified"))


def normalize_listing(frame: DataFrame, predicate: PathPredicate | None) -> DataFrame:
    """Convert a listing to rows of `ListedFile`, with paths as this package writes them, and select the partitions."""
    from pyspark.sql.functions import coalesce, col, lit

    def column(name: str, alternative: str, kind: str) -> Column:
        source = next((label for label in (name, alternative) if label in frame.columns), None)
        return (lit(None) if source is None else col(source)).cast(kind).alias(name)

    def choose(batches: Batches) -> Batches:
        for batch in batches:
            files = [replace(file, path=path_of(file.path)) for file in from_batch(ListedFile, batch)]
            yield to_batch(ListedFile, [file for file in files if file.is_link or predicate is None or predicate.accepts(file.path)])

    is_link = coalesce(column("is_link", "is_link", "boolean"), lit(False))
    if "reason" in frame.columns:
        # These are the rows of an earlier stage, not a listing.
        is_link |= coalesce(col("reason") == LINK, lit(False))
    size, time = column("bytes", "length", "bigint"), column("modified", "modificationTime", "double")
    listing = frame.select("path", size, time, is_link.alias("is_link"))
    return map_in_arrow(listing, choose, ddl_of(ListedFile))
