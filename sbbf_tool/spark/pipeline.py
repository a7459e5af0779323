"""Filters for a whole lake with Spark: discover -> inspect -> plan -> build -> publish -> verify -> report.

    from sbbf_tool.spark import pipeline

    files = pipeline.discover(spark, "/lake/events", where="dt >= '2026-01-01'")
    planned = pipeline.plan(files, ["user_id"])
    outcomes = pipeline.publish(pipeline.build(planned, ["user_id"]), ["user_id"])

Each stage is a DataFrame with one row per file (`build`: one per column chunk), whose columns are the fields of a dataclass in
`sbbf_tool.reports`; you can inspect, filter and save it before the next stage. Stages that read are lazy, as Spark's transformations are.
Stages that change files (`publish`, `fill`, `apply`) are eager, as Spark's writes are: they do the work once and return its outcomes, which
no action computes again. `add_filters` runs all stages.

The work is the same as that of the local runner (`sbbf_tool.runner`). Filters are built in splits of row groups, so that one large file
keeps all cores busy; bitsets, but never data, are shuffled to the one task that publishes the file. Only the file determines what to do:
retried tasks, speculative tasks, second runs and other pipelines skip filters that exist. Paths must mean the same files on every executor,
and every executor must have this package installed.

The keys of encrypted files (`keys`; `Edit.keys` in stages that add filters) reach executors as part of the pickled function that a stage
maps, and in no other way: not in SQL, settings, columns, options or the environment. Plans, the UI, event logs and checkpoints contain the
name of that function but not the function. Like everything that Spark sends, the function is encrypted only by Spark: set
`spark.network.crypto.enabled`, and, for functions of more than 1 MiB, which Spark writes to disk, `spark.io.encryption.enabled`. Rows are
plaintext and contain what reports contain, including values of encrypted columns, but never filters of encrypted columns. A key service is
called on the executors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sbbf_tool.advice.queries import parse_query
from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.partitions import PathPredicate, parse_predicate
from sbbf_tool.file.table_file import FileName, TableFiles
from sbbf_tool.operations.advise import advise_on_surveys
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.advise import AdviceReport
from sbbf_tool.reports.arrow import from_batch, to_batch
from sbbf_tool.reports.lake import BuiltChunk, PlannedFile, SurveyRow, VerifiedSplit
from sbbf_tool.reports.lookup import LookupRow
from sbbf_tool.reports.rows import FileRow, ListedFile
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.runner import works
from sbbf_tool.runner.advise import surveys
from sbbf_tool.runner.discover import skip_link
from sbbf_tool.runner.fill import build_split, fill_file, publish_file
from sbbf_tool.runner.pack import TASK_COST
from sbbf_tool.runner.plan import SPLIT_BYTES, plan_file
from sbbf_tool.runner.retry import restore_row
from sbbf_tool.runner.selection import Selection
from sbbf_tool.runner.verify import plan_verification, report_verification, verify_split
from sbbf_tool.runner.works import Work
from sbbf_tool.spark.causes import convert_errors
from sbbf_tool.spark.listing import complete_listing, count_files, list_catalog_table, list_names, list_table, normalize_listing
from sbbf_tool.spark.lookup import combine_answers, look_up_keys
from sbbf_tool.spark.progress import Progress, Tally, report_progress
from sbbf_tool.spark.rows import (
    Batches,
    Split,
    bundle_units,
    combine_by_file,
    compute_once,
    ddl_of,
    is_retry,
    map_in_arrow,
    map_units,
    materialize,
    rows_of,
)
from sbbf_tool.spark.session import quiet_about_pandas
from sbbf_tool.tables.locate import find_table

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


def run(files: DataFrame, work: Work[Row], *, tasks: int | None = None, tally: Tally | None = None) -> DataFrame:
    """Map each file to the row of the work: lazily, or eagerly if the work changes files. Such work skips links."""

    def work_on(file: ListedFile) -> tuple[Row]:
        return (skip_link(work.row, file.path) if file.is_link else _count(tally, work(file.path), file.bytes),)

    files, count = complete_listing(files), count_files(files)
    rows = map_units(bundle_units(files, ListedFile, "bytes" if work.reads_data else None, tasks, count), ListedFile, work.row, work_on)
    return compute_once(rows, work.row, count=count) if work.changes else rows


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
    """Look up one or more values: which row groups of each file may contain each value; rows are `LookupRow`s.

    `values` may be a DataFrame, with one column or one with the name of `column`: then executors join its rows with the files (see
    `spark.lookup`). Python values are sent with the function that Spark sends to each task.
    """
    if not hasattr(values, "mapInArrow"):  # the frames of Spark Connect have another class in PySpark 3.5
        return run(files, works.look_up(column, values, keys=keys, strict=strict), tasks=tasks)
    answers = look_up_keys(complete_listing(files), column, cast("DataFrame", values), keys, tasks, count_files(files), strict=strict)
    return combine_by_file(answers, LookupRow, LookupRow, combine_answers, tasks)


def verify(
    files: DataFrame,
    columns: Iterable[str] = (),
    *,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    whole_bytes: int = TASK_COST,
    split_bytes: int = SPLIT_BYTES,
    tasks: int | None = None,
    table_files: TableFiles | None = None,
    strict: bool = False,
    tally: Tally | None = None,
) -> DataFrame:
    """Query the filters of each file for every value; rows are `VerifyRow`s. `files` may be outcomes of `publish`, and is computed eagerly.

    Filters of files larger than `whole_bytes` are verified in splits of row groups; one task per file combines the results into the row
    that `verify` returns for the whole file. `table_files` is what tasks need to know of files of a table.
    """
    from pyspark.sql.functions import col

    names = as_names(columns)
    listed_files = materialize(normalize_listing(files, None), ListedFile).where(~col("is_link"))
    is_large = col("bytes").isNotNull() & (col("bytes") > whole_bytes)
    work = works.verify(names, keys=keys, max_page_bytes=max_page_bytes, strict=strict).of_table(table_files)
    small = run(listed_files.where(~is_large), work, tasks=tasks, tally=tally)
    large = listed_files.where(is_large)
    if large.isEmpty():
        return small

    def plan_in_splits(file: ListedFile) -> tuple[PlannedFile]:
        return (plan_verification(work.file(file.path), names, keys, split_bytes, strict=strict),)

    plans = map_units(bundle_units(large, ListedFile, None, tasks), ListedFile, PlannedFile, plan_in_splits)

    def verify_in_task(split: Split) -> tuple[VerifiedSplit]:
        if tally is not None:
            tally.file_bytes.add(split.data_bytes)
        return (verify_split(work.file(split.path), split.fingerprint, split.row_groups, names, keys, max_page_bytes),)

    def combine(path: str, results: Iterator[VerifiedSplit]) -> VerifyRow:
        row = report_verification(work.file(path), results, names, keys, max_page_bytes, strict=strict)
        return _count(tally, row, None)

    results = map_units(bundle_units(_splits_of(plans), Split, "data_bytes", tasks), Split, VerifiedSplit, verify_in_task)
    return small.unionByName(combine_by_file(results, VerifiedSplit, VerifyRow, combine, tasks))


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
    """Advise which columns of all files together deserve a filter. `FilterSpec.of_plan` accepts the plan. Reads some data on the driver."""
    parsed_queries = tuple(parse_query(query) for query in as_iterable(queries))
    rows = rows_of(run(files, works.survey(parsed_queries, keys=keys, max_page_bytes=max_page_bytes), tasks=tasks), SurveyRow)
    return advise_on_surveys(
        ("the lake",), surveys(rows), queries=parsed_queries, fpp=fpp, engine_names=engine_names, keys=keys, limit=max_page_bytes
    )


# --- plan, build, publish ---


def plan(
    files: DataFrame,
    spec: FilterSpec | Iterable[str],
    edit: Edit | None = None,
    *,
    split_bytes: int = SPLIT_BYTES,
    tasks: int | None = None,
    table_files: TableFiles | None = None,
) -> DataFrame:
    """Plan which filters each file lacks, and in which splits to build them; rows are `PlannedFile`s.

    In this and the next stages, `table_files` is what tasks need to know of files of a table, which are copied.
    """
    full_spec, full_edit = _spec(spec), _edit(edit)

    def work(file: ListedFile) -> tuple[PlannedFile]:
        name = _name(table_files, file.path)
        plan_of_file = partial(plan_file, name, full_spec, full_edit, split_bytes, measures=full_spec.ensure)
        return (skip_link(PlannedFile, file.path) if file.is_link else plan_of_file(),)

    units = bundle_units(normalize_listing(files, None), ListedFile, None, tasks, count_files(files))
    return map_units(units, ListedFile, PlannedFile, work)


def build(
    plans: DataFrame,
    spec: FilterSpec | Iterable[str],
    edit: Edit | None = None,
    *,
    tasks: int | None = None,
    table_files: TableFiles | None = None,
) -> DataFrame:
    """Build and verify the filter of each column chunk; rows are `BuiltChunk`s. Files whose status is not `ok` are skipped.

    Save the plan first: if an executor is lost while files are published, a lazy plan is computed again, with different results.
    """
    full_spec, full_edit = _spec(spec), _edit(edit)

    def work(split: Split) -> Iterator[BuiltChunk]:
        return build_split(_name(table_files, split.path), split.fingerprint, split.row_groups, full_spec, full_edit)

    splits = _splits_of(plans.where("status = 'ok'"))
    return map_units(bundle_units(splits, Split, "data_bytes", tasks), Split, BuiltChunk, work, apart=True)


def publish(
    chunks: DataFrame,
    spec: FilterSpec | Iterable[str],
    edit: Edit | None = None,
    *,
    report: str | None = None,
    tasks: int | None = None,
    progress: Progress | None = None,
    table_files: TableFiles | None = None,
) -> DataFrame:
    """Send the filters of each file to one task, which adds them to the file, eagerly; return the outcomes (`AddRow`).

    `report` and `progress` are those of `add_filters`.
    """
    tally = Tally.of(chunks.sparkSession)
    with report_progress(tally, progress):
        return compute_once(_publish(chunks, _spec(spec), _edit(edit), tasks, tally, table_files), AddRow, report)


def fill(
    files: DataFrame,
    spec: FilterSpec | Iterable[str],
    edit: Edit | None = None,
    *,
    report: str | None = None,
    tasks: int | None = None,
    progress: Progress | None = None,
    table_files: TableFiles | None = None,
) -> DataFrame:
    """Plan, build and publish each file or planned file in one task, with many files per task, eagerly; return the outcomes (`AddRow`).

    `report` and `progress` are those of `add_filters`.
    """
    tally = Tally.of(files.sparkSession)
    count = count_files(files)
    with report_progress(tally, progress):
        return compute_once(_fill(files, _spec(spec), _edit(edit), tasks, tally, table_files, count), AddRow, report, count)


# --- all stages ---


def add_filters(
    spark: SparkSession,
    files: str | Iterable[str] | DataFrame,
    spec: FilterSpec | Iterable[str],
    edit: Edit | None = None,
    *,
    where: str | PathPredicate | None = None,
    report: str | None = None,
    tasks: int | None = None,
    whole_bytes: int = TASK_COST,
    split_bytes: int = SPLIT_BYTES,
    progress: Progress | None = None,
    table_files: TableFiles | None = None,
    tally: Tally | None = None,
) -> DataFrame:
    """Add missing filters to every file, eagerly; return the outcome of each file (`AddRow`).

    Each file of up to `whole_bytes` is processed in one task, with many files per task; filters of larger files are built in splits. `spec`
    is column names, or a `FilterSpec` with FPP, sizes and other settings; `edit` has the keys of encrypted files, and whether files of
    tables may change. Links in the listing of a folder are skipped (see `discover`). `report` names a folder for the outcomes as Parquet;
    otherwise up to 100,000 of them are kept on the driver, and more on the cluster, until the session ends. `progress` is called twice a
    second with files, filters and bytes added so far (not with Spark Connect, which has no accumulators).
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import col

    full_spec, full_edit = _spec(spec), _edit(edit)
    tally = tally or Tally.of(spark)
    listing = discover(spark, files, where, links=True)
    is_small = col("bytes").isNotNull() & (col("bytes") <= whole_bytes)
    with convert_errors(), quiet_about_pandas(), report_progress(tally, progress):
        count = count_files(listing)
        fill_all = partial(_fill, spec=full_spec, edit=full_edit, tasks=tasks, tally=tally, table_files=table_files, count=count)
        outcomes = fill_all(listing.where(is_small))
        large_files = listing.where(~is_small)
        if not large_files.isEmpty():
            plans = plan(large_files, full_spec, full_edit, split_bytes=split_bytes, tasks=tasks, table_files=table_files)
            large = materialize(plans, PlannedFile)
            whole = fill_all(large.where("status in ('ok', 'skipped') and size(splits) <= 1"))
            chunks = build(large.where("size(splits) > 1"), full_spec, full_edit, tasks=tasks, table_files=table_files)
            in_splits = _publish(chunks, full_spec, full_edit, None, tally, table_files)
            without_work = _as_add_rows(large.where("status not in ('ok', 'skipped')"))
            outcomes = reduce(DataFrame.unionByName, (whole, in_splits, without_work), outcomes)
        return compute_once(outcomes, AddRow, report, count)


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


