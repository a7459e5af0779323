"""Filters for a whole lake with Spark: discover -> inspect -> plan -> build -> publish -> verify -> report.

    from sbbf_tool.spark import pipeline

    files = pipeline.discover(spark, "/lake/events", where="dt >= '2026-01-01'")
    planned = pipeline.plan(files, ["user_id"])
    outcomes = pipeline.publish(pipeline.build(planned, ["user_id"]), ["user_id"])

Each stage after the listing is a lazy DataFrame with one row per file (`build`: one per column chunk), whose columns are the fields of a
dataclass in `sbbf_tool.reports.lake`; you can inspect, filter and save it before the next stage. `add_filters` runs all stages.

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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

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
from sbbf_tool.reports.rows import FileRow, ListedFile
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.runner import works
from sbbf_tool.runner.advise import surveys
from sbbf_tool.runner.discover import path_of, skip_link
from sbbf_tool.runner.fill import build_split, fill_file, publish_file
from sbbf_tool.runner.pack import TASK_COST
from sbbf_tool.runner.plan import SPLIT_BYTES, plan_file
from sbbf_tool.runner.selection import Selection
from sbbf_tool.runner.verify import plan_verification, report_verification, verify_split
from sbbf_tool.runner.works import Work
from sbbf_tool.spark.listing import find_location, list_hadoop, list_paths, list_table, normalize_listing
from sbbf_tool.spark.progress import Progress, Tally, report_progress
from sbbf_tool.spark.rows import (
    Batches,
    Split,
    bundle_units,
    convert_errors,
    cores_of,
    ddl_of,
    map_in_arrow,
    map_units,
    materialize,
    rows_of,
    use_publish_settings,
)
from sbbf_tool.spark.session import quiet_about_pandas
from sbbf_tool.storage.places import is_listed_here
from sbbf_tool.storage.temporary import share_listings
from sbbf_tool.tables.locate import find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sbbf_tool.file.keys import Keys, KeysLike

Part = TypeVar("Part", bound=FileRow)
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
    other file systems of Hadoop as `binaryFile`, which skips empty files. No file is read. The listing is eager, and is kept on the driver.

    Links to files in folders are followed. With `links`, they are marked, and links to folders are listed too; the stages that change files
    skip both.
    """
    predicate = parse_predicate(where) if isinstance(where, str) else where
    if table:
        name = str(files)
        live_table = find_table(name)
        if live_table is None and (location := find_location(spark, name)) is not None:
            name, live_table = location, find_table(location)
        if live_table is not None:
            return list_table(spark, Selection(name, predicate, table=live_table))
        with convert_errors():
            files = spark.createDataFrame([(path,) for path in spark.table(name).inputFiles()], "path string")
    if not isinstance(files, str | bytes | os.PathLike | Iterable):
        return materialize(normalize_listing(files, predicate), ListedFile)
    names = [os.fsdecode(name) for name in as_iterable(files)]
    names = [path_of(name) for name in names]
    addresses = [name for name in names if not is_listed_here(name)]
    paths = [name for name in names if name not in addresses]
    listings = [normalize_listing(list_hadoop(spark, addresses), predicate)] if addresses else []
    if paths:
        listings.append(list_paths(spark, paths, predicate, links))
    return materialize(listings[0] if len(listings) == 1 else listings[0].unionByName(listings[1]), ListedFile)


# --- stages that read ---


def run(files: DataFrame, work: Work[Row], *, tasks: int | None = None) -> DataFrame:
    """Map each file to the row of the work. Links are skipped if the work changes files."""

    def work_on(file: ListedFile) -> tuple[Row]:
        return (skip_link(work.row, file.path) if file.is_link else work(file.path),)

    return map_units(bundle_units(files, ListedFile, "bytes" if work.reads_data else None, tasks), ListedFile, work.row, work_on)


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
    """Look up one or more values: which row groups of each file may contain each value; rows are `LookupRow`s."""
    return run(files, works.look_up(column, values, keys=keys, strict=strict), tasks=tasks)


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
    small = run(listed_files.where(~is_large), work, tasks=tasks)
    large = listed_files.where(is_large)
    if large.isEmpty():
        return small

    def plan_in_splits(file: ListedFile) -> tuple[PlannedFile]:
        return (plan_verification(work.file(file.path), names, keys, split_bytes, strict=strict),)

    plans = map_units(bundle_units(large, ListedFile, None, tasks), ListedFile, PlannedFile, plan_in_splits)

    def verify_in_task(split: Split) -> tuple[VerifiedSplit]:
        return (verify_split(work.file(split.path), split.fingerprint, split.row_groups, names, keys, max_page_bytes),)

    def combine(path: str, results: Iterator[VerifiedSplit]) -> VerifyRow:
        return report_verification(work.file(path), results, names, keys, max_page_bytes, strict=strict)

    results = map_units(bundle_units(_splits_of(plans), Split, "data_bytes", tasks), Split, VerifiedSplit, verify_in_task)
    return small.unionByName(_combine_by_file(results, VerifiedSplit, VerifyRow, combine, tasks))


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
    """Compare each file with the filters that `policy` declares, with the options of `sbbf_tool.apply`; rows are `ApplyRow`s."""
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

    return map_units(bundle_units(normalize_listing(files, None), ListedFile, None, tasks), ListedFile, PlannedFile, work)


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
    tasks: int | None = None,
    tally: Tally | None = None,
    table_files: TableFiles | None = None,
) -> DataFrame:
    """Send the filters of each file to one task, which adds them to the file; rows are `AddRow`s."""
    full_spec, full_edit = _spec(spec), _edit(edit)

    def work(path: str, file_chunks: Iterator[BuiltChunk]) -> AddRow:
        return _count(tally, publish_file(_name(table_files, path), file_chunks, full_spec, full_edit))

    return _combine_by_file(chunks, BuiltChunk, AddRow, work, tasks, ("row_group", "column"))


