"""DataFrames of files (`ListedFile`) for `pipeline`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.file.partitions import PathPredicate
from sbbf_tool.frozen import replace
from sbbf_tool.hints import Fix
from sbbf_tool.reports.plain import escape_bytes, from_batch, restore_bytes, schema_of, to_batch
from sbbf_tool.reports.rows import LEFT_OUT, LINK, ListedFile, Row
from sbbf_tool.running.discover import discover as find_files
from sbbf_tool.running.discover import path_of, stat_file
from sbbf_tool.running.selection import is_table
from sbbf_tool.spark.causes import convert_errors
from sbbf_tool.spark.rows import Batches, ddl_of, map_in_arrow
from sbbf_tool.storage import listing, places

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LISTED_AT_ONCE = 10_000
_REQUESTS = 32


def list_catalog_table(spark: SparkSession, name: str) -> tuple[str, ...]:
    """Return the location of a table in Spark's catalog if this package knows its format;
    otherwise, or for a view, its files."""
    with convert_errors():
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()
        # A column may have the name too; what describes the table follows the columns.
        if rows:
            location = path_of(rows[-1]["data_type"])
            if is_table(location):
                return (location,)
        return tuple(path_of(path) for path in spark.table(name).inputFiles())


def table_of(files: Iterable[ListedFile]) -> pa.Table:
    """Return a listing that this process has made."""
    return pa.Table.from_batches([to_batch(ListedFile, files)])


def list_names(
    spark: SparkSession,
    names: list[str],
    predicate: PathPredicate | None,
    *,
    links: bool,
    must_exist: bool,
) -> DataFrame:
    """List files, folders, globs, stores and addresses of Hadoop (`ListedFile`).

    A path that does not exist raises UnreadableError if it `must_exist`; otherwise it is listed,
    and work on it fails.
    """
    if not names:
        raise UsageError(
            "no path was given", hint="give a file, a folder, a glob or a DataFrame of paths"
        )
    # Executors would resolve relative paths against a different folder.
    names = [places.absolute(path_of(name)) for name in names]
    addresses = [name for name in names if not places.is_listed_here(name)]
    paths = [name for name in names if name not in addresses]
    listings = []
    if addresses:
        listings.append(normalize_listing(_list_hadoop(spark, addresses), predicate))
    if paths:
        listings.append(_list_paths(spark, paths, predicate, links=links, must_exist=must_exist))
    if len(listings) == 1:
        return listings[0]
    return listings[0].unionByName(listings[1])


@convert_errors()
def _list_paths(
    spark: SparkSession,
    names: list[str],
    predicate: PathPredicate | None,
    *,
    links: bool,
    must_exist: bool,
) -> DataFrame:
    """List files, folders, globs and stores on an executor (`ListedFile`), some thousand per batch;
    see `runner.discover`."""

    def find(batches: Batches) -> Batches:
        for batch in batches:
            batch_names = [restore_bytes(name) for name in batch.column("name").to_pylist()]
            if must_exist:
                for name in batch_names:
                    ensure_exists(name)
            files = find_files(batch_names, predicate, links=links)
            if must_exist and not links:
                # A listing for users; the rows of a run also count the links to folders.
                files = (file for file in files if file.skipped is None)
            while rows := list(islice(files, _LISTED_AT_ONCE)):
                yield to_batch(ListedFile, rows)

    name_frame = spark.createDataFrame([(escape_bytes(name),) for name in names], "name string")
    return map_in_arrow(name_frame.coalesce(1), find, ddl_of(ListedFile))


def ensure_exists(name: str) -> None:
    """Raise UnreadableError for a local path that does not exist, and is no glob."""
    if not places.is_url(name) and listing.is_one_file(name) and not os.path.lexists(name):
        raise UnreadableError("[PATH_NOT_FOUND] no such file or directory", file=name)


def _list_hadoop(spark: SparkSession, names: list[str]) -> DataFrame:
    """List paths of Hadoop's file systems with Spark: columns `path`, `bytes` and `modified`, in
    seconds."""
    from pyspark.sql.functions import col

    with convert_errors():
        # This source reads the contents of files only if its column `content` is selected.
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(names)
    # Spark itself leaves out the names that hold no data. The first bytes are not looked at.
    is_data = col("path").rlike(r"(?i)(\.(parquet|parq|pq)|/[^./]+)$")
    files = files.where(is_data & (col("length") > 0))
    return files.select(
        "path",
        col("length").alias("bytes"),
        col("modificationTime").cast("double").alias("modified"),
    )


def complete_listing(frame: DataFrame) -> DataFrame:
    """Return a listing with all columns of `ListedFile`; `frame` may have paths alone."""
    is_complete = {field.name for field in fields(ListedFile)} <= set(frame.columns)
    return frame if is_complete else normalize_listing(frame, None)


def _absolute(name: str | None, folder: str) -> str:
    """Return the path of a row, below `folder` if it is relative; an empty text if it has none."""
    if not name:
        return ""
    path = path_of(name)
    return path if places.is_url(path) else os.path.join(folder, path)


class GivenNames:
    """The names of a run as they were given: executors get absolute paths, and their bytes that are
    not UTF-8 escaped."""

    def __init__(self, names: Iterable[str]) -> None:
        self._bases: dict[str, str] = {}
        """Names, or what is before the first folder with a wildcard, by their absolute paths."""
        for name in names:
            path = path_of(name)
            if path != name or not places.is_listed_here(name) or places.is_url(name):
                continue
            wildcard = re.search(listing.WILDCARD, name)
            base = name if wildcard is None else name[: wildcard.start()].rpartition("/")[0]
            for given in (name, base):
                self._bases.setdefault(places.absolute(given or "."), given)
        self._folder = ""
        """The last folder, most of whose files follow each other."""
        self._given_folder: str | None = None

    def name_file(self, file: ListedFile) -> ListedFile:
        """Return a file of the listing under its given name."""
        path = self._find(restore_bytes(file.path))
        return file if path == file.path else replace(file, path=path)

    def name_row(self, row: Row[Any]) -> Row[Any]:
        """Return the row of a file, and its report, under its given name."""
        path = self._find(row.path)
        if path == row.path:
            return row
        report = row.report
        names: dict[str, Any] = {}
        for field in ("file", "output"):
            if getattr(report, field, None) == row.path:
                names[field] = path
        findings = [
            replace(finding, file=path, fix=_rename(finding.fix, row.path, path))
            for finding in getattr(report, "findings", ())
        ]
        if findings:
            names["findings"] = tuple(findings)
        undo = getattr(report, "undo", None)
        if undo is not None:
            names["undo"] = _rename(undo, row.path, path)
        if report is not None:
            report = replace(report, **names)
        if isinstance(row.error, SbbfError) and row.error.file == row.path:
            row.error.file = path
        return replace(row, path=path, report=report)

    def _find(self, path: str) -> str:
        if path in self._bases:
            return self._bases[path]
        folder, name = os.path.split(path)
        if folder != self._folder:
            self._folder = folder
            self._given_folder = self._find_folder(folder)
        if self._given_folder is None:
            return path
        return os.path.join(self._given_folder, name)

    def _find_folder(self, folder: str) -> str | None:
        base = folder
        while base not in self._bases:
            parent = os.path.dirname(base)
            if parent == base:
                return None
            base = parent
        given = self._bases[base]
        if base == folder:
            return given
        return os.path.join(given, os.path.relpath(folder, base))


def _rename(fix: Fix | None, path: str, name: str) -> Fix | None:
    """Return a fix of the file `path` as one of the file `name`; other fixes as they are."""
    if fix is None or fix.files != (path,):
        return fix
    return replace(fix, files=(name,))


def measure_again(files: DataFrame) -> DataFrame:
    """Return a listing with the lengths that its files have now."""

    def measure_file(listed: ListedFile) -> ListedFile:
        if listed.skipped:
            return listed
        measured = stat_file(restore_bytes(listed.path))
        return listed if measured.bytes is None else measured

    def measure(batches: Batches) -> Batches:
        # Each thread waits for one request to the store.
        with ThreadPoolExecutor(_REQUESTS) as threads:
            for batch in batches:
                listed = from_batch(ListedFile, batch)
                yield to_batch(ListedFile, threads.map(measure_file, listed))

    return map_in_arrow(files, measure, ddl_of(ListedFile))


def normalize_listing(frame: DataFrame, predicate: PathPredicate | None) -> DataFrame:
    """Convert a listing to rows of `ListedFile`, with paths as this package writes them, and select
    the partitions.

    Relative paths are those of the driver. Raises UsageError if there is no column `path`.
    """
    from pyspark.sql.functions import coalesce, col, lit, when

    if "path" not in frame.columns:
        raise UsageError(
            "the DataFrame has no column 'path'", hint=f"its columns are {', '.join(frame.columns)}"
        )
    folder = os.getcwd()

    def column(name: str, alternative: str, kind: str) -> Column:
        source = lit(None)
        for label in (alternative, name):
            if label in frame.columns:
                source = col(label)
        return source.cast(kind).alias(name)

    def choose(batches: Batches) -> Batches:
        for batch in batches:
            files = _complete_batch(batch, folder)
            if predicate is not None:
                files = files.filter(_select_paths(files, predicate))
            yield files

    kind = dict(frame.dtypes)["path"]
    if kind not in ("string", "binary"):
        raise UsageError(
            f"the column 'path' of the DataFrame has the type {kind}", hint="give paths as text"
        )
    # The rows of an earlier stage, which are no listing, have the reason.
    reason = column("reason", "reason", "string")
    reason_to_skip = when(reason.isin(LINK, *LEFT_OUT), reason)
    known_columns = frame.select(
        col("path").cast("string"),
        column("bytes", "length", "bigint"),
        column("modified", "modificationTime", "double"),
        coalesce(column("skipped", "skipped", "string"), reason_to_skip).alias("skipped"),
    )
    return map_in_arrow(known_columns, choose, ddl_of(ListedFile))


def _complete_batch(batch: pa.RecordBatch, folder: str) -> pa.RecordBatch:
    """Return a batch with all columns of `ListedFile`, unknown ones null, and with absolute paths;
    relative paths are those of `folder`."""
    # Columns and not objects: there may be ten million files.
    paths = [_absolute(path, folder) for path in batch.column("path").to_pylist()]
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["path"] = pa.array(paths, pa.string())
    schema = schema_of(ListedFile)
    arrays = []
    for field in schema:
        array = columns.get(field.name)
        if array is None:
            array = pa.nulls(batch.num_rows, field.type)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _select_paths(files: pa.RecordBatch, predicate: PathPredicate) -> pa.BooleanArray:
    """Return which files of a batch are in the selected partitions, or have a reason in their
    row."""
    choices = []
    paths = files.column("path").to_pylist()
    for path, reason in zip(paths, files.column("skipped").to_pylist(), strict=True):
        choices.append(reason is not None or not path or predicate.accepts(path))
    return pa.array(choices, pa.bool_())