def _fill(
    files: DataFrame,
    spec: FilterSpec,
    edit: Edit,
    tasks: int | None,
    tally: Tally | None,
    table_files: TableFiles | None,
    count: int | None,
) -> DataFrame:
    """Return the lazy frame of `fill`."""

    def work(file: ListedFile) -> tuple[AddRow]:
        if file.is_link:
            return (skip_link(AddRow, file.path),)
        name = _name(table_files, file.path)
        row = fill_file(name, spec, edit)
        if is_retry():
            row = restore_row(row, name, edit, planned_bytes=file.bytes)
        return (_count(tally, row, file.bytes),)

    return map_units(bundle_units(normalize_listing(files, None), ListedFile, "bytes", tasks, count), ListedFile, AddRow, work)


def _publish(
    chunks: DataFrame, spec: FilterSpec, edit: Edit, tasks: int | None, tally: Tally | None, table_files: TableFiles | None
) -> DataFrame:
    """Return the lazy frame of `publish`."""

    def work(path: str, file_chunks: Iterator[BuiltChunk]) -> AddRow:
        name, first = _name(table_files, path), next(file_chunks)
        row = publish_file(name, chain((first,), file_chunks), spec, edit)
        if is_retry():
            row = restore_row(row, name, edit, fingerprint=first.fingerprint)
        return _count(tally, row, row.report.old_bytes if row.report is not None else None)

    return combine_by_file(chunks, BuiltChunk, AddRow, work, tasks, ("row_group", "column"))


