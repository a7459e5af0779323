"""Filters for a whole lake with Spark, in stages: discover, inspect, probe, check, verify, advise, and those that change files.

    from sbbf_tool.spark import pipeline

    files = pipeline.discover(spark, "/lake/events", where="dt >= '2026-01-01'")
    outcomes = pipeline.add_filters(spark, files, ["user_id"])

Each stage is a DataFrame with one row per file, whose columns are the fields of a dataclass in `sbbf_tool.reports`; you can inspect, filter
and save it before the next stage. Stages that read are lazy, as Spark's transformations are. Stages that change files (`add_filters`,
`apply`) are eager, as Spark's writes are: they do the work once and return its outcomes, which no action computes again.

The work is the same as that of the local runner (`sbbf_tool.runner`), one file in one task, with as many threads as `spark.task.cpus`; if
there are fewer large files than tasks can run concurrently, their threads use the other cores. Only the file determines what to do: retried
tasks, speculative tasks, second runs and other pipelines skip filters that exist. Paths must mean the same files on every executor, and
every executor must have this package installed.

The keys of encrypted files (`keys`; `Edit.keys` in stages that add filters) reach executors as part of the pickled function that a stage
maps, and in no other way: not in SQL, settings, columns, options or the environment. Plans, the UI, event logs and checkpoints contain the
name of that function but not the function. Like everything that Spark sends, the function is encrypted only by Spark: set
`spark.network.crypto.enabled`, and, for functions of more than 1 MiB, which Spark writes to disk, `spark.io.encryption.enabled`. Rows are
plaintext and contain what reports contain, including values of encrypted columns, but never filters of encrypted columns. A key service is
called on the executors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sbbf_tool.advice.queries import parse_query
from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import UsageError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.partitions import PathPredicate, parse_predicate
from sbbf_tool.file.table_file import TableFiles
from sbbf_tool.hints import Rebuild
from sbbf_tool.operations.advise import advise_on_surveys
from sbbf_tool.reports.advise import AdviceReport
from sbbf_tool.reports.lake import SurveyRow
from sbbf_tool.reports.plain import restore_bytes
from sbbf_tool.reports.probe import ProbeRow
from sbbf_tool.reports.rows import FileRow, ListedFile
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.runner import works
from sbbf_tool.runner.advise import surveys
from sbbf_tool.runner.discover import skip
from sbbf_tool.runner.failures import row_of
from sbbf_tool.runner.pack import TASK_COST
from sbbf_tool.runner.retry import restore_row
from sbbf_tool.runner.selection import Selection
from sbbf_tool.runner.table import find_table
from sbbf_tool.runner.works import Work
from sbbf_tool.spark.causes import convert_errors
from sbbf_tool.spark.listing import (
    complete_listing,
    count_files,
    list_catalog_table,
    list_names,
    list_table,
    measure_again,
    normalize_listing,
)
from sbbf_tool.spark.lookup import combine_answers, look_up_keys
from sbbf_tool.spark.progress import Progress, Tally, report_progress
from sbbf_tool.spark.rows import bundle_units, combine_by_file, compute_once, cores_of, map_units, materialize, rows_of
from sbbf_tool.spark.session import quiet_about_pandas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sbbf_tool.file.keys import Keys, KeysLike

Row = TypeVar("Row", bound=FileRow)


# --- discover ---


def discover(
    spark: SparkSession,
    files: str | Iterable[str] | DataFrame,
    where: str | PathPredicate | None = None,
    *,
    table: bool = False,
    links: bool = False,
) -> DataFrame:
    """List files (`ListedFile`) from names of files, folders and globs, or from a DataFrame with a column `path`, which may also have
    `length` and `modificationTime`, or `bytes` and `modified`. With `table`, `files` is one table: its folder or URL, another name that
    `open_table` takes, or a name in Spark's catalog. Its live files are listed; columns have the names that they have in the files.

    `where` selects partitions by the folders in paths: see `file.partitions`. An executor lists paths and stores; Spark lists HDFS and
    other file systems of Hadoop as `binaryFile`, which skips empty files. Relative paths are those of the driver. No file is read. The
    listing is eager, and is kept on the driver, or, above 100,000 files, on the cluster: see `spark.settled`. Raises UnreadableError for a
    path that does not exist.

    Links to files in folders are followed. With `links`, they are marked, and links to folders are listed too; the stages that change files
    skip both.
    """
    predicate = parse_predicate(where) if isinstance(where, str) else where
    if table:
        name = str(files)
        live_table = find_table(name)
        if live_table is None:
            paths = list_catalog_table(spark, name)
            if len(paths) == 1:
                name, live_table = paths[0], find_table(paths[0])
        if live_table is not None:
            return list_table(spark, Selection(name, predicate, table=live_table))
        files = spark.createDataFrame([(path,) for path in paths], "path string")
    if not isinstance(files, str | bytes | os.PathLike | Iterable):
        return materialize(normalize_listing(files, predicate), ListedFile)
    names = [os.fsdecode(name) for name in as_iterable(files)]
    return materialize(list_names(spark, names, predicate, links=links, must_exist=True), ListedFile)


# --- stages that read ---


def run(
    files: DataFrame,
    work: Work[Row],
    *,
    tasks: int | None = None,
    tally: Tally | None = None,
    report: str | None = None,
    is_new: bool = False,
) -> DataFrame:
    """Map each file to the row of the work: lazily, or eagerly if the work changes files. Such work skips links.

    Work that changes files needs their lengths from before the first change: they are measured unless the listing `is_new`. `report` names
    a folder for its outcomes as Parquet.
    """
    files = complete_listing(files)
    if work.changes and not is_new:
        files = materialize(measure_again(files), ListedFile)
    count, num_large = count_files(files, TASK_COST) if work.is_parallel else (count_files(files)[0], None)
    cores = cores_of(files)

    def work_on(file: ListedFile) -> Row:
        if file.skipped:
            return skip(work.row, file)
        path = restore_bytes(file.path)
        if not path:
            return row_of(work.row, path, _refuse_null)
        is_large = num_large is not None and (file.bytes or 0) > TASK_COST
        row = work(path, _threads(cores // max(1, num_large or 0)) if is_large else _threads(1))
        row = restore_row(row, file, work)
        if tally is not None:
            tally.add(row, file.bytes)
        return row

    rows = map_units(bundle_units(files, ListedFile, "bytes" if work.reads_data else None, tasks, count), ListedFile, work.row, work_on)
    return compute_once(rows, work.row, report, count) if work.changes else rows


def _refuse_null() -> dict[str, object]:
    raise UsageError("the path is null or empty", hint="leave such rows out")


def _threads(cores: int) -> int:
    """Return the number of threads for a file: the processors of its task, or more if the file may use so many of the cluster's cores."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return max(1 if context is None else context.cpus(), min(os.cpu_count() or 1, cores))


