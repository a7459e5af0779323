"""Files whose filters a scan takes for an index give the same units as files that are opened."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sbbf_tool.extensions.index.units import IndexUnits
from sbbf_tool.file import scan
from support.scans import TYPES, change_kind, compare, fitting_sample, join, mutants, sample, split
from support.tables import each

pytestmark = pytest.mark.skipif(not scan.can_scan(), reason="the extension _scan was not built")


def _write(folder: Path, files: list[bytes]) -> list[str]:
    folder.mkdir()
    paths = []
    for number, data in enumerate(files):
        path = folder / f"{number}.parquet"
        path.write_bytes(data)
        paths.append(str(path))
    return paths


@each("seed", range(3), heavy=range(3, 40))
def test_units_of_many_files(tmp_path, seed):
    choose = random.Random(seed)
    answered = 0
    for number, type_name in enumerate(TYPES):
        data = sample(tmp_path, type_name, choose).data
        start, metadata = split(data)
        change_kind(metadata, choose)
        files = [data, *mutants(data, choose, 8), join(start, metadata)]
        paths = _write(tmp_path / f"{seed}-{number}", files)
        for fpp in (None, 0.3):
            answered += compare(IndexUnits("v", fpp), paths).answered
    assert answered > 20


@each("seed", range(2), heavy=range(2, 20))
def test_units_of_several_row_groups(tmp_path, seed):
    choose = random.Random(seed)
    folded = 0
    files = [fitting_sample(tmp_path / "sample.parquet", choose) for _ in range(40)]
    paths = _write(tmp_path / str(seed), files)
    for column in ("id", "v", "few"):
        whole = compare(IndexUnits(column, None), paths)
        folded += compare(IndexUnits(column, 0.05), paths).answered
        assert whole.answered > 5
    assert folded > 5


def test_a_folder_that_states_the_column_is_for_python(tmp_path):
    data = fitting_sample(tmp_path / "sample.parquet", random.Random(7))
    (path,) = _write(tmp_path / "id=1", [data])
    assert compare(IndexUnits("id", None), [path]).answered == 0