def _splits_of(plans: DataFrame) -> DataFrame:
    """Return one row per `Split`; a planned file without splits gets a split without row groups, so that the file keeps a row."""
    from pyspark.sql.functions import array, coalesce, col, explode_outer, lit

    splits = plans.select("path", "fingerprint", explode_outer("splits").alias("split"))
    none = array().cast("array<bigint>")
    row_groups, data_bytes = coalesce(col("split.row_groups"), none), coalesce(col("split.data_bytes"), lit(0))
    return splits.select("path", "fingerprint", row_groups.alias("row_groups"), data_bytes.cast("bigint").alias("data_bytes"))


def _name(table_files: TableFiles | None, path: str) -> FileName:
    return path if table_files is None else table_files.file(path)


def _spec(spec: FilterSpec | Iterable[str]) -> FilterSpec:
    return spec if isinstance(spec, FilterSpec) else FilterSpec(as_names(spec), strict=False)


def _edit(edit: Edit | None) -> Edit:
    # A task has one core.
    return replace(edit or Edit(in_place=True), jobs=1)


def _count(tally: Tally | None, row: Row, num_bytes: int | None) -> Row:
    if tally is not None:
        tally.add(row, num_bytes)
    return row


def _as_add_rows(plans: DataFrame) -> DataFrame:
    """Return the outcomes of files that need no filters or cannot get any."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            rows = from_batch(PlannedFile, batch)
            yield to_batch(AddRow, [AddRow(row.path, row.status, row.reason, row.exit_code, row.seconds) for row in rows])

    return map_in_arrow(plans, run, ddl_of(AddRow))
