"""Look up the keys of a DataFrame in many files: executors join keys and files.

Spark broadcasts the keys to the executors, so no key passes through Python on the driver, or is
pickled with the function of each task. `key_rows` reads the rows that have the keys; without it,
the answers are those of statistics and filters, 1,000,000 keys with 1,000 files each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sbbf_tool.errors import UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.frozen import replace
from sbbf_tool.reports.plain import from_batch, from_plain, to_batch
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.running.discover import skip
from sbbf_tool.running.work import Work
from sbbf_tool.spark.bundles import Listing, cores_of
from sbbf_tool.spark.key_finder import Search, name_of
from sbbf_tool.spark.key_rows import find_rows
from sbbf_tool.spark.key_types import KeyTypes
from sbbf_tool.spark.listing import complete_listing
from sbbf_tool.spark.rows import Batches, ddl_of, map_in_arrow
from sbbf_tool.verbs.probe import Probe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sbbf_tool.file.keys import KeysLike

_KEYS_AT_ONCE = 1_000_000
"""Number of keys for which a file is opened once."""
_ROWS_PER_BATCH = 100
_FILES_PER_SCAN = 16
_MOST_HITS = 100
"""Keys that are listed of each row group, for so many keys."""
_CUT = f"more keys may be there: only the first {_MOST_HITS} of each row group are listed"


def probe_keys(
    files: DataFrame,
    column: str,
    values: DataFrame,
    *,
    confirm: bool = False,
    keys: KeysLike = None,
    strict: bool = False,
) -> DataFrame:
    """Look up the rows of a DataFrame in the files of a listing.

    With `confirm`, return the rows that have the keys: `path`, `row_group`, `row` (number in the
    file, from 0), `key` and `status`. They are those of a join of Spark, each once for each key; no
    row has null. A file that is not searched has one row instead, with `status` and `reason`: it
    `failed`, was `skipped` or `refused`, or its rows `cannot say`. The files are searched now, and
    the rows kept on the cluster. Rows that a table has deleted are not left out.

    Otherwise return, lazily, a row (`Row[ProbeReport]`) per file with what filters say; of each row
    group, the first 100 keys that it may hold, and a note if there are more.

    Raises UsageError unless `values` has one column, or one with the name of the column of the
    files.
    """
    key_frame = _select_key(values, column)
    search = Search(column, KeyTypes.of(key_frame), strict, keys)
    listing = Listing.of(complete_listing(files))
    # Keys are sent to Python once for each bundle.
    groups = listing.bundle(whole=True)
    if confirm:
        return find_rows(groups, key_frame, search)
    return _query_filters(listing, groups, key_frame, search)


def _query_filters(
    listing: Listing, groups: DataFrame, key_frame: DataFrame, search: Search
) -> DataFrame:
    """Return what filters say of the keys, a row per file."""
    from pyspark.sql.functions import broadcast

    def answer(batches: Batches) -> Batches:
        for batch in batches:
            for row in range(batch.num_rows):
                keys_of_row = batch.column("keys")[row].as_py() or []
                rows = _look_up(keys_of_row, batch.column("units")[row].as_py(), search)
                while part := list(islice(rows, _ROWS_PER_BATCH)):
                    yield to_batch(Row[ProbeReport], part)

    def combine(batches: Batches) -> Batches:
        rows = chain.from_iterable(from_batch(Row[ProbeReport], batch) for batch in batches)
        for _, answers in groupby(rows, key=attrgetter("path")):
            yield to_batch(Row[ProbeReport], [_combine_answers(answers)])

    # Without any key, each file keeps its row.
    pairs = groups.join(broadcast(_bundle_keys(key_frame)), "number", "left")
    schema = ddl_of(Row[ProbeReport])
    answers = map_in_arrow(pairs, answer, schema)
    by_file = answers.repartition(cores_of(listing.spark), "path").sortWithinPartitions("path")
    return map_in_arrow(by_file, combine, schema)


def _look_up(
    keys: list[object], units: list[dict[str, Any]], search: Search
) -> Iterator[Row[ProbeReport]]:
    """Yield the row of each file."""
    verb = Probe(search.column, keys, compares=search.types.compare)
    work = Work(verb, Context(search.keys, strict=search.strict))
    scan = work.scanner()
    for start in range(0, len(units), _FILES_PER_SCAN):
        files = [from_plain(ListedFile, unit) for unit in units[start : start + _FILES_PER_SCAN]]
        paths = list(map(name_of, files))
        scanned = [None] * len(files) if scan is None else scan(paths)
        for file, path, row in zip(files, paths, scanned, strict=True):
            if file.skipped:
                yield skip(file)
            else:
                yield _cut_hits(row or work(path))


def _cut_hits(row: Row[ProbeReport]) -> Row[ProbeReport]:
    """Keep the first hits of each row group, and note that there are more."""
    report = row.report
    if report is None or len(report.hits) <= _MOST_HITS:
        return row
    counts: Counter[int] = Counter()
    num_full = 0
    kept = []
    for hit in report.hits:
        if num_full == report.row_groups:
            break
        is_first = False
        for number in hit.row_groups:
            counts[number] += 1
            is_first = is_first or counts[number] <= _MOST_HITS
            num_full += counts[number] == _MOST_HITS
        if is_first:
            kept.append(hit)
    if len(kept) == len(report.hits):
        return row
    notes = tuple(dict.fromkeys((*report.notes, _CUT)))
    return replace(row, report=replace(report, hits=tuple(kept), notes=notes))


def _combine_answers(rows: Iterator[Row[ProbeReport]]) -> Row[ProbeReport]:
    """Combine the rows of one file; if one of them failed, it is the row of the file."""
    combined = next(rows)
    for row in rows:
        report = combined.report
        if report is None:
            break
        if row.report is None:
            return row
        seconds = combined.seconds + row.seconds
        combined = replace(combined, report=_add(report, row.report), seconds=seconds)
    return _cut_hits(combined)


def _add(report: ProbeReport, more: ProbeReport) -> ProbeReport:
    return replace(
        report,
        num_values=report.num_values + more.num_values,
        hits=(*report.hits, *more.hits),
        inconclusive=tuple(dict.fromkeys((*report.inconclusive, *more.inconclusive))),
        notes=tuple(dict.fromkeys((*report.notes, *more.notes))),
        bytes_read=report.bytes_read + more.bytes_read,
        requests=report.requests + more.requests,
    )


def _select_key(values: DataFrame, column: str) -> DataFrame:
    """Return the column `key`. Raises UsageError unless `values` has one column, or one with the
    name of the column of the files."""
    name = values.columns[0] if len(values.columns) == 1 else column
    if name not in values.columns:
        hint = f"select one of its columns: {', '.join(values.columns)}"
        raise UsageError(f"the DataFrame of values has no column {column!r}", hint=hint)
    quoted_name = name.replace("`", "``")
    return values.select(values[f"`{quoted_name}`"].alias("key"))


def _bundle_keys(keys: DataFrame) -> DataFrame:
    """Return a column `keys` with lists of keys, and `number`."""

    def bundle(batches: Batches) -> Batches:
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

    key_type = keys.schema["key"].dataType.simpleString()
    return map_in_arrow(keys.coalesce(1), bundle, f"keys array<{key_type}>, number int")


def _list_batch(name: str, values: pa.Array) -> pa.RecordBatch:
    """Return a batch of one row: all values as a list, and the number 0."""
    ends = pa.array([0, len(values)], pa.int32())
    number = pa.array([0], pa.int32())
    columns = [pa.ListArray.from_arrays(ends, values), number]
    return pa.RecordBatch.from_arrays(columns, names=[name, "number"])
