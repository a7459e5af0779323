"""`sbbf add-filter` where filters exist: counts with a hint, and `--rebuild weak`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sbbf_tool import add_filters
from sbbf_tool.cli import run
from support.lakes import small_files


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three files: one with weak filters of `id`, one with good ones, one without."""
    folder = small_files(tmp_path / "lake", 3)
    add_filters(folder / "part-00000.parquet", ["id"], fpp=0.4, in_place=True)
    add_filters(folder / "part-00001.parquet", ["id"], in_place=True)
    return folder


def test_ensure_rebuilds_them_once(lake: Path, capsys):
    for num_filters in (2, 0):
        assert run(["add-filter", str(lake), "-c", "id", "--rebuild", "weak", "--in-place", "--format", "json"]) == 0
        totals = json.loads(capsys.readouterr().out.splitlines()[-1])["totals"]
        assert (totals["filters"], totals["column_chunks_weaker"]) == (num_filters, 0)
