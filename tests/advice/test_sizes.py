"""The next smaller size of filters: where it is named, and where advice chooses it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, advise
from sbbf_tool.bloom import sizing
from sbbf_tool.cli import run
from support.tables import each

NEAR_NDV = 62_000
"""At 1 %, the size is 128 KiB, whose rate is 0.1 %; that of 64 KiB is 2.7 %."""


def write(path: Path, *, ndv: int = NEAR_NDV, wide: int = 0) -> Path:
    """Write two row groups with this many distinct values each, and so many bytes per row beside
    them."""
    random = Random(1)
    columns: dict[str, pa.Array] = {"id": pa.array(random.sample(range(10**12), 2 * ndv))}
    if wide:
        columns["text"] = pa.array([random.randbytes(wide) for _ in range(2 * ndv)])
    pq.write_table(pa.table(columns), path, row_group_size=ndv, use_dictionary=False)
    return path


@each(
    "ndv, num_bytes, fpp, half_fpp",
    [
        (62_000, 131_072, 0.01, 0.027),
        (60, 128, 0.01, 0.026),
        (99_000, 131_072, 0.01, None),  # 15 %
        (10, 64, 0.01, None),  # the smallest size
        (10, 131_072, 0.01, None),  # the half meets the target too
    ],
)
def test_the_rate_at_half_of_a_size(ndv, num_bytes, fpp, half_fpp):
    assert sizing.fpp_of_half(ndv, num_bytes, fpp) == half_fpp
    if half_fpp is not None:
        assert sizing.bytes_for(ndv, half_fpp) == num_bytes // 2


@each("wide, fpp", [(0, 0.027), (100, 0.01)])
def test_advice_takes_the_size_with_which_a_lookup_reads_less(tmp_path, wide, fpp):
    """Narrow row groups: filters weigh more than what they skip; wide ones: less."""
    report = advise(write(tmp_path / "f.parquet", wide=wide))
    assert report.fpp == fpp
    assert report.fix is not None
    assert report.fix.fpp == (None if fpp == 0.01 else fpp)
    target, smaller = report.size_options
    assert (target.fpp, smaller.fpp) == (0.01, 0.027)
    assert smaller.filter_bytes * 2 == pytest.approx(target.filter_bytes, rel=0.01)
    assert (smaller.lookup_bytes < target.lookup_bytes) is (fpp == 0.027)


def test_a_target_that_is_given_is_kept(tmp_path):
    path = write(tmp_path / "f.parquet")
    assert advise(path, fpp=0.01).fpp == 0.01


def test_a_size_that_is_not_near_is_no_option(tmp_path):
    report = advise(write(tmp_path / "f.parquet", ndv=99_000))
    assert (report.fpp, [option.fpp for option in report.size_options]) == (0.01, [0.01])


def test_advice_keeps_the_filters_that_it_recommends(tmp_path, capfd):
    path = write(tmp_path / "f.parquet")
    assert run(["add-filter", str(path), "--advise", "--in-place"]) == 0
    assert "next smaller size" not in capfd.readouterr().out
    assert pq.ParquetFile(path).metadata.num_row_groups == 2
    assert run(["advise", str(path)]) == 0
    output = capfd.readouterr().out
    assert "no filter to add" in output
    assert "weaker" not in output
    assert run(["check", str(path), "--fail-on", "info", "--ignore", "policy"]) == 0


def test_add_filter_and_advise_name_the_next_smaller_size(tmp_path, capfd):
    path = write(tmp_path / "f.parquet")
    words = "next smaller size: 2.7 % at half the bytes "
    assert run(["advise", str(path), "--fpp", "1%"]) == 0
    assert words in capfd.readouterr().out
    assert run(["advise", str(path)]) == 0
    output = capfd.readouterr().out
    assert "2.7 % at half the bytes of 1 %" in output
    assert "--fpp 0.027" in output.splitlines()[-1]
    new = str(tmp_path / "new.parquet")
    assert run(["add-filter", str(path), "-c", "id", "-o", new]) == 0
    output = capfd.readouterr().out
    assert f"{words}(131,072 bytes instead of 262,144 bytes): --fpp 2.7%" in output


@each("options", [{"fpp": 0.027}, {"ndv": 62_000}])
def test_no_other_size_is_named_for_one_that_was_asked_for(tmp_path, options):
    report = add_filters(write(tmp_path / "f.parquet"), "id", in_place=True, **options)
    assert report.next_smaller is None
