"""Filters as drafts of the format had them, built and proven for `add_filters`: for tests and research, and for nothing else."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from sbbf_tool.bloom.dialects import TODAY, TODAYS, Dialect, dialect_named
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import Built, Meter, Spooled, chunk_bytes
from sbbf_tool.editing.publish import ensure_same_footer, mistake, place_of
from sbbf_tool.errors import RefusedError
from sbbf_tool.file.drafts import hasher_for, read_as
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import build_draft_header
from sbbf_tool.parquet.patch import Bytes, ChunkKey, Patch
from sbbf_tool.storage.spool import Spool


class Draft:
    """How filters of one draft's dialect are built, written and proven."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @classmethod
    def named(cls, name: str) -> Draft | None:
        """None where the name is that of today's format. Raises UsageError."""
        dialect = dialect_named(name)
        return None if dialect is TODAY else cls(dialect)

    def rebuilt(self, file: ParquetFile, built: Mapping[ChunkKey, Spooled], spool: Spool, meter: Meter) -> dict[ChunkKey, Spooled]:
        """Each filter once more, of the same size, from its values as the dialect hashes them.

        A filter that is too large cannot be folded: only today's choice of blocks keeps neighbours together.
        """
        anew = {}
        for key, one in built.items():
            if file.is_encrypted(key[0], file.footer.columns[key[1]]):
                raise RefusedError(
                    "the column is encrypted, and no draft knew encryption",
                    file=file.name,
                    place=place_of(file, key),
                    hint="leave --dialect out",
                )
            bloom = BloomFilter.empty(one.num_bytes)
            for hashes in self._hashes(file, key, bloom.num_blocks):
                bloom.insert_hashes(hashes)
            anew[key] = Spooled.of(Built(bloom, one.values, one.bytes_read, one.verdict), spool, self._pieces(bloom))
            meter.advance(f"reading {file.footer.columns[key[1]].name}", chunk_bytes(file, key))
        return anew

    def _pieces(self, bloom: BloomFilter) -> tuple[Bytes, Bytes]:
        """Header and bitset."""
        return build_draft_header(self.dialect, bloom.num_bytes), bloom.bitset

    def compare(self, file: ParquetFile, fresh: ParquetFile, patch: Patch, meter: Meter) -> None:
        """The new file must be the old one but for its filters, each of which must be of the dialect and hold every value."""
        ensure_same_footer(file, fresh, patch.places)
        for key, place in patch.places.items():
            stored = fresh.stored_filter(key[0], fresh.footer.columns[key[1]])
            mine = read_as(stored, self.dialect) if stored is not None else None
            if mine is None or mine.place != place or mine.length != place.length:
                raise mistake(file, f"the filter of {place_of(file, key)} is not where it should be")
            bloom = BloomFilter(fresh.source.read(mine.bitset_offset, mine.header.num_bytes))
            if missed := sum(map(bloom.count_missing, self._hashes(fresh, key, bloom.num_blocks))):
                raise mistake(file, f"{missed} values of {place_of(file, key)} are absent from the new filter")
            meter.advance(f"verifying {file.footer.columns[key[1]].name}", chunk_bytes(file, key))

    def warnings(self) -> Iterator[str]:
        """What must be known before such a file is given to anybody."""
        name = self.dialect.name
        yield f"{name} is a draft of the format: for tests and research; no reader gains by such a filter"
        if self.dialect.header == TODAYS:
            yield f"{name} HAS TODAY'S HEADER: EVERY READER THAT USES FILTERS TAKES IT FOR TODAY'S AND LOSES ROWS"
        else:
            yield "ClickHouse and DuckDB fail a query that asks such a filter; DataFusion and Spark read on without it"

    def _hashes(self, file: ParquetFile, key: ChunkKey, num_blocks: int) -> Iterator[memoryview]:
        from sbbf_tool.parquet.values import read_chunk

        column = file.footer.columns[key[1]]
        hasher = hasher_for(self.dialect, column, num_blocks)
        with file.named():
            pages = file.pages(key[0], column)
            for values in read_chunk(pages.open_arrow, file.footer, key[0], column, pages.meta):
                yield values.hashes(hasher)
                yield memoryview(array("Q", map(hasher.hash_value, values.equal_floats())))
