"""Why a filter excludes stored values: another hash, or another order of bits, under which it would hold all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sbbf_tool.extensions.paimon.bloom64 import BloomFilter64
from sbbf_tool.extensions.paimon.bloom64_spec import to_int64
from sbbf_tool.extensions.paimon.data_types import DataType
from sbbf_tool.extensions.paimon.fast_hash import Hashes, HashForm, Keys, deduplicate, hash_bytes, hash_keys, hash_longs, key_of

SAMPLE = 256
"""Number of excluded values that are enough to find a cause."""
_LEAST_VALUES = 4
"""Distinct values without which no cause is given."""
_CHANCE = 1e-6
"""The probability of a wrong cause that is accepted."""
_UNITS = {
    HashForm.DATE: (86_400, 86_400_000, 86_400_000_000),
    HashForm.TIME: (1_000, 1_000_000),
    HashForm.MILLIS: (1_000, 1_000_000),
    HashForm.MICROS: (1_000,),
}
"""The factors from the unit of Paimon's key to finer units."""
_COARSER = {HashForm.MILLIS: (1_000,), HashForm.MICROS: (1_000, 1_000_000)}
_MASK = (1 << 64) - 1


def find_cause(bloom: BloomFilter64, keys: Keys, data_type: DataType) -> str | None:
    """Return how the filter holds the excluded values with these keys, in words; None if that is unknown."""
    hashes = hash_keys(keys)
    reverse = BloomFilter64(np.packbits(np.unpackbits(bloom.bits, bitorder="little"), bitorder="big"), bloom.k)
    swap: Hashes = (hashes << np.uint64(32)) | (hashes >> np.uint64(32))
    candidates = [("the bits of each byte are in reverse order", reverse, hashes), ("the two halves of each hash are swapped", bloom, swap)]
    encodings = _hash_texts(keys) if isinstance(keys, list) else _hash_longs(keys.tolist(), key_of(data_type))
    candidates += [(f"the values were hashed as {how}", bloom, encoding) for how, encoding in encodings]
    for cause, candidate, repeated_hashes in candidates:
        other_hashes = deduplicate(repeated_hashes)
        is_certain = len(other_hashes) >= _LEAST_VALUES and candidate.estimate_fpp() ** len(other_hashes) < _CHANCE
        if is_certain and candidate.contains(other_hashes).all():
            return cause
    return None


def _hash_texts(texts: Sequence[bytes]) -> Iterator[tuple[str, Hashes]]:
    yield "bytes after their length", hash_bytes(len(text).to_bytes(4, "little") + text for text in texts)
    yield "UTF-16", hash_bytes(text.decode("utf-8", "replace").encode("utf-16-le") for text in texts)


def _hash_longs(keys: Sequence[int], kind: HashForm | None) -> Iterator[tuple[str, Hashes]]:
    def wang(convert: Callable[[int], int]) -> Hashes:
        return hash_longs(np.array([to_int64(convert(key)) for key in keys], np.int64))

    def xxh64(convert: Callable[[int], bytes]) -> Hashes:
        return hash_bytes(map(convert, keys))

    yield "their decimal text", xxh64(lambda key: str(key).encode())
    yield "bytes with XXH64, as in Parquet, 8 bytes each", xxh64(lambda key: (key & _MASK).to_bytes(8, "little"))
    yield "bytes with XXH64, as in Parquet, 4 bytes each", xxh64(lambda key: (key & 0xFFFF_FFFF).to_bytes(4, "little"))
    yield "bytes with XXH64, 8 bytes each, highest first", xxh64(lambda key: (key & _MASK).to_bytes(8, "big"))
    yield "bytes with XXH64, 4 bytes each, highest first", xxh64(lambda key: (key & 0xFFFF_FFFF).to_bytes(4, "big"))
    yield "unsigned numbers of 32 bits", wang(lambda key: key & 0xFFFF_FFFF)
    for factor in _UNITS.get(kind, ()) if kind is not None else ():
        yield f"numbers of a unit {factor:,} times finer than Paimon's", wang(lambda key, factor=factor: key * factor)  # type: ignore[misc]
    for factor in _COARSER.get(kind, ()) if kind is not None else ():
        yield f"numbers of a unit {factor:,} times coarser than Paimon's", wang(lambda key, factor=factor: key // factor)  # type: ignore[misc]
