"""The publication of a patch: the file is written, read back as any other reader would, compared
with the plan, and only then renamed.

Every operation that changes files uses this module, and passes its specific checks as `compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sbbf_tool import log
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.display import redact
from sbbf_tool.editing.build import SpooledFilter, checksum_of, mistake, place_of
from sbbf_tool.errors import ChangedError, SbbfError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.patch import Patch
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.storage import places
from sbbf_tool.storage.copying import BegunCopy
from sbbf_tool.storage.source import Source

_BLOCK_BYTES = 4 << 20
_LOCAL_BLOCK_BYTES = 512 << 10
"""Unit of comparison of local files: larger blocks do not stay in the caches of the processor, and
get new memory from the system."""


def publish(
    file: ParquetFile,
    target: str,
    patch: Patch,
    compare: Callable[[ParquetFile], None],
    *,
    append: bool = False,
    begun: BegunCopy | None = None,
) -> list[str]:
    """Apply `patch` to `target`, provided that `compare` accepts the new file; with `append`,
    append to the old file itself.

    `begun` is the copy of the old bytes, if one was begun.

    Returns warnings as text. Raises RefusedError, WriteError and the errors of `compare`; the old
    file stays intact in every case.
    """

    def verify(new_source: Source) -> None:
        footer = file.footer
        # Other programs ignore the lock of an append. If one rewrote the file in place, the footer
        # before the new one is not the old one.
        if (
            append
            and footer.cipher is None
            and new_source.read_up_to(footer.start, len(footer.raw)) != footer.raw
        ):
            raise ChangedError.after_open(file.name)
        try:
            try:
                compare(file.parse_copy(new_source))
            except UnreadableError as error:
                raise mistake(
                    file, f"the new file cannot be read back ({error.message})"
                ) from error
        except SbbfError:
            # If another writer changed the file while it was copied, the difference is not a defect
            # of this package.
            if not append and not file.source.is_unchanged():
                raise ChangedError.after_open(file.name) from None
            raise

    if append:
        warnings = places.append(file.source, patch.pieces, verify)
        log.info("appended %s to %s", format_count(patch.size - patch.keep, "byte"), file.name)
        return warnings
    warnings = places.replace_file(file.source, target, patch.keep, patch.pieces, verify, begun)
    log.info("published %s: %s", redact(target), format_count(patch.size, "byte"))
    return [*warnings, *file.warnings_about_keys(target)]


def ensure_same_footer(file: ParquetFile, fresh: ParquetFile, chunks: Iterable[ChunkKey]) -> None:
    """Raise SbbfError unless the new footer is the old one, byte for byte, apart from the filters
    of these chunks."""
    no_filters: dict[ChunkKey, None] = dict.fromkeys(chunks)
    new = fresh.footer.set_filters(no_filters, leave_decrypted=True)
    # Chunks that had no filters, as most, are those of the old footer again.
    if new != file.footer.raw and new != file.footer.set_filters(no_filters, leave_decrypted=True):
        raise mistake(
            file,
            "the new footer differs from the old one in more than the offsets and lengths of "
            "filters",
        )


def read_new_filter(
    file: ParquetFile, fresh: ParquetFile, patch: Patch, key: ChunkKey
) -> BloomFilter:
    """Read a filter of the patch from the new file. Raises SbbfError unless it is at its planned
    offset and follows the released format."""
    place = patch.places[key]
    stored = fresh.stored_filter(key[0], fresh.footer.columns[key[1]])
    if (
        stored is None
        or stored.place != place
        or stored.length != place.length
        or stored.header.unsupported_reason
    ):
        raise mistake(file, f"the filter of {place_of(file, key)} is not at its planned offset")
    return BloomFilter(fresh.read_bitset(stored))


def ensure_new_filters(
    file: ParquetFile, fresh: ParquetFile, patch: Patch, filters: Mapping[ChunkKey, SpooledFilter]
) -> None:
    """Ensure that the filters in the new file are the ones that were built."""
    for key, spooled_filter in filters.items():
        if checksum_of(read_new_filter(file, fresh, patch, key)) != spooled_filter.checksum:
            raise mistake(
                file, f"the filter of {place_of(file, key)} is not the one that was built"
            )


def ensure_moved_filters(
    file: ParquetFile, fresh: ParquetFile, patch: Patch, checksums: Mapping[ChunkKey, int]
) -> None:
    """Ensure that the filters that stay, but at another place, have the bytes that they had, by
    their checksums."""
    for key, checksum in checksums.items():
        place = patch.places[key]
        if (
            fresh.footer.filter_place(*key) != place
            or hash_value(fresh.source.read(place.offset, place.length or 0)) != checksum
        ):
            raise mistake(file, f"the filter of {place_of(file, key)} would change")


def ensure_same_pages(file: ParquetFile, fresh: ParquetFile, key: ChunkKey) -> None:
    """Ensure that the pages of a chunk are in the new file, byte for byte, at the same offset as in
    the old one."""
    start, end = file.footer.chunk_meta(*key).page_range
    end = min(end, file.source.size)
    block_bytes = _BLOCK_BYTES if file.source.descriptor is None else _LOCAL_BLOCK_BYTES
    for position in range(start, end, block_bytes):
        length = min(block_bytes, end - position)
        if file.source.read(position, length) != fresh.source.read(position, length):
            raise mistake(file, f"the pages of {place_of(file, key)} are not those of the old file")
