"""Find the data files of a table that may hold a value, and the data files that Paimon's file index
reader skips.

Only equality is supported, because a Bloom filter can answer no other predicate. A file remains
unless its index excludes the value; a filter never excludes null. For a partition column without a
filter, the partition of the file decides. Buckets and column statistics, which Paimon also uses to
skip files, are not used.

Values are written as text, of which digits finer than the hashed unit are rounded down, as in
Paimon:

| type                   | written                                                                |
|------------------------|------------------------------------------------------------------------|
| CHAR VARCHAR STRING    | unchanged; no blanks are added or removed                              |
| BINARY VARBINARY BYTES | 0x and an even number of hexadecimal digits                            |
| integers               | decimal                                                                |
| FLOAT DOUBLE           | decimal, optionally with an exponent, NaN, Infinity, -Infinity;        |
|                        | rounded once, as in Java                                               |
| DATE                   | 2024-02-29; years after 9999 with a sign                               |
| TIME                   | 23:59[:59[.999999999]]                                                 |
| TIMESTAMP              | a date, T or a blank, a time; Z allowed. A date alone means midnight   |
| TIMESTAMP_LTZ          | the same, with an offset such as +02:00; without one, UTC              |
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbbf_tool.arguments import as_iterable
from sbbf_tool.display import redact
from sbbf_tool.errors import ErrorPlace, UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND, MAX_PROBES, BloomFilter64, parse_bloom64
from sbbf_tool.extensions.paimon.fast_hash import (
    Hashes,
    HashForm,
    double_keys,
    float_keys,
    hash_bytes,
    hash_longs,
    key_of,
)
from sbbf_tool.extensions.paimon.file_in_table import request_in_file
from sbbf_tool.extensions.paimon.files import FileIO
from sbbf_tool.extensions.paimon.index_container import Container
from sbbf_tool.extensions.paimon.index_options import IndexRequest, why_not_convertible, why_unused
from sbbf_tool.extensions.paimon.reports import IndexAnswer, PaimonProbeReport, ProbedFile
from sbbf_tool.extensions.paimon.table import (
    FileIndex,
    IndexedFile,
    PaimonTable,
    find_index,
    open_table,
)
from sbbf_tool.extensions.paimon.table_schema import INTEGER_BITS, DataType, resolve_column
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.parquet import iso8601
from sbbf_tool.parquet.literals import write_object

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_FLOATING = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_SPECIAL_FLOAT = re.compile(r"(?P<sign>[+-]?)(?P<name>nan|inf|infinity)")
_BINARY_TYPES = ("BINARY", "VARBINARY")
_NANOS_PER_MICRO = 1_000
_NANOS_PER_MILLI = 1_000_000


class HashLiteral(Frozen):
    """Value in the form in which it is hashed."""

    key: bytes | int
    """Bytes for text and binary, and a signed 64-bit integer for other types."""

    @property
    def hashes(self) -> Hashes:
        """The hash, as an array of length 1 for a filter."""
        if isinstance(self.key, bytes):
            return hash_bytes([self.key])
        return hash_longs(np.array([self.key], np.int64))

    @property
    def hash64(self) -> int:
        return int(self.hashes[0])


class _ParsedValue(NamedTuple):
    """A value that the indexes are probed for."""

    text: str | None
    """None for null."""
    literal: HashLiteral | None
    """None for null, and for a type without a hash."""


def probe_paimon(
    table: str | os.PathLike[str],
    column: str,
    values: object,
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    files: FileIO | None = None,
) -> PaimonProbeReport:
    """Probe the indexes of a table for values of a column, given by its current name; `m[key]` is
    an entry of a map.

    `values` is an iterable of values or a single value: a string as above, a Python object, or None
    for null. Raises UsageError for a column that does not exist and a value that does not fit the
    type of the column.
    """
    paimon_table = open_table(
        files, table, snapshot=snapshot, branch=branch, allow_outside=allow_outside
    )
    query_values = tuple(as_iterable(values))
    with ErrorPlace(paimon_table.path, f"column {column}"):
        _, _, data_type = resolve_column(paimon_table.schema, column)
        texts = [_text_of(value, data_type) for value in query_values]
        parsed_values = [_parse_value(text, data_type) for text in texts]
    files_of_table = [
        _probe_file(paimon_table, live, column, data_type, parsed_values)
        for live in paimon_table.live_files
    ]
    return PaimonProbeReport(
        paimon_table.path,
        paimon_table.snapshot_id,
        column,
        str(data_type),
        why_unused(paimon_table.schema),
        tuple(files_of_table),
    )


def _parse_value(text: str | None, data_type: DataType) -> _ParsedValue:
    if text is None or key_of(data_type) is None:
        return _ParsedValue(text, None)
    return _ParsedValue(text, parse_literal(text, data_type))


def _text_of(value: object, data_type: DataType) -> str | None:
    """Convert a value to the text that `parse_literal` takes.

    Raises UsageError for unsupported objects.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        if data_type.root in _BINARY_TYPES:
            return f"0x{data.hex()}"
        return data.decode("utf-8", "surrogateescape")
    if value is None or isinstance(value, str):
        return value
    text = None if key_of(data_type) is HashForm.BYTES else write_object(value)
    if text is None:
        raise UsageError(f"{value!r} ({type(value).__name__}) is not a value of {data_type}")
    return text