def fill(
    files: DataFrame,
    spec: FilterSpec | Iterable[str],
    edit: Edit | None = None,
    *,
    tasks: int | None = None,
    tally: Tally | None = None,
    table_files: TableFiles | None = None,
) -> DataFrame:
    """Plan, build and publish each file or planned file in one task, with many files per task; rows are `AddRow`s."""
    full_spec, full_edit = _spec(spec), _edit(edit)

    def work(file: ListedFile) -> tuple[AddRow]:
        name = _name(table_files, file.path)
        return (skip_link(AddRow, file.path) if file.is_link else _count(tally, fill_file(name, full_spec, full_edit)),)

    return map_units(bundle_units(normalize_listing(files, None), ListedFile, "bytes", tasks), ListedFile, AddRow, work)


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
) -> DataFrame:
    """Add missing filters to every file, eagerly; return the outcome of each file (`AddRow`).

    Each file of up to `whole_bytes` is processed in one task, with many files per task; filters of larger files are built in splits. `spec`
    is column names, or a `FilterSpec` with FPP, sizes and other settings; `edit` has the keys of encrypted files, and whether files of
    tables may change. Links in the listing of a folder are skipped (see `discover`). `report` names a folder for the outcomes as Parquet:
    use it for millions of files; otherwise outcomes are collected on the driver. `progress` is called twice a second with files, filters
    and bytes added so far (not with Spark Connect, which has no accumulators).
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import col

    full_spec, full_edit = _spec(spec), _edit(edit)
    tally = Tally.of(spark)
    listing = discover(spark, files, where, links=True)
    is_small = col("bytes").isNotNull() & (col("bytes") <= whole_bytes)
    with convert_errors(), quiet_about_pandas(), use_publish_settings(spark), report_progress(tally, progress):
        fill_all = partial(fill, spec=full_spec, edit=full_edit, tasks=tasks, tally=tally, table_files=table_files)
        outcomes = fill_all(listing.where(is_small))
        large_files = listing.where(~is_small)
        if not large_files.isEmpty():
            plans = plan(large_files, full_spec, full_edit, split_bytes=split_bytes, tasks=tasks, table_files=table_files)
            large = materialize(plans, PlannedFile)
            whole = fill_all(large.where("status in ('ok', 'skipped') and size(splits) <= 1"))
            chunks = build(large.where("size(splits) > 1"), full_spec, full_edit, tasks=tasks, table_files=table_files)
            in_splits = publish(chunks, full_spec, full_edit, tally=tally, table_files=table_files)
            without_work = _as_add_rows(large.where("status not in ('ok', 'skipped')"))
            outcomes = reduce(DataFrame.unionByName, (whole, in_splits, without_work), outcomes)
        return _compute_once(spark, outcomes, report)


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


def _splits_of(plans: DataFrame) -> DataFrame:
    """Return one row per `Split`; a planned file without splits gets a split without row groups, so that the file keeps a row."""
    from pyspark.sql.functions import array, coalesce, col, explode_outer, lit

    splits = plans.select("path", "fingerprint", explode_outer("splits").alias("split"))
    none = array().cast("array<bigint>")
    row_groups, data_bytes = coalesce(col("split.row_groups"), none), coalesce(col("split.data_bytes"), lit(0))
    return splits.select("path", "fingerprint", row_groups.alias("row_groups"), data_bytes.cast("bigint").alias("data_bytes"))


def _combine_by_file(
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
            for path, of_file in groupby(rows, key=lambda item: item.path):
                yield to_batch(row, [work(path, of_file)])

    grouped_parts = parts.repartition(tasks or cores_of(parts), "path").sortWithinPartitions("path", *order)
    return map_in_arrow(grouped_parts, run, ddl_of(row))


def _name(table_files: TableFiles | None, path: str) -> FileName:
    return path if table_files is None else table_files.file(path)


def _spec(spec: FilterSpec | Iterable[str]) -> FilterSpec:
    return spec if isinstance(spec, FilterSpec) else FilterSpec(as_names(spec), strict=False)


def _edit(edit: Edit | None) -> Edit:
    # A task has one core.
    return replace(edit or Edit(in_place=True), jobs=1)


def _count(tally: Tally | None, outcome: AddRow) -> AddRow:
    if tally is not None:
        tally.add(outcome)
    return outcome


def _as_add_rows(plans: DataFrame) -> DataFrame:
    """Return the outcomes of files that need no filters or cannot get any."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            rows = from_batch(PlannedFile, batch)
            yield to_batch(AddRow, [AddRow(row.path, row.status, row.reason, row.exit_code, row.seconds) for row in rows])

    return map_in_arrow(plans, run, ddl_of(AddRow))


def _compute_once(spark: SparkSession, outcomes: DataFrame, report: str | None) -> DataFrame:
    """Compute the outcomes once: computing a lazy frame again would be a second run, which finds that every file has its filters."""
    if report is not None:
        outcomes.write.parquet(report)
        return spark.read.parquet(report)
    return spark.createDataFrame(outcomes.toArrow(), ddl_of(AddRow))
