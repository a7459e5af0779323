"""Look up the keys of a DataFrame in many files: executors join keys and files, 100,000 keys with 1,000 files at a time.

Spark broadcasts the keys to the executors, so no key passes through Python on the driver, or is pickled with the function of each task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from sbbf_tool.errors import UsageError
from sbbf_tool.reports.arrow import to_batch
from sbbf_tool.reports.lookup import LookupReport, LookupRow
from sbbf_tool.reports.plain import from_plain
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.runner import works
from sbbf_tool.runner.discover import skip
from sbbf_tool.spark.rows import Batches, bundle_units, ddl_of, map_in_arrow
from sbbf_tool.spark.settled import FILES_PER_TASK

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from sbbf_tool.file.keys import KeysLike

_KEYS_AT_ONCE = 100_000
"""Number of keys for which a file is opened once."""
_ROWS_PER_BATCH = 100


def look_up_keys(
    files: DataFrame, column: str, values: DataFrame, keys: KeysLike, tasks: int | None, count: int | None, *, strict: bool
) -> DataFrame:
    """Return a row (`LookupRow`) per file and 100,000 keys, at least one per file; `combine_answers` combines those of a file.

    Raises UsageError unless `values` has one column, or one with the name of the column of the files.
    """
    from pyspark.sql.functions import broadcast, lit

    def join_bundles(batches: Batches) -> Batches:

        # The keys are sent to Python once for each row of files.
        for batch in batches:
            units = batch.column(0).flatten()
            for start in range(0, len(units), FILES_PER_TASK):
                yield _list_batch("units", units.slice(start, FILES_PER_TASK))

    def answer(batches: Batches) -> Batches:
        for batch in batches:
            for row in range(batch.num_rows):
                work = works.look_up(column, batch.column("keys")[row].as_py() or (), keys=keys, strict=strict)
                units = batch.column("units")[row].as_py()
                files = (from_plain(ListedFile, unit) for unit in units)
                rows = (skip(LookupRow, file) if file.skipped else work(file.path) for file in files)
                while part := list(islice(rows, _ROWS_PER_BATCH)):
                    yield to_batch(LookupRow, part)

    bundles = bundle_units(files, ListedFile, None, tasks, count)
    groups = map_in_arrow(bundles, join_bundles, bundles.schema)
    # Without any key, each file keeps its row.
    return map_in_arrow(groups.join(broadcast(_bundle_keys(values, column)), lit(True), "left"), answer, ddl_of(LookupRow))


def combine_answers(path: str, rows: Iterator[LookupRow]) -> LookupRow:
    """Combine the rows of one file; if one of them failed, it is the row of the file."""
    first = next(rows)
    for row in rows:
        report, more = first.report, row.report
        if report is None:
            break
        first = row if more is None else replace(first, report=_add(report, more), seconds=first.seconds + row.seconds)
    return first


def _add(report: LookupReport, more: LookupReport) -> LookupReport:
    return replace(
        report,
        keys=report.keys + more.keys,
        hits=(*report.hits, *more.hits),
        bytes_read=report.bytes_read + more.bytes_read,
        requests=report.requests + more.requests,
    )


def _bundle_keys(values: DataFrame, column: str) -> DataFrame:
    """Return a column `keys` with lists of keys."""
    name = values.columns[0] if len(values.columns) == 1 else column
    if name not in values.columns:
        raise UsageError(
            f"the DataFrame of values has no column {column!r}", hint=f"select one of its columns: {', '.join(values.columns)}"
        )
    keys = values.select(values[f"`{name}`"].alias("key"))

    def bundle(batches: Batches) -> Batches:
        import pyarrow as pa

        arrays: list[pa.Array] = []
        # Spark's batches have 10,000 rows unless configured otherwise.
        for batch in batches:
            for start in range(0, batch.num_rows, _KEYS_AT_ONCE):
                part = batch.column(0).slice(start, _KEYS_AT_ONCE)
                if sum(map(len, arrays)) + len(part) > _KEYS_AT_ONCE:
                    yield _list_batch("keys", pa.concat_arrays(arrays))
                    arrays = []
                arrays.append(part)
        if arrays:
            yield _list_batch("keys", pa.concat_arrays(arrays))

    return map_in_arrow(keys.coalesce(1), bundle, f"keys array<{keys.schema['key'].dataType.simpleString()}>")


def _list_batch(name: str, values: pa.Array) -> pa.RecordBatch:
    """Return a batch of one row, with all values as a list."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)], names=[name])
