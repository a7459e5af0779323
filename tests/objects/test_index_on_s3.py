"""An index of objects, itself in the store: what a key requests, and that new and changed objects
are opened."""

from __future__ import annotations

import io
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import run
from sbbf_tool.cli import run as sbbf
from sbbf_tool.extensions.index.build import build_index, update_index
from sbbf_tool.extensions.index.lake_index import LakeIndex, prune_index
from sbbf_tool.verbs import Probe
from support.buckets import Bucket, environment, forget_clients
from support.http_site import serve
from support.tables import each

FILES, ROWS = 40, 500


def write(number: int, fpp: float = 1e-6, **options: Any) -> bytes:
    """Write values that are spread over all files, so that bounds exclude none."""
    buffer = io.BytesIO()
    values = pa.array(np.arange(ROWS) * FILES + number)
    filters = {"v": {"ndv": ROWS, "fpp": fpp}}
    pq.write_table(pa.table({"v": values}), buffer, bloom_filter_options=filters, **options)
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
    codes = {sbbf(["probe", index, "v", str(value)]) for value in range(0, 12 * FILES, FILES)}
    assert 3 in codes
    assert all(line.startswith("sbbf: s3://") for line in capsys.readouterr().err.splitlines())
    assert sbbf(["probe", moto_bucket.url("none.sbbfx"), "v", "1"]) == 3
    assert "there is no index" in capsys.readouterr().err


class _Store(BaseHTTPRequestHandler):
    """A store that lists objects as S3 does, with the ETags that it is given, or with none."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, tuple[bytes, str | None]]

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        key = url.path.removeprefix("/bucket").removeprefix("/")
        if key not in self.objects:
            query = dict(parse_qsl(url.query))
            prefix, after = query.get("prefix", ""), query.get("start-after", "")
            found = (
                f"<Contents><Key>{name}</Key><LastModified>2025-01-01T00:00:00Z</LastModified>"
                f"{f'<ETag>{tag}</ETag>' if tag else ''}<Size>{len(data)}</Size></Contents>"
                for name, (data, tag) in sorted(self.objects.items())
                if name.startswith(prefix) and name > after
            )
            is_listing = "list-type" in query
            body = f"<ListBucketResult>{''.join(found)}</ListBucketResult>".encode()
            self._answer(200 if is_listing else 404, body if is_listing else b"", {})
            return
        data, tag = self.objects[key]
        headers = {"Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT"} | (
            {"ETag": tag} if tag else {}
        )
        match = re.match(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if match is None:
            self._answer(200, data, headers)
            return
        first, last = match.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
        self._answer(206, data[start : end + 1], headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@each("tag, others", [(None, 0), ('W/"1"', 0), ('"1"', 1)])
@each("suffix", [""], heavy=[".parquet"])  # the last bytes of objects without .parquet are read
def test_objects_of_no_known_version_are_opened(
    tag, others, suffix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rewritten object of the same length looks like the one that was indexed."""
    old, new = (write(number, use_dictionary=False, compression="none") for number in range(2))
    assert len(old) == len(new)
    handler = type("Handler", (_Store,), {"objects": {}})
    names = [f"lake/{number}{suffix}" for number in range(2)]
    handler.objects = dict.fromkeys(names, (old, tag))
    with serve(handler) as server:
        for name, value in environment(server.url).items():
            monkeypatch.setenv(name, value)
        forget_clients()
        index = str(tmp_path / "lake.sbbfx")
        for report in (build_index("s3://bucket/lake/", "v", index), update_index(index)):
            assert (report.files, report.segments) == (2, 1)
            assert report.files_without_filter == 2 - 2 * others
            assert len(report.reasons) == 1 - others
        handler.objects = {names[0]: (old, tag), names[1]: (new, tag and tag.replace("1", "2"))}
        paths = prune_index(index, {"v": [FILES + 1]})
        assert f"s3://bucket/{names[1]}" in paths
        assert len(paths) == 2 - others
        rows = run(Probe("v", [FILES + 1]), index)
        assert [row.path for row in rows if row.report and row.report.hits] == [
            f"s3://bucket/{names[1]}"
        ]
        assert len(prune_index(index, {"v": [FILES + 1]}, listing=False)) == 2 - 2 * others
    forget_clients()
    for path in (tmp_path / "lake.sbbfx").iterdir():
        path.unlink()
    (tmp_path / "lake.sbbfx").rmdir()
