"""The kernel in C: the Python half of `_kernel.c`, which does all of the work and documents it.

Importing this module raises ImportError if the extension was not built; `kernels` then uses
`numpy_kernel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.bloom import _kernel

if TYPE_CHECKING:
    from typing_extensions import Buffer

NAME = "compiled"


def describe() -> str:
    return f"compiled ({_kernel.instructions()})"


def hash_fixed(values: Buffer, width: int) -> memoryview:
    return memoryview(_kernel.hash_fixed(values, width)).cast("Q")


def hash_variable(data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
    return memoryview(_kernel.hash_variable(data, offsets, offset_width)).cast("Q")


def hash_length_prefixed(page: Buffer, count: int) -> memoryview:
    return memoryview(_kernel.hash_length_prefixed(page, count)).cast("Q")


def ends_length_prefixed(page: Buffer, count: int) -> memoryview:
    return memoryview(_kernel.ends_length_prefixed(page, count)).cast("Q")


extremes_fixed = _kernel.extremes_fixed
extremes_variable = _kernel.extremes_variable
extremes_length_prefixed = _kernel.extremes_length_prefixed
insert = _kernel.insert
check = _kernel.check
count_missing = _kernel.count_missing
fold = _kernel.fold


def measure(bitset: Buffer, num_blocks: int) -> tuple[int, int]:
    bits_set, products_high, products_low = _kernel.measure(bitset, num_blocks)
    return bits_set, products_high << 64 | products_low
