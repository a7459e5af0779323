"""What a driver measures in its process: the rows of a query as a digest, its time, and the
engine's own counts."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

_BITS = 128


@dataclass
class Job:
    """The query on one set of files: `files`, or the table in the folder `table`."""

    name: str
    files: list[str]
    sizes: list[list[int]]
    """Rows of each row group of each file."""
    table: str | None = None
    table_format: str | None = None
    filters: bool = True
    """Whether the engine may use filters, where a setting can say so."""


@dataclass
class Counts:
    """What an engine reports about a query; None for what it does not report."""

    row_groups_read: int | None = None
    rows_scanned: int | None = None
    bytes_read: int | None = None
    pages_read: int | None = None
    columns_left_out: list[str] = field(default_factory=list)
    """Columns that the query left out, because the engine cannot read their types."""


@dataclass
class QueryCondition:
    """A condition on a column: its path, and the value as text."""

    path: list[str]
    text: str
    scratch: str
    """An empty folder for temporary files of the engine."""
    is_text: bool = False
    """Whether the value is text even where it begins with 0x, as bytes do."""


class Driver(Protocol):
    """A query engine in this process."""

    version: str

    def run(self, job: Job, rows: RowDigest) -> Counts:
        """Run the query, add all rows of its result to `rows` in its `timed` block, and return what
        the engine counted."""


class RowDigest:
    """A digest of rows that does not depend on their order, in constant memory."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """The time in `timed` blocks."""
        self.count = 0
        self._sum = 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time the query itself, without what a driver does before and after it."""
        start = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - start

    def add(self, row: bytes) -> None:
        """Add a row."""
        self.count += 1
        digest = hashlib.blake2b(row, digest_size=_BITS // 8).digest()
        self._sum += int.from_bytes(digest, "little")

    def add_batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add all rows of Arrow batches."""
        for row in _rows_of_batches(batches):
            self.add(row)

    def add_sum(self, count: int, total: int) -> None:
        """Add rows of which the engine itself computed the sum of hashes."""
        self.count += count
        self._sum += total

    @property
    def digest(self) -> str:
        """The sum of the hashes of all rows."""
        return f"{self._sum % (1 << _BITS):x}"


def measure(driver: Driver, job: Job) -> dict[str, Any]:
    """Run the query twice; return the rows and counts of the first run, and the shortest time."""
    seconds = []
    result: dict[str, Any] = {}
    for _ in range(2):
        rows = RowDigest()
        counts = driver.run(job, rows)
        seconds.append(rows.seconds)
        if not result:
            result = {"rows": rows.count, "digest": rows.digest, **vars(counts)}
    return {**result, "seconds": min(seconds)}


def _rows_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """Yield each row of Arrow batches as bytes that are equal for equal rows. Raises TypeError for
    types without Python values."""
    for batch in batches:
        try:
            columns = [_plain(column).to_pylist() for column in batch.columns]
        except KeyError:  # pyarrow's table of Python classes lacks the type
            kinds = ", ".join(sorted(set(map(str, batch.schema.types))))
            raise TypeError(
                f"pyarrow has no Python values for one of the column types {kinds}"
            ) from None
        rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True)
        if not columns:
            rows = [()] * batch.num_rows
        for row in rows:
            yield repr(row).encode("utf-8", "surrogatepass")


def _plain(array: pa.Array) -> pa.Array:
    """Convert values that Python's types cannot hold exactly, such as nanoseconds."""
    import pyarrow as pa

    kind = _plain_type(array.type)
    if kind == array.type:
        return array
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array


def _plain_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if (
        pa.types.is_timestamp(kind)
        or pa.types.is_duration(kind)
        or pa.types.is_time64(kind)
        or pa.types.is_date64(kind)
    ):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    return kind


def count_row_groups(rows: int, sizes: Sequence[Sequence[int]]) -> int | None:
    """Return the number of whole row groups that have this many rows together; None if more than
    one number is possible, or none.

    Engines that count rows decode whole row groups. Writers make row groups of one size, apart from
    the last of each file.
    """
    sizes_of_all = Counter(chain.from_iterable(sizes))
    # By sum of rows, the numbers of row groups that have it.
    possible: dict[int, set[int]] = {0: {0}}
    for size in sorted(sizes_of_all):
        if size:
            possible = _add_size(possible, size, sizes_of_all[size], rows)
        if len(possible) > _MOST_SUMS:
            return None
    counts = list(possible.get(rows, ()))
    return counts[0] if len(counts) == 1 else None


def _add_size(
    possible: dict[int, set[int]], size: int, most: int, rows: int
) -> dict[int, set[int]]:
    """Return the sums up to `rows` that up to `most` further row groups of a size give."""
    sums: dict[int, set[int]] = {}
    for total, counts in possible.items():
        for extra in range(min(most, (rows - total) // size) + 1):
            numbers = sums.setdefault(total + extra * size, set())
            numbers.update(count + extra for count in counts)
    return sums


_MOST_SUMS = 100_000