def _probe_file(
    table: PaimonTable,
    live: IndexedFile,
    name: str,
    current_type: DataType,
    values: Sequence[_ParsedValue],
) -> ProbedFile:
    """Probe the index of a data file for values of the column with this current name."""
    index = find_index(table.files, live)
    request = request_in_file(table, live, IndexRequest(name))
    answers = []
    if request is None or request.type is None:
        column = None
        for value in values:
            reason = "the column is newer than the file"
            answers.append(IndexAnswer(value.text, None, True, reason))
    else:
        column = request.column
        has_index = index.container is not None and column in index.container.indexes
        for value in values:
            answer = _probe_value(index, column, current_type, request.type, value)
            if not has_index:
                answer = _apply_partition(live, column, answer, value)
            answers.append(answer)
    return ProbedFile(
        data_file=live.file.name,
        path=redact(live.path),
        partition=live.partition_text,
        bucket=live.entry.bucket,
        rows=live.file.row_count,
        place=index.place,
        column=column,
        answers=tuple(answers),
    )


def _probe_value(
    index: FileIndex, column: str, current_type: DataType, stored: DataType, value: _ParsedValue
) -> IndexAnswer:
    """Look up a value of the current type in the index of a file with the `stored` type."""
    if index.container is None:
        reason = "no index"
        if index.problem:
            reason = f"the index cannot be used, Paimon fails on it: {index.problem}"
        return IndexAnswer(value.text, None, True, reason)
    if value.literal is not None:
        obstacle = why_not_convertible(current_type, stored, value.literal.key)
        if obstacle is not None:
            return IndexAnswer(value.text, None, True, obstacle)
    return probe_container(index.container, column, value.text, value.literal)


def _apply_partition(
    live: IndexedFile, column: str, answer: IndexAnswer, value: _ParsedValue
) -> IndexAnswer:
    """Replace the answer with that of the file's partition if it has the column.

    All rows then have the partition's value.
    """
    literal = value.literal
    if value.text is not None and literal is None:
        return answer
    key = None if literal is None else literal.key
    for name, _, stored in live.partition:
        is_comparable = stored is None or isinstance(stored, str | bytes | int)
        if name == column and is_comparable:
            partition_key = stored.encode() if isinstance(stored, str) else stored
            return replace(
                answer,
                may_hold=partition_key == key,
                reason=f"the file's partition: {live.partition_text}",
            )
    return answer


def probe_container(
    container: Container, column: str, value: str | None, literal: HashLiteral | None
) -> IndexAnswer:
    """Look up one value of a column, by its name in the container.

    `literal` is None for a null and for a value of a type without a hash.
    """
    kinds = container.indexes.get(column, {})
    hash64 = None if literal is None else f"{literal.hash64:016x}"
    if any(entry.empty for entry in kinds.values()):
        return IndexAnswer(value, hash64, False, "the index is EMPTY: it has no values")
    if KIND not in kinds:
        reason = "the column has no bloom-filter index"
        if kinds:
            reason += f"; its {', '.join(kinds)} index is not evaluated"
        return IndexAnswer(value, hash64, True, reason)
    if value is None:
        return IndexAnswer(value, None, True, "filters do not contain null")
    if literal is None:
        return IndexAnswer(value, None, True, "Paimon has no hash for the type of the column")
    try:
        bloom = parse_bloom64(container.body_of(kinds[KIND]))
    except UnreadableError as error:
        return IndexAnswer(value, hash64, True, f"the filter cannot be used: {error.message}")
    may_hold = bool(bloom.contains(literal.hashes, bloom.paimon_probes)[0])
    reason = _explain_answer(bloom, literal, may_hold)
    other_kinds = [kind for kind in kinds if kind != KIND]
    if may_hold and other_kinds:
        names = ", ".join(other_kinds)
        reason += f"; its {names} index, not evaluated, may still exclude the value"
    return IndexAnswer(value, hash64, may_hold, reason)


