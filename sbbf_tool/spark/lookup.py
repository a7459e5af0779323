"""Look up the keys of a DataFrame in many files: executors join keys and files, 100,000 keys with
1,000 files each.

Spark broadcasts the keys to the executors, so no key passes through Python on the driver, or is
pickled with the function of each task.

The answers are those of a join of Spark on the key and the column, whatever the zone and the
settings of the session are: where Spark would convert the key or the column in a way that depends
on them, or that rounds, filters cannot say anything.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.reports.plain import from_batch, from_plain, restore_bytes, to_batch
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.running.discover import skip
from sbbf_tool.running.work import Work
from sbbf_tool.spark.bundles import Listing, cores_of
from sbbf_tool.spark.listing import complete_listing
from sbbf_tool.spark.rows import FILES_PER_TASK, Batches, ddl_of, map_in_arrow
from sbbf_tool.verbs.probe import Probe

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from sbbf_tool.file.keys import KeysLike

_KEYS_AT_ONCE = 100_000
"""Number of keys for which a file is opened once."""
_ROWS_PER_BATCH = 100

_WHOLE_NUMBERS = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (20, 0)}
"""Precision and scale that Spark gives the types as decimals."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38
_CANONICAL = re.compile(r"0|-?[1-9]\d{0,17}")
"""Text that every way of casting reads as the same number."""
EXACT_INTEGERS = {"FLOAT": 1 << 24, "DOUBLE": 1 << 53}
"""Integers up to this one are not rounded."""
GREGORIAN = date(1582, 10, 15)
"""Spark may read older dates as those of another calendar."""
_SINCE_LEGACY_ZONES = datetime(1900, 1, 2)
"""Spark may read older times with the offsets of other zones."""
_SAME = {
    "BOOLEAN": ("boolean",),
    "STRING": ("string", "binary"),
    "ENUM": ("string",),
    "JSON": ("string",),
    "UUID": ("string",),
    "BYTE_ARRAY": ("binary",),
    "FIXED_LEN_BYTE_ARRAY": ("binary",),
}
"""Types of keys that are compared by their own bytes, by the logical type of the column, or else
the physical one."""


def probe_keys(
    files: DataFrame, column: str, values: DataFrame, *, keys: KeysLike = None, strict: bool = False
) -> DataFrame:
    """Look up the rows of a DataFrame in the files of a listing: a row (`Row[ProbeReport]`) per
    file.

    Raises UsageError unless `values` has one column, or one with the name of the column of the
    files.
    """
    from pyspark.sql.functions import broadcast
    from pyspark.sql.types import IntegerType, StructField, StructType

    def join_bundles(batches: Batches) -> Batches:
        # The keys are sent to Python once for each row of files.
        for batch in batches:
            units = batch.column(0).flatten()
            for start in range(0, len(units), FILES_PER_TASK):
                yield _list_batch("units", units.slice(start, FILES_PER_TASK))

    key_frame = _select_key(values, column)
    infers_local_times = (
        values.sparkSession.conf.get("spark.sql.parquet.inferTimestampNTZ.enabled", "true") or ""
    ).lower()
    compares = partial(
        compare_in_spark,
        key_frame.schema["key"].dataType.simpleString(),
        infers_local_times == "true",
    )

    def answer(batches: Batches) -> Batches:
        for batch in batches:
            for row in range(batch.num_rows):
                verb = Probe(column, batch.column("keys")[row].as_py() or (), compares=compares)
                work = Work(verb, keys=keys, strict=strict)
                units = batch.column("units")[row].as_py()
                files = (from_plain(ListedFile, unit) for unit in units)
                rows = (
                    skip(file) if file.skipped else work(restore_bytes(file.path)) for file in files
                )
                while part := list(islice(rows, _ROWS_PER_BATCH)):
                    yield to_batch(Row[ProbeReport], part)

    def combine(batches: Batches) -> Batches:
        rows = (row for batch in batches for row in from_batch(Row[ProbeReport], batch))
        for _, answers in groupby(rows, key=attrgetter("path")):
            yield to_batch(Row[ProbeReport], [_combine_answers(answers)])

    listing = Listing.of(complete_listing(files))
    bundles = listing.bundle()
    groups = map_in_arrow(
        bundles,
        join_bundles,
        StructType([*bundles.schema.fields, StructField("number", IntegerType())]),
    )
    # Without any key, each file keeps its row. The number is always 0: Spark may refuse a join
    # without an equation.
    answers = map_in_arrow(
        groups.join(broadcast(_bundle_keys(key_frame)), "number", "left"),
        answer,
        ddl_of(Row[ProbeReport]),
    )
    by_file = answers.repartition(cores_of(listing.spark), "path").sortWithinPartitions("path")
    return map_in_arrow(by_file, combine, ddl_of(Row[ProbeReport]))


