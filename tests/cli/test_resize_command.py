"""`sbbf resize` as a user meets it."""

from __future__ import annotations

import json
import shutil

import pytest

from sbbf_tool import inspect
from sbbf_tool.cli import run
from support.defects import SOUND


@pytest.fixture(autouse=True)
def sound(tmp_path, monkeypatch):
    """A file with filters of 2,048 bytes on `id` and `name`, and of 64 on `tag`."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(SOUND, "a.parquet")


def test_a_dry_run_shows_the_rates_at_every_half_size(capfd):
    assert run(["resize", "a.parquet", "-c", "id", "--fpp", "0.5", "-n", "--format", "json"]) == 0
    sizes = json.loads(capfd.readouterr().out)["sizes"]
    for row_group in (0, 1):
        ((_, rate), *halves) = [(size["bytes"], size["fpp"]) for size in sizes if size["row_group"] == row_group]
        assert rate == pytest.approx(inspect("a.parquet", "id").filters[row_group].estimated_fpp)
        assert [num_bytes for num_bytes, _ in halves] == [1024, 512, 256, 128, 64]
    for num_bytes in (1024, 256):
        # The rate is exactly that of the filter after it is resized.
        assert run(["resize", "a.parquet", "-c", "id", "--bytes", str(num_bytes), "--force", "-o", f"{num_bytes}.parquet"]) == 0
        rates = [row.estimated_fpp for row in inspect(f"{num_bytes}.parquet", "id").filters]
        assert rates == pytest.approx([size["fpp"] for size in sizes if size["bytes"] == num_bytes])
    capfd.readouterr()
    assert run(["resize", "a.parquet", "-c", "id", "--fpp", "0.5", "-n"]) == 0
    lines = capfd.readouterr().out.splitlines()
    header = lines.index(next(line for line in lines if line.split()[:3] == ["column", "size", "bitsets"]))
    assert [line.split()[-5] for line in lines[header + 1 : header + 7]] == ["4,096", "2,048", "1,024", "512", "256", "128"]
    assert run(["resize", "a.parquet", "-c", "id", "--fpp", "0.5", "--in-place", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)["sizes"] == []
