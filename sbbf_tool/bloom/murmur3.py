"""MurmurHash3 x64_128, low 64 bits, of many values at once: the steps of `murmur3_spec`, each done for all values of one length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sbbf_tool.bloom import buffers
from sbbf_tool.bloom.murmur3_spec import ADD1, ADD2, BLOCK_BYTES, C1, C2, FMIX1, FMIX2, murmur3

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    U8 = NDArray[np.uint8]
    U64 = NDArray[np.uint64]

# Below so many values of a length numpy's overhead per operation costs more than plain integers do.
_FEW = 16
# Values of one length are gathered so many bytes at a time, to stay in the processor's caches.
_BATCH_BYTES = 1 << 18

_C1, _C2, _FMIX1, _FMIX2 = map(np.uint64, (C1, C2, FMIX1, FMIX2))
_ADD1, _ADD2, _FIVE, _33 = map(np.uint64, (ADD1, ADD2, 5, 33))


def hash_fixed(values: Buffer, width: int, seed: int = 0) -> memoryview:
    """Hashes of n values of `width` bytes each, as `hashing.Hashes`. ValueError when the bytes are not a multiple of the width."""
    view, count = buffers.rows(values, width)
    table = np.frombuffer(view, np.uint8).reshape(count, width)
    hashes = np.empty(count, np.uint64)
    for at in range(0, count, _rows_at_once(width)):
        batch = slice(at, at + _rows_at_once(width))
        hashes[batch] = _rows(table[batch], seed)
    return _as_hashes(hashes)


def hash_variable(data: Buffer, offsets: Buffer, offset_width: int, seed: int = 0) -> memoryview:
    """Hashes of n values in Arrow's layout: n + 1 offsets into `data`, of 4 or 8 bytes. ValueError when the offsets leave `data`."""
    view, places = buffers.offsets_in(data, offsets, offset_width)
    every = np.frombuffer(places, np.int32 if offset_width == 4 else np.int64).astype(np.int64)
    if (every[1:] < every[:-1]).any():
        raise ValueError(buffers.OFFSETS_DECREASE)
    lengths, hashes = np.diff(every), np.empty(len(every) - 1, np.uint64)
    flat = np.frombuffer(view, np.uint8)
    for length in map(int, np.unique(lengths)):
        positions = np.flatnonzero(lengths == length)
        windows = sliding_window_view(flat, length) if length else np.empty((len(flat) + 1, 0), np.uint8)
        for at in range(0, len(positions), _rows_at_once(length)):
            batch = positions[at : at + _rows_at_once(length)]
            hashes[batch] = _rows(windows[every[batch]], seed)
    return _as_hashes(hashes)


def _rows_at_once(width: int) -> int:
    return max(1, _BATCH_BYTES // max(1, width))


def _as_hashes(hashes: U64) -> memoryview:
    return hashes.data.cast("B").cast("Q") if len(hashes) else memoryview(b"").cast("Q")


def _rotl(x: U64, bits: int) -> U64:
    return x << np.uint64(bits) | x >> np.uint64(64 - bits)


def _fmix(k: U64) -> U64:
    k = (k ^ k >> _33) * _FMIX1
    k = (k ^ k >> _33) * _FMIX2
    return k ^ k >> _33


def _rows(table: U8, seed: int) -> U64:
    """The hash of each row."""
    count, width = table.shape
    if count < _FEW:
        return np.fromiter((murmur3(row.tobytes(), seed) for row in table), np.uint64, count)
    blocks, rest = divmod(width, BLOCK_BYTES)
    padded = np.zeros((count, (blocks + bool(rest)) * BLOCK_BYTES), np.uint8)
    padded[:, :width] = table
    # One contiguous column of integers for each 8 bytes of the values.
    words = np.ascontiguousarray(padded.view("<u8").T).astype(np.uint64, copy=False)
    h1 = h2 = np.full(count, seed, np.uint64)
    for k1, k2 in zip(words[: 2 * blocks : 2], words[1 : 2 * blocks : 2], strict=True):
        h1 = (_rotl(h1 ^ _rotl(k1 * _C1, 31) * _C2, 27) + h2) * _FIVE + _ADD1
        h2 = (_rotl(h2 ^ _rotl(k2 * _C2, 33) * _C1, 31) + h1) * _FIVE + _ADD2
    if rest:
        h1 = h1 ^ _rotl(words[-2] * _C1, 31) * _C2
        h2 = h2 ^ _rotl(words[-1] * _C2, 33) * _C1
    h1 = (h1 ^ np.uint64(width)) + (h2 ^ np.uint64(width))
    h2 = (h2 ^ np.uint64(width)) + h1
    h1, h2 = _fmix(h1), _fmix(h2)
    return h1 + h2
