"""Files with one defect each, made of a sound file, or by the writer that really makes it.

`sound.parquet` was written by `write_sound` and stays as it is, so that the bytes do not depend on
this machine's pyarrow. Two row groups of 1,300 rows, uncompressed and plain; filters on `id`,
`name` and `tag`, none on `seq`, which is sorted.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.bloom.dialects import find_dialect
from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.bloom.spec import block_index
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import build_draft_header, build_header
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.idl.ttypes import (
    ColumnCryptoMetaData,
    CompressionCodec,
    Encoding,
    EncryptionWithFooterKey,
    FileMetaData,
    PageType,
)
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.parquet.structs import build_struct, parse_struct
from sbbf_tool.parquet.values import read_chunk
from support.corpus_edits import edit_footer
from support.page_bombs import Page, compress, write_pages

HERE = Path(__file__).parents[1] / "golden"
SOUND = HERE / "sound.parquet"
FIXTURES = HERE.parent.parent / "fixtures"

GROUPS, ROWS = 2, 1300
SIZE = 2048
"""Bytes of the bitsets that the sound file has for 1,300 distinct values."""


def write_sound(path: Path) -> None:
    """Write the sound file again."""
    from sbbf_tool.verbs.add_filter import add_filters

    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("name", pa.string(), nullable=False),
            pa.field("tag", pa.string(), nullable=False),
            pa.field("seq", pa.int64(), nullable=False),
        ]
    )
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for group in range(GROUPS):
            numbers = [row * 571 % ROWS * GROUPS + group for row in range(ROWS)]
            rows = {
                "id": [1000 + 17 * n for n in numbers],
                "name": [
                    f"user-{hashlib.md5(str(n).encode(), usedforsecurity=False).hexdigest()[:20]}"
                    for n in numbers
                ],
                "tag": [("amber", "blue", "coral")[n // GROUPS % 3] for n in numbers],
                "seq": range(group * ROWS, (group + 1) * ROWS),
            }
            writer.write_batch(pa.RecordBatch.from_pydict(rows, schema))
    add_filters(path, ["id", "name", "tag"], in_place=True)


class Edit:
    """A copy of a file under construction: filters after the old ones, changed places, then a new
    footer."""

    def __init__(self, source: Path = SOUND) -> None:
        with ParquetFile.open(source) as file:
            self.footer = file.footer
            self._body = bytearray(file.source.read(0, file.footer.start))
            self._values = {
                (row_group, column.name): [
                    values[at]
                    for values in read_chunk(
                        file.footer, row_group, column, file.pages(row_group, column)
                    )
                    for at in range(len(values))
                ]
                for row_group in range(file.footer.num_row_groups)
                for column in file.footer.columns
            }
        self._index = {column.name: column.index for column in self.footer.columns}
        self._places: dict[tuple[int, int], FilterPlace | None] = {}
        self.encrypted: set[tuple[int, int]] = set()

    def values(self, row_group: int, column: str) -> list[bytes]:
        """Return the plain bytes of every value."""
        return self._values[row_group, column]

    def place(self, row_group: int, column: str) -> FilterPlace:
        place = self.footer.filter_place(row_group, self._index[column])
        assert place is not None
        return place

    def set_place(self, row_group: int, column: str, place: FilterPlace | None) -> None:
        self._places[row_group, self._index[column]] = place

    def encrypt(self, row_group: int, column: str) -> None:
        """Mark the chunk as encrypted without encrypting it."""
        self.encrypted.add((row_group, self._index[column]))

    def append(
        self, row_group: int, column: str, header: bytes, bitset: bytes | memoryview
    ) -> None:
        """Append a filter after the last byte."""
        self.set_place(row_group, column, FilterPlace(len(self._body), len(header) + len(bitset)))
        self._body += header + bytes(bitset)

    def append_everywhere(
        self, column: str, build: Callable[[list[bytes]], BloomFilter], header: bytes | None = None
    ) -> None:
        """Append a filter for every row group, built from its values."""
        for row_group in range(self.footer.num_row_groups):
            bloom = build(self.values(row_group, column))
            self.append(row_group, column, header or build_header(bloom.num_bytes), bloom.bitset)

    def write(self, path: Path) -> None:
        raw = set_filters(self.footer.raw, self._places)
        if self.encrypted:
            raw = self._with_crypto_metadata(raw)
        path.write_bytes(bytes(self._body) + raw + build_tail(raw))

    def _with_crypto_metadata(self, raw: bytes) -> bytes:
        metadata = parse_struct(FileMetaData, raw)
        for row_group, column in self.encrypted:
            chunk = metadata.row_groups[row_group].columns[column]
            chunk.crypto_metadata = ColumnCryptoMetaData(
                ENCRYPTION_WITH_FOOTER_KEY=EncryptionWithFooterKey()
            )
        return build_struct(metadata)


def bloom_of(plain: Iterable[bytes], size: int = SIZE) -> BloomFilter:
    bloom = BloomFilter.empty(size)
    for value in plain:
        bloom.insert(value)
    return bloom


# One function a defect; its name is the rule's. It writes the defective file.


Build = Callable[[list[bytes]], BloomFilter]


def _everywhere(
    column: str, build: Build, header: bytes | None = None, source: Path = SOUND
) -> Callable[[Path], None]:
    """Give each row group of a column a filter that is built from its values like this."""

    def make(path: Path) -> None:
        edit = Edit(source)
        edit.append_everywhere(column, build, header)
        edit.write(path)

    return make


def _of_size(size: int) -> Build:
    return lambda values: bloom_of(values, size)


def _by_remainder(values: list[bytes]) -> BloomFilter:
    whole = bytearray(SIZE)
    for value in values:
        h = hash_value(value)
        start = (h >> 32) % (SIZE // BLOCK_BYTES) * BLOCK_BYTES
        block = BloomFilter(bytearray(whole[start : start + BLOCK_BYTES]))
        block.insert_hash(h)
        whole[start : start + BLOCK_BYTES] = block.bitset
    return BloomFilter(whole)


def _as_in(dialect: str) -> Build:
    hasher = find_dialect(dialect).hasher(SIZE // BLOCK_BYTES, is_number=False)

    def build(values: list[bytes]) -> BloomFilter:
        bloom = BloomFilter.empty(SIZE)
        for value in values:
            bloom.insert_hash(hasher.hash_value(value))
        return bloom

    return build


hashed_as_text = _everywhere(
    "id", lambda values: bloom_of(str(int.from_bytes(value, "little")).encode() for value in values)
)
hashed_at_wrong_width = _everywhere("id", lambda values: bloom_of(value[:4] for value in values))
wrong_block = _everywhere("name", _by_remainder)
"""The block is chosen by the remainder of the upper half of the hash, as in a draft."""
hashed_as_draft = _everywhere("name", _as_in("draft1-raw"))
"""MurmurHash3, under today's header."""
draft_dialect = _everywhere(
    "name", _as_in("draft2-thrift"), build_draft_header(find_dialect("draft2-thrift"), SIZE)
)
"""A header without compression, which both drafts write; here it is the second draft's."""
empty_filter = _everywhere("id", lambda values: BloomFilter.empty(SIZE))
interval_not_normalised = _everywhere(
    "span", _of_size(128), source=FIXTURES / "duckdb-types.parquet"
)
"""DuckDB's file, and a filter of the stored values alone."""
int96_stored_form_only = _everywhere(
    "at", _of_size(128), source=FIXTURES / "pyarrow-21-int96.parquet"
)
"""Instants before 1970 as pyarrow 21 stores them, and a filter of those bytes alone."""
unknown_header = _everywhere("id", bloom_of, build_header(SIZE)[:3] + b"\x1c\x00" * 3 + b"\x00")
"""The header as parquetjs writes it: three unions without a member."""
identical_blocks = _everywhere(
    "tag", lambda values: BloomFilter(bytes(bloom_of(values, BLOCK_BYTES).bitset) * 4)
)
"""One block, written many times."""
saturated = _everywhere("id", _of_size(256))
nearly_empty = _everywhere("name", _of_size(4 * SIZE))
larger_than_chunk = _everywhere("id", _of_size(16 << 10))
large_for_chunk = _everywhere("id", _of_size(2 * SIZE))
sorted_column = _everywhere("seq", bloom_of)


