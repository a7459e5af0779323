"""Bitsets: every kernel sets, finds, folds and counts the same bits, touches nothing else, and is
chosen as documented."""

from __future__ import annotations

import random
import sys
from array import array
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.bloom import kernels, spec
from sbbf_tool.bloom.interface import Kernel
from sbbf_tool.errors import UsageError
from support.tables import each

hash_lists = st.lists(st.integers(0, 2**64 - 1), max_size=80)
block_counts = st.integers(1, 70)


def build(kernel: Kernel, num_blocks: int, hashes: list[int]) -> bytearray:
    bitset = bytearray(num_blocks * 32)
    kernel.insert(bitset, num_blocks, array("Q", hashes))
    return bitset


def test_where_the_bits_of_one_hash_go(kernel: Kernel) -> None:
    """Hash 2^63 + 1 is in the middle block of three, and its lower half 1 makes the mask from the
    salt's own upper five bits."""
    block = b"".join((1 << (salt >> 27)).to_bytes(4, "little") for salt in spec.SALT)
    assert build(kernel, 3, [2**63 + 1]) == bytes(32) + block + bytes(32)


@given(num_blocks=block_counts, hashes=hash_lists)
def test_insert(kernel: Kernel, num_blocks: int, hashes: list[int]) -> None:
    assert build(kernel, num_blocks, hashes) == build(spec, num_blocks, hashes)


@given(num_blocks=block_counts, inserted=hash_lists, queries=hash_lists)
def test_check_and_count(
    kernel: Kernel, num_blocks: int, inserted: list[int], queries: list[int]
) -> None:
    bitset = build(spec, num_blocks, inserted)
    answers = kernel.check(bitset, num_blocks, array("Q", inserted + queries))
    assert answers == spec.check(bitset, num_blocks, array("Q", inserted + queries))
    assert set(answers[: len(inserted)]) <= {1}
    assert kernel.count_missing(
        bitset, num_blocks, array("Q", inserted + queries)
    ) == answers.count(0)


@given(num_blocks=block_counts, seed=st.integers(0, 2**32), density=st.sampled_from([0, 1, 2]))
def test_measure(kernel: Kernel, num_blocks: int, seed: int, density: int) -> None:
    bits = random.Random(seed)
    bitset = bytes(
        bits.randrange(256) if density == 1 else density // 2 * 255 for _ in range(num_blocks * 32)
    )
    assert kernel.measure(bitset, num_blocks) == spec.measure(bitset, num_blocks)


MANY = array("Q", random.Random(7).randbytes(8 * 17_000)).tolist()


@cache
def many_in(num_blocks: int) -> bytes:
    return bytes(build(spec, num_blocks, MANY))


@pytest.mark.slow
def test_many_hashes_in_few_blocks(kernel: Kernel) -> None:
    """More than a batch of the numpy kernel, which has to see to it that no hash of a batch
    overwrites the bits of another."""
    for num_blocks in (1, 2, 31, 1024):
        bitset = build(kernel, num_blocks, MANY)
        assert bitset == many_in(num_blocks)
        assert kernel.count_missing(bitset, num_blocks, array("Q", MANY)) == 0