def _explain_answer(bloom: BloomFilter64, literal: HashLiteral, may_hold: bool) -> str:
    if not may_hold:
        return "a bit of the value is not set"
    if bloom.paimon_probes == bloom.k:
        return "all bits of the value are set"
    if bloom.contains(literal.hashes)[0]:
        if bloom.k > MAX_PROBES:
            return f"k = {bloom.k}: not all bits were checked"
        return "all bits of the value are set"
    return (
        f"bits of the value are not set, but of k = {bloom.k} Paimon's reader checks only "
        f"{bloom.paimon_probes}"
    )


def parse_literal(text: str, data_type: DataType) -> HashLiteral:
    """Parse a value of a type.

    Raises UsageError if the text is not a value of the type, or the type has no hash in Paimon.
    """
    return HashLiteral(_parse_key(text, data_type))


def _parse_key(text: str, data_type: DataType) -> bytes | int:
    match key_of(data_type):
        case None:
            raise UsageError(f"Paimon has no hash for type {data_type}")
        case HashForm.BYTES if data_type.root in _BINARY_TYPES:
            return _parse_binary(text)
        case HashForm.BYTES:
            return _encode_text(text)
        case HashForm.INTEGER:
            return _parse_integer(text, data_type)
        case HashForm.FLOAT:
            floats = np.array([_parse_float(text)], np.float32)
            return int(float_keys(floats)[0])
        case HashForm.DOUBLE:
            doubles = np.array([_parse_double(text)], np.float64)
            return int(double_keys(doubles)[0])
        case form:
            return _parse_iso(text, data_type, form)


def _parse_iso(text: str, data_type: DataType, form: HashForm) -> int:
    """Parse a date, a time or a timestamp in ISO 8601 into the unit that is hashed."""
    try:
        if form is HashForm.DATE:
            return iso8601.parse_date(text)
        parse = iso8601.parse_time if form is HashForm.TIME else iso8601.parse_timestamp
        time = parse(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r:.60} is not a {data_type} in ISO 8601") from None
    if form is HashForm.TIME:
        is_within_day = 0 <= time.nanos < iso8601.NANOS_PER_DAY
        if time.zoned or not is_within_day:
            raise UsageError(f"{text!r:.60} is not a time of day")
    if data_type.root == "TIMESTAMP" and time.zoned and not text.endswith("Z"):
        raise UsageError(
            f"{text!r:.60} has an offset, but a TIMESTAMP has no time zone",
            hint="remove the offset",
        )
    nanos_per_unit = _NANOS_PER_MICRO if form is HashForm.MICROS else _NANOS_PER_MILLI
    return _check_range(time.nanos // nanos_per_unit, 64, text, data_type)


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!r:.60} cannot be encoded as UTF-8") from None


def _parse_binary(text: str) -> bytes:
    if not re.fullmatch(r"0[xX](?:[0-9a-fA-F]{2})*", text):
        raise UsageError(
            f"{text!r:.60} is not a binary value",
            hint="write 0x and two hexadecimal digits per byte",
        )
    return bytes.fromhex(text[2:])


def _parse_integer(text: str, data_type: DataType) -> int:
    if not _INTEGER.fullmatch(text):
        raise UsageError(f"{text!r:.60} is not a value of type {data_type}")
    return _check_range(int(text), INTEGER_BITS[data_type.root], text, data_type)


def _check_range(value: int, bits: int, text: str, data_type: DataType) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise UsageError(f"{text!r:.60} is out of the range of {data_type}")
    return value


def _parse_double(text: str) -> float:
    special = _SPECIAL_FLOAT.fullmatch(text.lower())
    if special:
        value = math.nan if special["name"] == "nan" else math.inf
        return -value if special["sign"] == "-" else value
    if not _FLOATING.fullmatch(text):
        raise UsageError(f"{text!r:.60} is not a number")
    value = float(text)
    if math.isinf(value):
        raise UsageError(f"{text!r:.60} is out of the range of DOUBLE")
    return value


def _parse_float(text: str) -> np.float32:
    """Parse the float nearest to the decimal, as pyarrow does.

    A conversion through a double could round twice.
    """
    import pyarrow as pa

    double = _parse_double(text)
    if not math.isfinite(double):
        return np.float32(double)
    decimal = pa.scalar(text.lstrip("+"))
    nearest = decimal.cast(pa.float32()).as_py()
    if math.isinf(nearest):
        raise UsageError(f"{text!r:.60} is out of the range of FLOAT")
    return np.float32(nearest)