def _combine_answers(rows: Iterator[Row[ProbeReport]]) -> Row[ProbeReport]:
    """Combine the rows of one file; if one of them failed, it is the row of the file."""
    first = next(rows)
    for row in rows:
        report, more = first.report, row.report
        if report is None:
            break
        first = (
            row
            if more is None
            else replace(first, report=_add(report, more), seconds=first.seconds + row.seconds)
        )
    return first


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


def compare_in_spark(
    key_type: str, infers_local_times: bool, column: Any
) -> bool | Callable[[object], bool]:
    """Return which keys of a type of Spark equal the values of a column by their own value: all,
    none, or those that a function accepts."""
    logical = column.logical
    kind = column.physical if logical is None else logical.kind
    precision, scale = _WHOLE_NUMBERS.get(key_type, (0, 0))
    if decimal := _DECIMAL.fullmatch(key_type):
        precision, scale = int(decimal[1]), int(decimal[2])
    if column.doubt:
        return False
    if precision and logical is not None and kind == "DECIMAL":
        # Spark has 38 digits, and rounds if both need more.
        return bool(
            max(precision - scale, logical.precision - logical.scale) + max(scale, logical.scale)
            <= _MOST_DIGITS
        )
    if kind in ("INT32", "INT64", "INT"):
        if key_type == "string":
            return lambda key: _CANONICAL.fullmatch(str(key)) is not None
        return (
            bool(precision)
            and max(precision - scale, _WHOLE_NUMBERS["bigint"][0]) + scale <= _MOST_DIGITS
        )
    if kind in EXACT_INTEGERS:
        if key_type in _WHOLE_NUMBERS:
            return lambda key: isinstance(key, int) and abs(key) <= EXACT_INTEGERS[kind]
        if key_type == "double" and kind == "FLOAT":
            return lambda key: (
                isinstance(key, float) and (key != key or abs(key) == math.inf or _is_single(key))
            )
        return key_type in ("float", "double")
    if kind == "DATE" and key_type == "date":
        return lambda key: isinstance(key, date) and key >= GREGORIAN
    if kind == "TIMESTAMP" and logical is not None and logical.unit != "NANOS":
        if key_type == ("timestamp" if logical.utc else "timestamp_ntz") and (
            logical.utc or infers_local_times
        ):
            return lambda key: (
                isinstance(key, datetime) and key.replace(tzinfo=None) >= _SINCE_LEGACY_ZONES
            )
        return False
    return key_type in _SAME.get(kind, ())


def _is_single(number: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", number))[0] == number)
    except OverflowError:
        return False


def _bundle_keys(keys: DataFrame) -> DataFrame:
    """Return a column `keys` with lists of keys, and `number`."""

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

    return map_in_arrow(
        keys.coalesce(1),
        bundle,
        f"keys array<{keys.schema['key'].dataType.simpleString()}>, number int",
    )


def _list_batch(name: str, values: pa.Array) -> pa.RecordBatch:
    """Return a batch of one row: all values as a list, and the number 0."""
    import pyarrow as pa

    values_of_row = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return pa.RecordBatch.from_arrays(
        [values_of_row, pa.array([0], pa.int32())], names=[name, "number"]
    )