def miss_values(path: Path) -> None:
    """The filter was built from the first half of the values."""
    edit = Edit()
    bloom = bloom_of(edit.values(1, "id")[: ROWS // 2])
    edit.append(1, "id", build_header(SIZE), bloom.bitset)
    edit.write(path)


def wrong_statistics(path: Path) -> None:
    """Bounds of fewer values than there are, and only nulls in a column that has none."""
    shutil.copyfile(SOUND, path)

    def change(metadata: FileMetaData) -> None:
        first, second = (
            [chunk.meta_data.statistics for chunk in group.columns] for group in metadata.row_groups
        )
        first[0].max_value = (2000).to_bytes(8, "little")
        second[1].min_value = b"user-7"
        second[0].null_count = metadata.row_groups[1].num_rows

    edit_footer(path, change)


def wrong_null_count(path: Path) -> None:
    """Nulls in a column that has none, besides its values."""
    shutil.copyfile(SOUND, path)

    def change(metadata: FileMetaData) -> None:
        metadata.row_groups[1].columns[0].meta_data.statistics.null_count = 3

    edit_footer(path, change)


def unreadable_filter(path: Path) -> None:
    """The old offset in a rewritten file: it points into pages."""
    edit = Edit()
    edit.set_place(0, "name", FilterPlace(20_000, edit.place(0, "name").length))
    edit.set_place(1, "name", FilterPlace(edit.footer.end + 1000, None))
    edit.write(path)


def overlapping_filter(path: Path) -> None:
    """Two columns point to the filter of one column."""
    edit = Edit()
    edit.set_place(0, "name", edit.place(0, "id"))
    edit.write(path)


def oversized_page(path: Path) -> None:
    stored = compress(CompressionCodec.ZSTD, bytes(8 * ROWS))
    write_pages(
        path,
        CompressionCodec.ZSTD,
        [Page(PageType.DATA_PAGE, Encoding.PLAIN, ROWS, stored, stated_size=2**31 - 1)],
    )


def missing_length(path: Path) -> None:
    edit = Edit()
    for row_group in range(GROUPS):
        for column in ("id", "name"):
            edit.set_place(row_group, column, edit.place(row_group, column)._replace(length=None))
    edit.write(path)


def wrong_length(path: Path) -> None:
    """The footer states the length of the bitset alone."""
    edit = Edit()
    edit.set_place(0, "id", edit.place(0, "id")._replace(length=SIZE))
    edit.write(path)


def over_128_mib(path: Path) -> None:
    """A sparse bitset of 256 MiB at the end of an otherwise sound file."""
    edit = Edit()
    size = 256 << 20
    header = build_header(size)
    start = edit.footer.start + len(header)
    edit.set_place(0, "id", FilterPlace(edit.footer.start, len(header) + size))
    edit.write(path)
    with path.open("r+b") as stream:
        stream.seek(edit.footer.start)
        tail = stream.read()
        stream.seek(edit.footer.start)
        stream.write(header)
        stream.truncate()
        for value in edit.values(0, "id"):
            h = hash_value(value)
            block = BloomFilter.empty(BLOCK_BYTES)
            block.insert_hash(h)
            stream.seek(start + block_index(h, size // BLOCK_BYTES) * BLOCK_BYTES)
            stream.write(block.bitset)
        stream.seek(start + size)
        stream.write(tail)


def offset_means_none(path: Path) -> None:
    edit = Edit()
    edit.set_place(0, "seq", FilterPlace(0, None))
    edit.set_place(1, "seq", FilterPlace(-1, None))
    edit.write(path)


def plaintext_filter_on_encrypted_column(path: Path) -> None:
    edit = Edit()
    for row_group in range(GROUPS):
        edit.encrypt(row_group, "id")
    edit.write(path)


def damaged_encrypted_filter(path: Path) -> None:
    """The module of the header is there, but that of the bitset is missing."""
    edit = Edit()
    edit.append(0, "id", (44).to_bytes(4, "little") + bytes(44), b"")
    edit.append(
        1,
        "id",
        (44).to_bytes(4, "little") + bytes(44),
        (28 + SIZE).to_bytes(4, "little") + bytes(28 + SIZE - 4),
    )
    for row_group in range(GROUPS):
        edit.encrypt(row_group, "id")
    edit.write(path)


def unreferenced_bytes(path: Path) -> None:
    """Large filters, which were replaced by smaller ones after them."""
    edit = Edit()
    edit.append_everywhere("id", lambda values: bloom_of(values, 32 << 10))
    edit.append_everywhere("id", bloom_of)
    edit.write(path)


def _fixture(name: str) -> Callable[[Path], None]:
    def copy(path: Path) -> None:
        shutil.copyfile(FIXTURES / f"{name}.parquet", path)

    return copy


def _sound(path: Path) -> None:
    shutil.copyfile(SOUND, path)


def deviating_filter(path: Path) -> None:
    """A file and a configuration that declares better filters for it."""
    _sound(path)
    path.with_name("sbbf-filters.toml").write_text(
        '[[filters]]\npaths = "*.parquet"\ncolumns = "id"\nfpp = 1e-6\n\n[[filters]]\npaths = '
        f'"{path.name}"\ncolumns = ["seq"]\n'
    )


@dataclass(frozen=True)
class Defect:
    make: Callable[[Path], None]
    options: tuple[str, ...] = ()
    """Options of `sbbf check`: limits, and for files of other writers the rules to ignore."""
    settings: tuple[tuple[str, str], ...] = ()
    """Settings of `sbbf check` that are no options, as environment variables."""


DEFECTS = {
    "false-negatives": Defect(miss_values),
    "hashed-as-text": Defect(hashed_as_text),
    "hashed-at-wrong-width": Defect(hashed_at_wrong_width),
    "wrong-block": Defect(wrong_block),
    "hashed-as-draft": Defect(hashed_as_draft),
    "empty-filter": Defect(empty_filter),
    "empty-boolean-filter": Defect(_fixture("spark-boolean")),
    "interval-not-normalised": Defect(interval_not_normalised, ("--ignore", "efficiency")),
    "int96-form-missing": Defect(int96_stored_form_only, ("--ignore", "efficiency")),
    "wrong-statistics": Defect(wrong_statistics),
    "wrong-null-count": Defect(wrong_null_count),
    "zero-form-missing": Defect(
        _fixture("pyarrow-floats-filters"),
        ("--ignore", "efficiency", "--ignore", "nan-forms-missing"),
    ),
    "nan-forms-missing": Defect(
        _fixture("pyarrow-floats-filters"),
        ("--ignore", "efficiency", "--ignore", "zero-form-missing"),
    ),
    "unreadable-filter": Defect(unreadable_filter),
    "overlapping-filter": Defect(overlapping_filter),
    "oversized-page": Defect(
        oversized_page, ("--ignore", "efficiency"), (("SBBF_CHECK_MAX_PAGE_BYTES", "1GiB"),)
    ),
    "unknown-header": Defect(unknown_header),
    "draft-dialect": Defect(draft_dialect),
    "missing-length": Defect(missing_length),
    "wrong-length": Defect(wrong_length),
    "partial-block": Defect(_fixture("spark-1000-bytes"), ("--ignore", "efficiency")),
    "not-power-of-two": Defect(_fixture("spark-96-bytes")),
    "under-64-bytes": Defect(_fixture("duckdb-defaults")),
    "over-128-mib": Defect(over_128_mib),
    "placeholder-offset": Defect(offset_means_none),
    "plaintext-filter-on-encrypted-column": Defect(plaintext_filter_on_encrypted_column),
    "damaged-encrypted-filter": Defect(damaged_encrypted_filter),
    "identical-blocks": Defect(identical_blocks),
    "saturated": Defect(saturated),
    "nearly-empty": Defect(nearly_empty),
    "larger-than-chunk": Defect(larger_than_chunk),
    "large-for-chunk": Defect(large_for_chunk),
    "only-some-row-groups": Defect(_fixture("duckdb-some-row-groups")),
    "sorted-column": Defect(sorted_column),
    "unreferenced-bytes": Defect(unreferenced_bytes),
    "dictionary-encoded": Defect(_fixture("datafusion-one-column"), ("--engines", "spark")),
    "unused-by-engines": Defect(_fixture("datafusion-one-column"), ("--engines", "polars")),
    "harmful-to-engine": Defect(_fixture("duckdb-types"), ("--engines", "cudf")),
    "missing-filter": Defect(_sound, ("--require", "seq", "--require", "id")),
    "deviating-filter": Defect(deviating_filter, ("--config", "sbbf-filters.toml")),
    "fpp-above-limit": Defect(_sound, ("--max-fpp", "0.001")),
    "bytes-share-above-limit": Defect(_sound, settings=(("SBBF_CHECK_MAX_BYTES_SHARE", "0.1"),)),
    "too-few-values": Defect(_sound, settings=(("SBBF_CHECK_MIN_NDV", "1000"),)),
    "chunk-too-small": Defect(_sound, settings=(("SBBF_CHECK_MIN_CHUNK_BYTES", "12KiB"),)),
}
"""Defects by the name of their rule."""
