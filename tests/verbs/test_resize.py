"""`resize_filters`: a fold is the filter that would have been built at that size; other filters are
kept and reported."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import RefusedError, add_filters, remove_filters, repair, resize_filters, verify
from sbbf_tool.cli import run
from support.samples import events, filter_at, listing, places
from support.tables import each


@pytest.fixture
def large(plain):
    """Filters far larger than they need be."""
    add_filters(plain, ["id", "name"], in_place=True, ndv=3000)
    return plain


def bits(path: Path) -> dict[tuple[int, str], bytes]:
    return {key: bytes(filter_at(path, place).bitset) for key, place in places(path).items()}


@each("size", [64, 128, 1024])
def test_a_smaller_filter_is_the_one_that_would_have_been_built(large, plain, tmp_path, size):
    direct = tmp_path / "built.parquet"
    remove_filters(large, output=direct)
    add_filters(direct, ["id", "name"], in_place=True, ndv=100_000, max_bytes=size, force=True)
    old = large.read_bytes()
    report = resize_filters(large, max_bytes=size, in_place=True, force=True)
    assert bits(large) == bits(direct)
    assert {row.new_bytes for row in report.filters} == {size}
    assert large.stat().st_size < len(old)
    assert pq.read_table(large).equals(events())
    assert all(result.is_verified for result in verify(large).filters)


def test_larger_filters_take_the_data(plain, tmp_path):
    add_filters(plain, ["id"], in_place=True, fpp=0.3)
    before = listing(tmp_path)
    with pytest.raises(RefusedError) as caught:
        resize_filters(plain, fpp=1e-9, in_place=True)
    assert caught.value.hint == "add a filter of that size in place of the old one"
    assert not resize_filters(plain, max_bytes=1 << 20, in_place=True).filters
    assert listing(tmp_path) == before


@each("name", ["spark-1000-bytes", "spark-96-bytes"])
def test_unusual_sizes_do_not_fold_and_are_repaired(fixtures, tmp_path, name):
    source, out = fixtures / f"{name}.parquet", tmp_path / "out.parquet"
    with pytest.raises(RefusedError, match="cannot be folded"):
        resize_filters(source, max_bytes=64, output=out)
    repair(source, output=out)
    assert {len(bitset) & (len(bitset) - 1) for bitset in bits(out).values()} == {0}
    assert repair(out, dry_run=True).is_clean


def test_what_has_no_filter_is_refused(plain, large):
    with pytest.raises(RefusedError, match="the column has no filter to resize"):
        resize_filters(large, ["score"], max_bytes=64, in_place=True)
    remove_filters(large, in_place=True)
    with pytest.raises(RefusedError, match="no column has a filter"):
        resize_filters(large, max_bytes=64, in_place=True)


def test_the_command_says_that_there_is_no_filter(plain, capsys):
    assert run(["resize", str(plain.parent), "-c", "id", "--fpp", "0.1", "--in-place"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("had nothing to resize")
