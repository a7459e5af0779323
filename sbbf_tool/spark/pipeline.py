"""Verbs for a whole lake with Spark: list the files, then carry a verb to each.

    from sbbf_tool.spark import discover, run

    files = discover(spark, "/lake/events", where="dt >= '2026-01-01'", links=True)
    outcomes = run(AddFilter(FilterSpec("user_id")), files, edit=Edit(in_place=True))

Each step returns a DataFrame with one row per file, whose columns are the fields of a dataclass;
you can inspect, filter and save it before the next step. What only reads is lazy, as Spark's
transformations are. What changes files is eager, as Spark's writes are: it does the work once and
returns its outcomes, which no action computes again.

The work is the same as that of the local runner (`sbbf_tool.running`), each file in one task, with
as many threads as `spark.task.cpus`; if there are fewer large files than tasks can run
concurrently, their threads use the other cores. Only the file determines what to do: retried tasks,
speculative tasks, second runs and other pipelines skip filters that exist. Paths must mean the same
files on every executor, and every executor must have this package installed.

The keys of encrypted files (`keys`) reach executors as part of the pickled function that a step
maps, and in no other way: not in SQL, settings, columns, options or the environment. Plans, the UI,
event logs and checkpoints contain the name of that function but not the function. Like everything
that Spark sends, the function is encrypted only by Spark: set `spark.network.crypto.enabled`, and,
for functions of more than 1 MiB, which Spark writes to disk, `spark.io.encryption.enabled`. Rows
are plaintext and contain what reports contain, including values of encrypted columns, but never
filters of encrypted columns. A key service is called on the executors.

Credentials that the catalog of a table has handed out for its files reach executors in the same
way, without those of the catalog. An executor whose credentials expire asks the catalog by
its own configuration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_iterable
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.partitions import PathPredicate, Predicate
from sbbf_tool.reports.plain import from_plain, restore_bytes, to_batch
from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.running.discover import TASK_COST, skip
from sbbf_tool.running.local import FILES_PER_SCAN, FILES_WITHOUT_SCAN, LEAST_SHARE_OF_SCAN
from sbbf_tool.running.lost_rows import restore_row
from sbbf_tool.running.request import RunRequest
from sbbf_tool.running.selection import Selection, find_table
from sbbf_tool.running.work import Work
from sbbf_tool.spark.bundles import Listing, cores_of
from sbbf_tool.spark.listing import (
    complete_listing,
    list_catalog_table,
    list_names,
    measure_again,
    normalize_listing,
    table_of,
)
from sbbf_tool.spark.rows import Batches, compute_once, ddl_of, map_in_arrow
from sbbf_tool.storage.leftovers import share_listings
from sbbf_tool.storage.places import is_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.verbs.verb import Verb


def discover(
    spark: SparkSession,
    files: str | Iterable[str] | DataFrame,
    where: str | PathPredicate | None = None,
    *,
    table: bool = False,
    links: bool = False,
) -> DataFrame:
    """List files (`ListedFile`) from names of files, folders and globs, or from a DataFrame with a
    column `path`, which may also have `length` and `modificationTime`, or `bytes` and `modified`.
    With `table`, `files` is one table: its folder or URL, another name of a table, or a name in
    Spark's catalog. Its live files are listed; columns have the names that they have in the files.

    `where` selects partitions by the folders in paths: see `file.partitions`. An executor lists
    paths and stores; Spark lists HDFS and other file systems of Hadoop as `binaryFile`, which skips
    empty files. Relative paths are those of the driver. No file is read. The listing is eager, and
    is kept on the driver, or, above 100,000 files, on the cluster: see `spark.rows`. Raises
    UnreadableError for a path that does not exist.

    Links to files in folders are followed. With `links`, they are marked, and links to folders are
    listed too; the stages that change files skip both.
    """
    predicate = Predicate(where) if isinstance(where, str) else where
    if table:
        name = str(files)
        live_table = find_table(name)
        if live_table is None:
            paths = list_catalog_table(spark, name)
            if len(paths) == 1:
                name = paths[0]
                live_table = find_table(name)
        if live_table is not None:
            selection = Selection(name, predicate, table=live_table)
            return Listing(spark, table_of(selection.files())).frame()
        files = spark.createDataFrame([(path,) for path in paths], "path string")
    if not isinstance(files, str | bytes | os.PathLike | Iterable):
        listing = normalize_listing(files, predicate)
    else:
        names = [os.fsdecode(name) for name in as_iterable(files)]
        listing = list_names(spark, names, predicate, links=links, must_exist=True)
    return Listing.of(listing, keep=True).frame()


def run(
    verb: Verb[Any],
    files: DataFrame,
    *,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    strict: bool = False,
    edit: Edit | None = None,
) -> DataFrame:
    """Carry a verb to each file of a listing; return a row (`Row` of the verb's report) per file.

    The listing is read at once. The rows of a verb that reads are lazy. A verb that changes files,
    as `edit` says, works when called: up to 100,000 rows are kept on the driver, and more on the
    cluster, until the session ends. Links of a listing are skipped. `keys`, `max_page_bytes` and
    `strict` are as in `running.run`; `edit` may have the first two.
    """
    request = RunRequest((), keys=keys, max_page_bytes=max_page_bytes, strict=strict, edit=edit)
    work = request.work(verb)
    if not work.changes:
        return map_work(Listing.of(complete_listing(files)), work)
    # A change is recognised by the length that its file had before the run.
    listing = Listing.of(measure_again(complete_listing(files)), keep=True)
    return compute_once(map_work(listing, work), work.row, listing.size.rows)


def map_work(listing: Listing, work: Work[Any]) -> DataFrame:
    """Map each file to the row of the work, lazily."""
    rows_of_files = carrier(listing, work)

    def carry(batches: Batches) -> Batches:
        for batch in batches:
            for bundle in batch.column(0).to_pylist():
                files = [from_plain(ListedFile, values) for values in bundle]
                yield to_batch(work.row, rows_of_files(files))

    return map_in_arrow(listing.bundle(by_bytes=work.reads_data), carry, ddl_of(work.row))


def carrier(
    listing: Listing, work: Work[Any]
) -> Callable[[Sequence[ListedFile]], Iterator[Row[Any]]]:
    """Return the function by which executors carry the work to files of a listing."""
    # Large files share the cores of the cluster, where the work of a file can use several.
    cores_of_large = 1
    if work.needs.threads:
        cores_of_large = cores_of(listing.spark) // max(1, listing.size.large)

    are_scanned = listing.size.files >= FILES_WITHOUT_SCAN

    def work_on(file: ListedFile) -> Row[Any]:
        cores = 1
        if (file.bytes or 0) > TASK_COST:
            cores = cores_of_large
        return work(restore_bytes(file.path), _threads(cores))

    def carry(files: Sequence[ListedFile]) -> Iterator[Row[Any]]:
        scan = work.scanner() if are_scanned else None
        with share_listings():
            for first in range(0, len(files), FILES_PER_SCAN):
                batch = files[first : first + FILES_PER_SCAN]
                rows: list[Row[Any] | None] = [None] * len(batch)
                if scan is not None and not any(
                    file.skipped or is_url(file.path) for file in batch
                ):
                    rows = scan([restore_bytes(file.path) for file in batch])
                    num_scanned = len(rows) - rows.count(None)
                    if num_scanned < len(rows) // LEAST_SHARE_OF_SCAN:
                        scan = None
                for file, row in zip(batch, rows, strict=True):
                    if file.skipped:
                        yield skip(file)
                    else:
                        yield restore_row(row or work_on(file), file, work)

    return carry


def _threads(cores: int) -> int:
    """Return the number of threads for a file: the processors of its task, or more if the file may
    use so many of the cluster's cores."""
    from pyspark import TaskContext

    context = TaskContext.get()
    own_cores = 1 if context is None else context.cpus()
    return max(own_cores, min(os.cpu_count() or 1, cores))
