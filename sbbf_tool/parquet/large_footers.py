"""What is left out of a large footer before it becomes objects, which take up to 200 times the
memory of the bytes that state them.

    key_value_metadata   of many pairs, those that this package reads; `read_pairs` reads all, one
                         by one
    column_orders        none if they are more than the schema has elements: they belong to no
                         column
    other lists          refused if they state more structs than the bytes of any known writer hold

Nothing that is left out changes an answer. Bytes of a footer are never written from these objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.compact import Splice
from sbbf_tool.parquet.idl.ttypes import KeyValue
from sbbf_tool.parquet.structs import parse_struct

try:
    from sbbf_tool.parquet import _compact
except ImportError:
    has_outlines = False
else:
    has_outlines = True

LARGE_FOOTER = 64 << 10
"""Bytes up to which a footer becomes objects as it is."""
MANY_PAIRS = 10_000

_KEYS_READ = (
    "ARROW:schema",
    "drill-writer.version",
    "drill.version",
    "duckdb.interval_bloom_filter",
    "geo",
    "is.date.correct",
    "org.apache.spark.legacyDateTime",
    "org.apache.spark.legacyINT96",
    "org.apache.spark.sql.parquet.row.metadata",
    "org.apache.spark.version",
    "writer.date.proleptic",
    "writer.time.zone",
    "writer.zone.conversion.legacy",
)
"""The keys that this package looks up by name."""

# Without pairs and orders, the smallest struct that a writer repeats, a SchemaElement with a name
# of one letter, has 8 bytes; a column with a chunk has 80.
_FREE_STRUCTS = 100_000
_BYTES_PER_STRUCT = 8
_BYTES_PER_SCHEMA_ELEMENT = 16

# Field ids in parquet.thrift.
_SCHEMA = 2
_KEY_VALUES = 5
_COLUMN_ORDERS = 7
_PAIRS_AT_ONCE = 1 << 16


class _Value(NamedTuple):
    """Where the value of a field of the footer is."""

    id: int
    kind: int
    start: int
    end: int


class PairsAt(NamedTuple):
    """Many key-values in a footer."""

    start: int
    """Position of the first one."""
    num_pairs: int


class Cuts(NamedTuple):
    """What is left out of a footer."""

    splices: tuple[Splice, ...] = ()
    pairs: PairsAt | None = None
    """The pairs, if some are left out."""


class ListSizes(NamedTuple):
    """How long the lists of a footer are; the longest, should it have several of a kind."""

    structs: int
    """In all lists but key-values and column orders."""
    schema: int
    pairs: int
    orders: int

    def are_usual(self, num_bytes: int) -> bool:
        """Return whether `plan_cuts` leaves a footer of so many bytes as it is."""
        return (
            self.structs <= _FREE_STRUCTS + num_bytes // _BYTES_PER_STRUCT
            and self.schema <= _FREE_STRUCTS + num_bytes // _BYTES_PER_SCHEMA_ELEMENT
            and self.pairs <= MANY_PAIRS
            and self.orders <= self.schema
        )


def plan_cuts(raw: bytes, table: bytes) -> Cuts:
    """Plan what to leave out of a footer; `table` describes its structs to the extension. Raises
    UnreadableError for more structs than a footer of its length can have."""
    if len(raw) <= LARGE_FOOTER:
        return Cuts()
    values = _outline(raw, table)
    num_columns = max((_count(raw, value) for value in values if value.id == _SCHEMA), default=0)
    _ensure_few(raw, num_columns, "schema elements", _BYTES_PER_SCHEMA_ELEMENT)
    splices = []
    pairs: PairsAt | None = None
    for value in values:
        count = _count(raw, value)
        if value.id == _KEY_VALUES and count:
            pairs = None  # of several lists, the last one counts
        if value.id == _KEY_VALUES and count > MANY_PAIRS:
            pairs = PairsAt(compact.list_header(raw, value.start)[2], count)
            splices.append(Splice(value.start, value.end, _build_list(_pairs_read(raw, pairs))))
        elif value.id == _COLUMN_ORDERS and count > num_columns:
            splices.append(Splice(value.start, value.end, _build_list([])))
    return Cuts(tuple(splices), pairs)


def read_pairs(raw: bytes, pairs: PairsAt) -> Iterator[KeyValue]:
    """Read all key-values of a footer, one by one."""
    for start, end in _spans(raw, pairs):
        yield parse_struct(KeyValue, raw[start:end])


def _outline(raw: bytes, table: bytes) -> list[_Value]:
    """List the values of the footer's fields; none if its bytes are unusual, which a reader
    judges."""
    if not has_outlines:
        try:
            fields = compact.fields(raw, 0)[0]
        except (IndexError, UnreadableError):
            return []
        return [_Value(field.id, field.kind, field.value, field.end) for field in fields]
    outline = _compact.outline(raw, table)
    if outline is None:
        return []
    positions, num_structs = outline
    _ensure_few(raw, num_structs, "structs", _BYTES_PER_STRUCT)
    numbers = memoryview(positions).cast("q").tolist()
    width = len(_Value._fields)
    return [_Value(*numbers[at : at + width]) for at in range(0, len(numbers), width)]


def _ensure_few(raw: bytes, count: int, noun: str, num_bytes: int) -> None:
    if count > _FREE_STRUCTS + len(raw) // num_bytes:
        raise UnreadableError(
            f"the footer states {count:,} {noun} in {len(raw):,} bytes, which no writer does"
        )


def _count(raw: bytes, value: _Value) -> int:
    """Count the structs of a list; 0 for any other value."""
    if value.kind != compact.LIST:
        return 0
    kind, count, _ = compact.list_header(raw, value.start)
    return count if kind == compact.STRUCT else 0


def _pairs_read(raw: bytes, pairs: PairsAt) -> list[bytes]:
    """Return the first and the last pair of each key that is looked up, in their order."""
    first: dict[str, tuple[int, int]] = {}
    last: dict[str, tuple[int, int]] = {}
    for start, end in _spans(raw, pairs, _KEYS_READ):
        key = parse_struct(KeyValue, raw[start:end]).key
        first.setdefault(key, (start, end))
        last[key] = (start, end)
    return [raw[start:end] for start, end in sorted({*first.values(), *last.values()})]


def _spans(raw: bytes, pairs: PairsAt, keys: tuple[str, ...] = ()) -> Iterator[tuple[int, int]]:
    """Yield where the pairs with these keys begin and end; of all pairs without keys."""
    if not has_outlines:
        yield from _spans_in_python(raw, pairs, keys)
        return
    names = b"".join(bytes([len(key)]) + key.encode() for key in keys)
    position, remaining = pairs
    while remaining:
        count = min(remaining, _PAIRS_AT_ONCE)
        position, found = _compact.pairs(raw, position, count, names)
        numbers = memoryview(found).cast("q")
        for at in range(0, len(numbers), 2):
            yield numbers[at], numbers[at + 1]
        remaining -= count


def _spans_in_python(
    raw: bytes, pairs: PairsAt, keys: tuple[str, ...]
) -> Iterator[tuple[int, int]]:
    start = pairs.start
    for _ in range(pairs.num_pairs):
        end = compact.skip(raw, start, compact.STRUCT)
        if not keys or parse_struct(KeyValue, raw[start:end]).key in keys:
            yield start, end
        start = end


def _build_list(elements: list[bytes]) -> bytes:
    """Build a list of structs."""
    header = bytes([0xF0 | compact.STRUCT]) + compact.build_varint(len(elements))
    return header + b"".join(elements)
