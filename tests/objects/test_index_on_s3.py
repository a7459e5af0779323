"""An index of objects, itself in the store: what a key requests, and that new and changed objects
are opened."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import run
from sbbf_tool.cli import run as sbbf
from sbbf_tool.extensions.index.build import build_index, update_index
from sbbf_tool.extensions.index.lake_index import LakeIndex, prune_index
from sbbf_tool.verbs import Probe
from support.buckets import Bucket

FILES, ROWS = 40, 500


def write(number: int, fpp: float = 1e-6) -> bytes:
    """Write values that are spread over all files, so that bounds exclude none."""
    buffer = io.BytesIO()
    values = pa.array(np.arange(ROWS) * FILES + number)
    pq.write_table(
        pa.table({"v": values}), buffer, bloom_filter_options={"v": {"ndv": ROWS, "fpp": fpp}}
    )
    return buffer.getvalue()


def upload(bucket: Bucket, index: Path) -> str:
    for path in index.iterdir():
        bucket.put(f"{index.name}/{path.name}", path.read_bytes())
    return bucket.url(index.name)


def requests(bucket: Bucket) -> list[tuple[str, str]]:
    """Return the method and the object of each request since the last call, or the prefix of a
    listing."""
    found = [
        (exchange.method, exchange.path.partition("?")[0].rpartition("/")[2])
        for exchange in bucket.proxy.exchanges
    ]
    bucket.proxy.forget()
    return found


def test_a_key_takes_few_requests(moto_bucket: Bucket, tmp_path: Path, capsys) -> None:
    for number in range(FILES):
        moto_bucket.put(f"lake/{number:03}.parquet", write(number, 1e-6 if number % 2 else 1e-3))
    lake, local = moto_bucket.url("lake/"), tmp_path / "lake.sbbfx"
    report = build_index(lake, "v", str(local))
    assert (report.files, report.new_files, report.data_bytes, report.segments, report.classes) == (
        FILES,
        FILES,
        0,
        1,
        2,
    )
    index = upload(moto_bucket, local)
    requests(moto_bucket)
    wanted = moto_bucket.url("lake/007.parquet")
    assert prune_index(index, {"v": [FILES * 3 + 7]}, listing=False) == [wanted]
    made = requests(moto_bucket)
    by_object = {
        name.partition(".")[2]: [name for _, other in made if other == name] for _, name in made
    }
    assert len(by_object["json"]) == 1
    # One to open the file, and at most one for each class.
    assert len(by_object["blocks.parquet"]) <= 1 + report.classes
    assert len(by_object["units.parquet"]) <= 3
    assert prune_index(index, {"v": [FILES * 3 + 7]}) == [wanted]
    assert not [
        name
        for _, name in requests(moto_bucket)
        if name.endswith(".parquet") and name.startswith("0")
    ]
    (row,) = run(Probe("v", [FILES * 3 + 7]), index)
    assert row.path == wanted
    assert row.report == next(iter(run(Probe("v", [FILES * 3 + 7]), wanted))).report
    # An object that has changed has another ETag, one that is new none in the index, and one that
    # is gone is not listed.
    moto_bucket.put("lake/003.parquet", write(7))
    moto_bucket.put("lake/new.parquet", write(1))
    moto_bucket.client.delete_object(Bucket=moto_bucket.name, Key="lake/007.parquet")
    rows = {
        row.path.rpartition("/")[2]: row.report for row in run(Probe("v", [FILES * 3 + 7]), index)
    }
    assert {name: bool(report and report.hits) for name, report in rows.items()} == {
        "003.parquet": True,
        "new.parquet": False,
    }
    report = update_index(str(local))
    assert (report.new_files, report.vanished_files) == (2, 2)
    assert [row.path for row in run(Probe("v", [FILES * 3 + 7]), local)] == [
        moto_bucket.url("lake/003.parquet")
    ]
    capsys.readouterr()
    assert sbbf(["probe", index, "v", str(FILES * 3 + 7), "--format", "names"]) == 0
    assert capsys.readouterr().out == f"{moto_bucket.url('lake/003.parquet')}\n"


def test_a_damaged_index_in_a_store_is_an_error(
    moto_bucket: Bucket, tmp_path: Path, capsys
) -> None:
    moto_bucket.put("lake/a.parquet", write(0))
    moto_bucket.put("lake/b.parquet", write(1))
    local = tmp_path / "lake.sbbfx"
    build_index(moto_bucket.url("lake/"), "v", str(local))
    (blocks,) = local.glob("*.blocks.parquet")
    data = bytearray(blocks.read_bytes())
    data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
    blocks.write_bytes(data)
    index = upload(moto_bucket, local)
    assert LakeIndex(index).contents.column == "v"
    codes = {sbbf(["probe", index, "v", str(value)]) for value in range(0, 40 * FILES, FILES)}
    assert 3 in codes
    assert all(line.startswith("sbbf: s3://") for line in capsys.readouterr().err.splitlines())
    assert sbbf(["probe", moto_bucket.url("none.sbbfx"), "v", "1"]) == 3
    assert "there is no index" in capsys.readouterr().err