def inspect(
    files: DataFrame,
    columns: Iterable[str] = (),
    *,
    bitsets: bool = True,
    keys: KeysLike = None,
    tasks: int | None = None,
    strict: bool = False,
) -> DataFrame:
    """Inspect the filters of these columns, or of all, in each file; rows are `InspectRow`s."""
    return run(files, works.inspect(columns, bitsets=bitsets, keys=keys, strict=strict), tasks=tasks)


def probe(
    files: DataFrame, column: str, values: object, *, keys: KeysLike = None, tasks: int | None = None, strict: bool = False
) -> DataFrame:
    """Look up one or more values: which row groups of each file may contain each value; rows are `ProbeRow`s.

    `values` may be a DataFrame, with one column or one with the name of `column`: then executors join its rows with the files (see
    `spark.lookup`). Python values are sent with the function that Spark sends to each task.
    """
    if not hasattr(values, "mapInArrow"):  # the frames of Spark Connect have another class in PySpark 3.5
        return run(files, works.probe(column, values, keys=keys, strict=strict), tasks=tasks)
    answers = look_up_keys(complete_listing(files), column, cast("DataFrame", values), keys, tasks, count_files(files)[0], strict=strict)
    return combine_by_file(answers, ProbeRow, ProbeRow, combine_answers, tasks)


def verify(
    files: DataFrame,
    columns: Iterable[str] = (),
    *,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    tasks: int | None = None,
    strict: bool = False,
) -> DataFrame:
    """Query the filters of each file for every value; rows are `VerifyRow`s. `files` may be outcomes of `add_filters`."""
    return run(_without_links(files), works.verify(columns, keys=keys, max_page_bytes=max_page_bytes, strict=strict), tasks=tasks)