def test_sums_beyond_64_bits_come_in_two_parts(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel.NAME == "compiled":
        monkeypatch.setattr(kernel, "_kernel", SimpleNamespace(measure=lambda *_: (7, 3, 5)))
        assert kernel.measure(b"", 0) == (7, 3 * 2**64 + 5)


@pytest.mark.heavy
def test_measure_beyond_64_bits(kernel: Kernel) -> None:
    """The sum of products passes 2^64 from 2^24 saturated blocks on, half a gigabyte."""
    if kernel.NAME == "spec":
        pytest.skip("minutes on the slow kernel, which counts in Python's integers anyway")
    num_blocks = 2**24 + 1
    assert kernel.measure(b"\xff" * 32 * num_blocks, num_blocks) == (
        256 * num_blocks,
        num_blocks << 40,
    )


@given(hashes=hash_lists, behind=st.integers(0, 40))
def test_nothing_behind_the_blocks_is_touched(
    kernel: Kernel, hashes: list[int], behind: int
) -> None:
    tail = b"\xa5" * behind
    bitset = bytearray(64) + tail
    kernel.insert(bitset, 2, array("Q", hashes))
    assert bitset == build(spec, 2, hashes) + tail
    assert kernel.check(bitset, 2, array("Q", hashes)) == b"\1" * len(hashes)
    assert kernel.measure(bitset, 2) == spec.measure(bitset[:64], 2)
    assert kernel.fold(bitset, 2) == spec.fold(bitset[:64], 2)


@each("num_blocks", [0, -1, 3, 4, 2**31, 2**63, 2**70, -(2**70)])
def test_a_number_of_blocks_that_the_bitset_does_not_have_is_refused(
    kernel: Kernel, num_blocks: int
) -> None:
    bitset, hashes = bytearray(95), array("Q", [1, 2])
    for attempt in (
        lambda: kernel.insert(bitset, num_blocks, hashes),
        lambda: kernel.check(bitset, num_blocks, hashes),
        lambda: kernel.count_missing(bitset, num_blocks, hashes),
        lambda: kernel.measure(bitset, num_blocks),
        lambda: kernel.fold(bitset, num_blocks),
    ):
        # An odd number is refused by `fold` in any bitset; an int beyond 64 bits by Python, before
        # the compiled kernel sees it.
        with pytest.raises(ValueError, match=r"blocks|cannot fit 'int'"):
            attempt()
    assert bitset == bytes(95)


def test_bytes_that_do_not_fit_are_refused(kernel: Kernel) -> None:
    bitset = bytearray(64)
    for attempt in (kernel.insert, kernel.check, kernel.count_missing):
        with pytest.raises(ValueError, match="not a whole number of 64-bit hashes"):
            attempt(bitset, 2, bytes(12))
    with pytest.raises(ValueError, match=r"odd number of blocks|folding needs an even number"):
        kernel.fold(bytes(96), 3)
    assert bitset == bytes(64)


def test_what_is_no_buffer_is_refused(kernel: Kernel) -> None:
    for attempt in (
        lambda: kernel.hash_fixed("text", 4),  # type: ignore[arg-type]
        lambda: kernel.hash_length_prefixed(None, 4),  # type: ignore[arg-type]
        lambda: kernel.insert("text", 1, b""),  # type: ignore[arg-type]
        lambda: kernel.check(bytes(32), 1, [1, 2]),  # type: ignore[arg-type]
        lambda: kernel.measure(7, 1),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            attempt()


# --- The choice ---


@pytest.fixture
def unchosen(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(kernels, "_get_choice", cache(kernels._choose))
    monkeypatch.delenv("SBBF_KERNEL", raising=False)
    return monkeypatch


def test_the_environment_chooses(unchosen: pytest.MonkeyPatch) -> None:
    for name in ("spec", "numpy"):
        unchosen.setattr(kernels, "_get_choice", cache(kernels._choose))
        unchosen.setenv("SBBF_KERNEL", name)
        assert kernels.name() == kernels.active().NAME == name
        assert kernels.describe() == f"kernel: {name} (chosen by SBBF_KERNEL)"
    unchosen.setattr(kernels, "_get_choice", cache(kernels._choose))
    unchosen.setenv("SBBF_KERNEL", "cuda")
    with pytest.raises(
        UsageError,
        match=r"^SBBF_KERNEL: there is no kernel 'cuda'; the kernels are compiled, numpy, spec$",
    ):
        kernels.active()


def test_without_the_extension_numpy_works_and_says_why(unchosen: pytest.MonkeyPatch) -> None:
    unchosen.delitem(sys.modules, "sbbf_tool.bloom.compiled_kernel", raising=False)
    unchosen.delattr("sbbf_tool.bloom.compiled_kernel", raising=False)
    unchosen.delattr("sbbf_tool.bloom._kernel", raising=False)
    unchosen.setitem(
        sys.modules, "sbbf_tool.bloom._kernel", None
    )  # as Python marks what cannot be imported
    assert kernels.name() == "numpy"
    assert kernels.describe().startswith("kernel: numpy (no compiled kernel: ")
    unchosen.setattr(kernels, "_get_choice", cache(kernels._choose))
    unchosen.setenv("SBBF_KERNEL", "compiled")
    with pytest.raises(UsageError, match=r"^SBBF_KERNEL: the compiled kernel is not available: "):
        kernels.active()
