"""Saturated filters are left out; the sizes of `size_filter`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import RefusedError, add_filters, repair, resize_filters, size_filter
from sbbf_tool.bloom import sizing
from support.samples import places
from support.tables import each

ROWS = 20_000


@pytest.fixture
def path(tmp_path):
    """Write two row groups with many values of `id` and few of `kind`."""
    table = pa.table({"id": range(ROWS), "kind": [f"kind {number % 40}" for number in range(ROWS)]})
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=ROWS // 2)
    return tmp_path / "many.parquet"


class TestAdd:
    def test_nothing_but_saturated_filters_is_refused(self, path: Path, tmp_path: Path):
        old = path.read_bytes()
        for target in ({"in_place": True}, {"output": tmp_path / "out.parquet"}):
            with pytest.raises(
                RefusedError,
                match=r"column id: 2 filters left out, .* 100 % with 64 bytes; .*force that",
            ):
                add_filters(path, "id", max_bytes=64, **target)
        assert path.read_bytes() == old
        assert not (tmp_path / "out.parquet").exists()

    def test_a_filter_is_saturated_above_ten_times_its_target(self, tmp_path: Path):
        path = tmp_path / "few.parquet"
        for values, written in ((198, True), (206, False)):  # with an FPP of 0.63 and 0.70
            pq.write_table(pa.table({"id": range(values)}), path)
            with nullcontext() if written else pytest.raises(RefusedError, match="left out"):
                add_filters(path, ["id"], fpp=0.065, max_bytes=64, in_place=True)


class TestOtherVerbs:
    def test_resize(self, path: Path):
        add_filters(path, ["id", "kind"], in_place=True, fpp=0.0001)
        sizes = {column: place.length for (_, column), place in places(path).items()}
        report = resize_filters(path, max_bytes=64, in_place=True)
        assert {row.column for row in report.filters} == {"kind"}
        assert {row.column for row in report.saturated_filters} == {"id"}
        assert {place.length for (_, column), place in places(path).items() if column == "id"} == {
            sizes["id"]
        }
        with pytest.raises(RefusedError, match="left out"):
            resize_filters(path, "id", max_bytes=64, in_place=True)
        assert resize_filters(path, max_bytes=64, in_place=True, force=True).saturated_filters == ()

    def test_a_repair_drops_a_harmful_filter_that_it_cannot_replace(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        add_filters(path, ["id"], in_place=True)
        place = places(path)[1, "id"]
        with open(path, "r+b") as stream:
            stream.seek(place.offset + 20)
            stream.write(bytes(place.length - 20))
        monkeypatch.setattr(sizing, "MAX_BYTES", 128)
        report = repair(path, in_place=True)
        assert [(step.row_group, step.fix) for step in report.steps] == [(1, "drop")]
        assert places(path).keys() == {(0, "id")}


MIB = 1 << 20


def test_the_formula_of_the_first_draft_is_too_low() -> None:
    report = size_filter(ndv=1, fpp=0.01)
    assert (round(report.bits_per_value, 2), round(report.formula_bits_per_value, 2)) == (
        10.53,
        9.68,
    )
    assert report.formula_fpp == pytest.approx(0.0146, abs=0.0001)
    assert sizing.fpp_of_bits(report.bits_per_value) == pytest.approx(0.01)
    assert (report.formula_bytes, report.bitset_bytes) == (32, 64)


@each(
    "options, choices",
    [
        ({"ndv": 1}, ["chosen", "next larger"]),
        ({"max_bytes": 32}, ["chosen", "next larger"]),
        ({"ndv": 50, "max_bytes": 1000}, ["next smaller", "chosen", "next larger"]),
        ({"ndv": 10**15}, ["next smaller", "chosen"]),
        ({"ndv": 1, "max_bytes": 128 * MIB}, ["next smaller", "chosen"]),
        ({"ndv": 10**12, "max_bytes": 64}, ["chosen", "next larger"]),
    ],
)
def test_sizes_that_may_not_be_written_are_left_out(
    options: dict[str, Any], choices: list[str]
) -> None:
    assert [size.choice for size in size_filter(**options).sizes] == choices