def _without_links(files: DataFrame) -> DataFrame:
    from pyspark.sql.functions import col

    return complete_listing(files).where(col("skipped").isNull())


def check(
    files: DataFrame,
    policy: Policy | None = None,
    *,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    tasks: int | None = None,
    strict: bool = False,
) -> DataFrame:
    """Run the rules on each file; rows are `CheckRow`s."""
    return run(files, works.check(policy or Policy(), keys=keys, max_page_bytes=max_page_bytes, strict=strict), tasks=tasks)


def apply(
    files: DataFrame, policy: Policy, *, tasks: int | None = None, table_files: TableFiles | None = None, **options: Any
) -> DataFrame:
    """Compare each file with the filters that `policy` declares, eagerly, with the options of `sbbf_tool.apply`; rows are `ApplyRow`s."""
    return run(files, works.apply_policy(policy.limits.filters, **options).of_table(table_files), tasks=tasks)


def advise(
    files: DataFrame,
    *,
    queries: Iterable[str] = (),
    fpp: float | None = None,
    engine_names: Iterable[str] = (),
    keys: Keys | None = None,
    max_page_bytes: MaxPageBytes = None,
    tasks: int | None = None,
) -> AdviceReport:
    """Advise which columns of all files together deserve a filter. Reads some data on the driver."""
    parsed_queries = tuple(parse_query(query) for query in as_iterable(queries))
    rows = rows_of(run(files, works.survey(parsed_queries, keys=keys, max_page_bytes=max_page_bytes), tasks=tasks), SurveyRow)
    return advise_on_surveys(
        ("the lake",), surveys(rows), queries=parsed_queries, fpp=fpp, engine_names=engine_names, keys=keys, limit=max_page_bytes
    )


# --- add filters ---


def add_filters(
    spark: SparkSession,
    files: str | Iterable[str] | DataFrame,
    spec: FilterSpec | Iterable[str],
    edit: Edit | None = None,
    *,
    rebuild: Rebuild | None = None,
    strict: bool = False,
    where: str | PathPredicate | None = None,
    report: str | None = None,
    tasks: int | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Add missing filters to every file, eagerly; return the outcome of each file (`AddRow`).

    `spec` is column names, or a `FilterSpec` with FPP and sizes; `rebuild` and `strict` are as in `sbbf_tool.add_filters`; `edit` has the
    keys of encrypted files, and whether files of tables may change. Links in the listing of a folder are skipped (see `discover`).
    `report` names a folder for the outcomes; otherwise up to 100,000 of them are kept on the driver, and more on the cluster, until the
    session ends. `progress` is called twice a second with files, filters and bytes added so far (not with Spark Connect, which has no
    accumulators).
    """
    full_spec = spec if isinstance(spec, FilterSpec) else FilterSpec(as_names(spec))
    tally = Tally.of(spark)
    is_new = isinstance(files, str | bytes | os.PathLike | Iterable)
    listing = discover(spark, files, where, links=True)
    with convert_errors(), quiet_about_pandas(), report_progress(tally, progress):
        work = works.add(full_spec, edit or Edit(in_place=True), rebuild=rebuild, strict=strict)
        return run(listing, work, tasks=tasks, tally=tally, report=report, is_new=is_new)


def report(outcomes: DataFrame, path: str | None = None) -> DataFrame:
    """Sum outcomes by status: files, filters, bytes added, seconds of work, one reason. Write outcomes to `path`, if given, as Parquet."""
    from pyspark.sql.functions import any_value, coalesce, col, count, lit, size, when
    from pyspark.sql.functions import sum as total

    summed = outcomes.groupBy("status").agg(
        count(lit(1)).alias("files"),
        coalesce(total(when(col("report").isNotNull(), size("report.filters"))), lit(0)).alias("filters"),
        coalesce(total(col("report.new_bytes") - col("report.old_bytes")), lit(0)).alias("bytes_added"),
        total("seconds").alias("seconds"),
        any_value("reason", True).alias("reason"),
    )
    if path is not None:
        outcomes.write.parquet(path)
    return summed
