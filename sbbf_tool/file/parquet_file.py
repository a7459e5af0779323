"""A Parquet file that an operation works on: a source of bytes, a parsed footer, and the places of
its filters.

The parquet package knows bytes but not their origin; the storage package knows files but not their
content. This module combines them, and adds the file's name to the errors of the parquet package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from sbbf_tool import log
from sbbf_tool.arguments import as_names
from sbbf_tool.display import redact_text
from sbbf_tool.errors import (
    ErrorPlace,
    LockedError,
    MissingError,
    NoColumnError,
    NotApplicableError,
    NotParquetError,
    SbbfError,
    UnreadableError,
)
from sbbf_tool.file.context import Context
from sbbf_tool.file.interrupted import explain, parse_stored_footer
from sbbf_tool.file.table_file import Deletes, TableFile
from sbbf_tool.numbers import format_columns, format_count
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import StoredFilter, build_header, predict_header_bytes, read_header
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, TAIL_BYTES, Footer, Tail, parse_tail
from sbbf_tool.parquet.pages import ChunkPages
from sbbf_tool.parquet.splice import FilterPlace
from sbbf_tool.reports.rows import NOT_APPLICABLE, NamedColumn
from sbbf_tool.storage import places
from sbbf_tool.storage.source import PlannedSource, Source

# Most files are not encrypted, and commands start faster without the modules about keys, so these
# are imported when needed.
if TYPE_CHECKING:
    from sbbf_tool.encryption.file_cipher import KeyRing
    from sbbf_tool.parquet.values import PlainValues
    from sbbf_tool.storage.inputs import FileIn, Readable

# A filter up to this size is fetched with its header, because a second request would cost more.
_SMALL_FILTER = 4 << 10
_FIRST_BYTES = 512
"""Bytes from which the kind of a file that is not Parquet is named."""
# parquet-java's module of a header takes 132 bytes.
_ENCRYPTED_HEADER = 192


class ParquetFile:
    """An open file and its footer. Use as a context manager."""

    def __init__(
        self,
        source: Source,
        context: Context,
        ring: KeyRing | None = None,
        path: Readable | FileIn | None = None,
        file_name: str | None = None,
    ) -> None:
        self.source = source
        self.context = context
        self.ring = ring
        self.path = source.name if path is None else path
        """What the file was opened by: the file of a table knows its partition."""
        self._names = path.columns if isinstance(path, TableFile) else None
        self._leaves = partial(context.reuse.leaf_columns, names=self._names)
        self.ranges: Any = None
        """The `StatedRanges` of `file.layout`, once they are needed."""
        with self.locate_errors():
            tail = _read_tail(source)
            stored = source.read(tail.start, tail.length)
            self.footer, self._cipher = parse_stored_footer(stored, tail, ring, self._leaves)
            self.footer.file_name = (file_name or source.name).rpartition("/")[2]

    @classmethod
    def open(cls, path: Readable | FileIn, context: Context | None = None) -> ParquetFile:
        """Open a file. Raises UnreadableError, and LockedError if the footer is encrypted and its
        key is not in the context.

        A page with more bytes than the limit allows is not decompressed: reading it raises
        OversizedPageError. The columns of a `TableFile` have their names in the table.
        """
        return cls.of(places.open_source(path), context, path)

    @classmethod
    def of(
        cls,
        source: Source,
        context: Context | None = None,
        path: Readable | FileIn | None = None,
    ) -> ParquetFile:
        """Open the file of a source. The source is closed with the file, or immediately on an
        error."""
        context = context or Context()
        try:
            ring = context.ring_of(source.name if source.can_reopen else None)
            file = cls(source, context, ring, path)
        except UnreadableError as error:
            source.close()
            if source.can_reopen:
                explain(error, source.name)
            raise
        except BaseException:
            source.close()
            raise
        log_opened(source.name, source.size, file.footer.num_row_groups)
        return file

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.source.close()
        if isinstance(error, SbbfError):
            error.at(file=self.name)

    def before(self, end: int) -> ParquetFile:
        """Return the file as it was when it had this length."""
        source = PlannedSource(self.name, self.source, end, ())
        return ParquetFile(source, self.context, self.ring, self.path)

    def find_columns(self, names: Iterable[str]) -> list[Column]:
        """Return the columns with these names, each once, or all columns if `names` is empty.
        Raises UsageError.

        Names that a file of a table does not have are left out, because the table does, and, unless
        the context is strict, those that any other file does not have; NotApplicableError if it has
        none of them.
        """
        columns = {}
        missing = []
        errors = []
        with self.locate_errors():
            for name in as_names(names):
                try:
                    column = find_column(self.footer.columns, name)
                    columns[column.index] = column
                except NoColumnError as error:
                    if self.context.strict and not self.is_in_table:
                        raise
                    missing.append(name)
                    errors.append(self._describe_missing(error, name))
            if missing and not columns:
                reason = "; ".join(errors)
                if self.is_in_table:
                    reason = f"the file does not have {format_columns(missing)}"
                raise NotApplicableError(f"{NOT_APPLICABLE}: {reason}")
        return list(columns.values()) or list(self.footer.columns)

    def _describe_missing(self, error: NoColumnError, name: str) -> str:
        """Return the message for a column that the file lacks: a folder may have its value."""
        from sbbf_tool.file.partitions import partition_values

        if name in partition_values(self.name):
            return (
                f"{name} is a partition column: the names of folders have its values, and no "
                "filter is needed"
            )
        return str(error)

    def name_columns(self, names: Iterable[str]) -> tuple[NamedColumn, ...]:
        """Describe what the file has under each of these names. Raises UsageError for a name with
        several meanings."""

        def name_column(name: str) -> NamedColumn:
            try:
                return NamedColumn(name, find_column(self.footer.columns, name).type_name)
            except NoColumnError as error:
                return NamedColumn(name, None, self._describe_missing(error, name))

        return tuple(map(name_column, as_names(names)))

    @property
    def table(self) -> str | None:
        """The table that has the file, as the user named it; None for other files."""
        return self.path.table if isinstance(self.path, TableFile) else None

    @property
    def deletes(self) -> tuple[Deletes, ...]:
        """The deletes of a table that apply to the file."""
        return self.path.deletes if isinstance(self.path, TableFile) else ()

    @property
    def is_in_table(self) -> bool:
        """Whether the file belongs to a table with a known schema."""
        return self._names is not None and bool(self._names.table_paths)

    @property
    def changeable_name(self) -> str:
        """The name by which a command changes the file: its own, or that of its table."""
        return self.table or self.name

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def fingerprint(self) -> str:
        """The fingerprint of length and footer. A rewritten file, or a file with filters of another
        pipeline, has another footer."""
        import hashlib

        digest = hashlib.blake2b(self.footer.raw, digest_size=8)
        return f"{self.source.size}-{digest.hexdigest()}"

    def parse_copy(self, source: Source) -> ParquetFile:
        """Open a new version of this file, with its keys and the same names of columns. The caller
        closes the source."""
        return ParquetFile(source, self.context, self.ring, self.path, self.footer.file_name)

    def parse_footer_ending_at(self, end: int) -> Footer:
        """Parse the superseded footer that ended the file when it had `end` bytes. Raises
        UnreadableError, RefusedError."""
        last_bytes = self.source.read(end - TAIL_BYTES, TAIL_BYTES)
        tail = parse_tail(last_bytes, end)
        stored = self.source.read(tail.start, tail.length)
        footer, _ = parse_stored_footer(stored, tail, self.ring, self._leaves)
        return footer

    def stored_filter(
        self, row_group: int, column: Column, *, with_keys: bool = True
    ) -> StoredFilter | None:
        """Return the filter of a chunk, or, without `with_keys`, that which a reader without keys
        finds; None if the footer refers to none.

        Raises UnreadableError if the bytes cannot be a filter, AuthenticationError if they are not
        what the writer encrypted.
        """
        place = self.footer.filter_place(row_group, column.index)
        if place is None:
            return None
        with self.locate_errors(lambda: f"column {column.name}, row group {row_group}"):
            self.footer.ensure_type(row_group, column)
        with self.locate_errors(
            lambda: f"column {column.name}, row group {row_group}, filter at byte {place.offset:,}"
        ):
            if place.offset >= self.footer.end:
                raise UnreadableError(
                    f"the offset is outside the file, which has {self.source.size:,} bytes"
                )
            if self._cipher is not None and with_keys and self.has_key(row_group, column):
                key = (row_group, column.index)
                stored = self._cipher.read_filter(
                    self.source.read_up_to, self.footer.start, key, place
                )
            else:
                num_available = self.source.size - place.offset
                header = read_header(self.source.read, place.offset, num_available, place.length)
                if header.readings:
                    header = header.within(self.footer.start - place.offset, place.length)
                stored = StoredFilter(row_group, column.index, place, header)
            if stored.end > self.footer.start:
                where = "the footer" if stored.end <= self.source.size else "the end of the file"
                raise UnreadableError(
                    f"a bitset of {stored.header.num_bytes:,} bytes runs into {where}"
                )
            return stored

    def expect_filters(
        self,
        columns: Iterable[Column],
        *,
        whole: bool = False,
        headers_only: bool = False,
        also: Iterable[tuple[int, int]] = (),
        row_groups: Sequence[int] | None = None,
    ) -> None:
        """Announce reads of these columns' filters, and of the ranges in `also`; all are fetched
        concurrently.

        Filters are `whole`, or their first bytes, which are all of a small filter, or, with
        `headers_only`, their headers.
        """

        def ranges() -> Iterator[tuple[int, int]]:
            numbers = range(self.footer.num_row_groups) if row_groups is None else row_groups
            wanted = list(columns)
            places = self.footer.filter_places({column.index for column in wanted})
            if not places:
                return
            for column, row_group in product(wanted, numbers):
                place = places.get((row_group, column.index))
                if place is None:
                    continue
                if whole:
                    yield place.offset, place.length or _SMALL_FILTER
                else:
                    length = self._first_bytes(row_group, column, place, headers_only)
                    yield place.offset, length

        self.source.prefetch(chain(ranges(), also))

    def _first_bytes(
        self, row_group: int, column: Column, place: FilterPlace, headers_only: bool
    ) -> int:
        """Return how many bytes of a filter to fetch for its header or, unless `headers_only`, for
        a small filter as a whole."""
        if headers_only and not self.is_encrypted(row_group, column):
            return predict_header_bytes(place.length)
        most = _ENCRYPTED_HEADER if headers_only else _SMALL_FILTER
        return min(place.length or _SMALL_FILTER, most)

    def read_bitset(self, stored: StoredFilter) -> bytes:
        """Read the bitset of a filter. Raises AuthenticationError if an encrypted bitset is not
        what the writer encrypted."""
        data = self.source.read(stored.bitset_offset, stored.bitset_bytes)
        if not stored.is_encrypted:
            return data
        assert self._cipher is not None
        column = self.footer.columns[stored.column]
        with self.locate_errors(
            lambda: (
                f"column {column.name}, row group {stored.row_group}, filter at byte "
                f"{stored.place.offset:,}"
            )
        ):
            return self._cipher.decrypt_bitset(stored, data)

    def end_of_encrypted_filter(self, start: int, end: int) -> int | None:
        """Return the end of the encrypted filter, of any chunk, that begins at `start`; None if no
        filter from there ends by `end`."""
        if self._cipher is None:
            return None
        return self._cipher.end_of_any_filter(self.source.read_up_to, start, end)

    def filter_parts(
        self, row_group: int, column: int, bitset: bytes | bytearray | memoryview
    ) -> tuple[bytes | bytearray | memoryview, ...]:
        """Return header and bitset as this file stores them for a chunk, encrypted or not. Raises
        RefusedError if a key is missing."""
        header = build_header(len(bitset))
        reason = self.encryption_of(row_group, self.footer.columns[column])
        if reason is not None:
            raise LockedError(reason, hint="a plaintext filter would disclose its values")
        if self._cipher is None or not self.has_key(row_group, column):
            return header, bitset
        return self._cipher.encrypt_filter((row_group, column), header, bitset)

    def pages(self, row_group: int, column: Column) -> ChunkPages:
        """Return access to a chunk's pages, decrypted. Raises UnreadableError if they cannot be
        located, or if chunks share them."""
        self.footer.ensure_own_pages()
        meta = self.footer.chunk(row_group, column.index)
        assert meta is not None
        from sbbf_tool.parquet.checked_streams import with_checked_sizes

        if self._cipher is None or not self.has_key(row_group, column):
            pages = ChunkPages(
                meta,
                self.source.read_up_to,
                self.source.open_arrow,
                limit=lambda: self.footer.end_of_pages(meta),
            )
            return with_checked_sizes(pages, self.context.limit.ensure)
        from sbbf_tool.encryption.decrypted_pages import DecryptedPages

        with self.locate_errors(lambda: f"column {column.name}, row group {row_group}"):
            key = (row_group, column.index)
            decrypted = DecryptedPages(self.source.read_up_to, self._cipher, key, meta)
            return with_checked_sizes(decrypted.as_pages(), self.context.limit.ensure)

    def values(
        self, row_group: int, column: Column, *, with_rows: bool = False
    ) -> Generator[PlainValues, None, None]:
        """Yield all non-null values of a chunk, which pyarrow decodes; see `read_chunk`."""
        from sbbf_tool.parquet.values import read_chunk

        pages = self.pages(row_group, column)
        return read_chunk(self.footer, row_group, column, pages, with_rows=with_rows)

    def is_encrypted(self, row_group: int, column: Column) -> bool:
        if self.footer.index is not None:
            return False
        return self.footer.chunk_meta(row_group, column.index).is_encrypted

    def has_key(self, row_group: int, column: Column | int) -> bool:
        """Return whether a chunk is encrypted and its key is present."""
        if self._cipher is None:
            return False
        index = column if isinstance(column, int) else column.index
        return self._cipher.has_key((row_group, index))

    def warnings_about_keys(self, target: str) -> list[str]:
        """Return the warnings about key material that is stored beside this file and that a copy
        under another name would lack."""
        if self._cipher is None:
            return []
        from sbbf_tool.file.key_ring import key_material_path

        mine = key_material_path(self.name)
        copied = key_material_path(target)
        is_same = os.path.abspath(mine) == os.path.abspath(copied)
        if is_same or not os.path.lexists(mine):
            return []
        return [redact_text(f"{target}: readers look for its keys in {copied}; copy {mine} there")]

    def has_key_material(self) -> bool:
        """Return whether the file is encrypted, and its key material is in a file beside it."""
        if self._cipher is None and self.footer.metadata.encryption_algorithm is None:
            return False
        from sbbf_tool.file.key_ring import key_material_path

        beside = key_material_path(self.name)
        if not places.is_url(beside):
            return os.path.lexists(beside)
        try:
            places.open_source(beside).close()
        except MissingError:
            return False
        return True

    def encryption_of(self, row_group: int, column: Column) -> str | None:
        """Return which missing key makes a chunk unreadable; None if the chunk is not encrypted or
        the key is present."""
        if not self.is_encrypted(row_group, column) or self.has_key(row_group, column):
            return None
        if self._cipher is not None:
            missing = self._cipher.missing.get((row_group, column.index))
            if missing:
                return f"its column is encrypted with {missing}, which was not given"
        return "its column is encrypted"

    def locate_errors(self, place: str | Callable[[], str] | None = None) -> ErrorPlace:
        """Return a context manager that adds this file and the place to errors of modules that know
        only bytes."""
        return ErrorPlace(self.name, place)


def log_opened(name: str, size: int, num_row_groups: int) -> None:
    """Log that a file was opened."""
    num_bytes = format_count(size, "byte")
    row_groups = format_count(num_row_groups, "row group")
    log.info("opened %s: %s, %s", name, num_bytes, row_groups)


def _read_tail(source: Source) -> Tail:
    """Read the last bytes of a file. Raises NotParquetError, and UnreadableError for the beginning
    of a Parquet file."""
    size = source.size
    start_of_tail = max(0, size - TAIL_BYTES)
    last_bytes = source.read(start_of_tail, min(size, TAIL_BYTES))
    try:
        return parse_tail(last_bytes, size)
    except NotParquetError as error:
        start = source.read(0, min(size, _FIRST_BYTES))
        if start.startswith((MAGIC, MAGIC_ENCRYPTED)):
            raise UnreadableError(error.message, place=error.place, hint=error.hint) from None
        from sbbf_tool.parquet.other_kinds import name_other_kind

        other_kind = name_other_kind(start)
        if not other_kind:
            raise
        kind, hint = other_kind
        raise NotParquetError(f"not a Parquet file, but {kind}", hint=hint) from None
