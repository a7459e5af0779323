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
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sbbf_tool.errors import UsageError
from sbbf_tool.file.context import Context
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
    key_type = key_frame.schema["key"].dataType.simpleString()
    setting = values.sparkSession.conf.get("spark.sql.parquet.inferTimestampNTZ.enabled", "true")
    infers_local_times = setting is not None and setting.lower() == "true"
    compares = partial(compare_in_spark, key_type, infers_local_times)

    def look_up(keys_of_row: list[object], units: list[dict[str, Any]]) -> Iterator[Row[Any]]:
        verb = Probe(column, keys_of_row, compares=compares)
        work = Work(verb, Context(keys, strict=strict))
        for unit in units:
            file = from_plain(ListedFile, unit)
            yield skip(file) if file.skipped else work(restore_bytes(file.path))

    def answer(batches: Batches) -> Batches:
        for batch in batches:
            for row in range(batch.num_rows):
                keys_of_row = batch.column("keys")[row].as_py() or []
                rows = look_up(keys_of_row, batch.column("units")[row].as_py())
                while part := list(islice(rows, _ROWS_PER_BATCH)):
                    yield to_batch(Row[ProbeReport], part)

    def combine(batches: Batches) -> Batches:
        rows = chain.from_iterable(from_batch(Row[ProbeReport], batch) for batch in batches)
        for _, answers in groupby(rows, key=attrgetter("path")):
            yield to_batch(Row[ProbeReport], [_combine_answers(answers)])

    listing = Listing.of(complete_listing(files))
    bundles = listing.bundle()
    numbered = StructType([*bundles.schema.fields, StructField("number", IntegerType())])
    groups = map_in_arrow(bundles, join_bundles, numbered)
    # Without any key, each file keeps its row. The number is always 0: Spark may refuse a join
    # without an equation.
    pairs = groups.join(broadcast(_bundle_keys(key_frame)), "number", "left")
    schema = ddl_of(Row[ProbeReport])
    answers = map_in_arrow(pairs, answer, schema)
    by_file = answers.repartition(cores_of(listing.spark), "path").sortWithinPartitions("path")
    return map_in_arrow(by_file, combine, schema)


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
    return combined


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
    if column.doubt:
        return False
    logical = column.logical
    kind = column.physical if logical is None else logical.kind
    if kind in ("INT32", "INT64", "INT") and key_type == "string":
        return lambda key: _CANONICAL.fullmatch(str(key)) is not None
    if kind in ("INT32", "INT64", "INT"):
        return _fits_in_decimals(_digits_of(key_type), _WHOLE_NUMBERS["bigint"])
    if kind == "DECIMAL" and logical is not None:
        return _fits_in_decimals(_digits_of(key_type), (logical.precision, logical.scale))
    if kind in EXACT_INTEGERS:
        return _compare_with_floats(key_type, kind)
    if kind == "DATE" and key_type == "date":
        return lambda key: isinstance(key, date) and key >= GREGORIAN
    if kind == "TIMESTAMP" and logical is not None and logical.unit != "NANOS":
        if logical.utc:
            is_same_type = key_type == "timestamp"
        else:
            is_same_type = key_type == "timestamp_ntz" and infers_local_times
        return _is_of_todays_zones if is_same_type else False
    return key_type in _SAME.get(kind, ())


def _digits_of(key_type: str) -> tuple[int, int] | None:
    """Return precision and scale of a type of keys as decimals; None for other types."""
    decimal = _DECIMAL.fullmatch(key_type)
    if decimal is not None:
        return int(decimal[1]), int(decimal[2])
    return _WHOLE_NUMBERS.get(key_type)


def _fits_in_decimals(key: tuple[int, int] | None, column: tuple[int, int]) -> bool:
    """Return whether Spark compares both, given as precision and scale, without rounding: it has 38
    digits, and rounds if both together need more."""
    if key is None:
        return False
    whole_digits = max(precision - scale for precision, scale in (key, column))
    return whole_digits + max(key[1], column[1]) <= _MOST_DIGITS


def _compare_with_floats(key_type: str, kind: str) -> bool | Callable[[object], bool]:
    """Return which keys equal a FLOAT or DOUBLE by their own value."""
    if key_type in _WHOLE_NUMBERS:
        return lambda key: isinstance(key, int) and abs(key) <= EXACT_INTEGERS[kind]
    if key_type == "double" and kind == "FLOAT":
        return lambda key: isinstance(key, float) and _is_single(key)
    return key_type in ("float", "double")


def _is_of_todays_zones(key: object) -> bool:
    return isinstance(key, datetime) and key.replace(tzinfo=None) >= _SINCE_LEGACY_ZONES


def _is_single(number: float) -> bool:
    """Return whether a number is the same in single precision; infinities and NaN are."""
    if not math.isfinite(number):
        return True
    try:
        return bool(struct.unpack("<f", struct.pack("<f", number))[0] == number)
    except OverflowError:
        return False


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
