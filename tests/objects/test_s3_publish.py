"""New versions of S3 objects: what is uploaded, what is carried, what is refused, and that nothing is left behind."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UsageError
from support.large_files import ABSENT, PRESENT, large, small


def test_only_the_tail_of_a_large_object_is_uploaded(bucket):
    url = bucket.put("lake/large.parquet", large(), Metadata={"who": "me"}, ContentType="application/x-own", CacheControl="max-age=60")
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    new = bucket.get("lake/large.parquet")
    tail = report.new_bytes - report.old_bytes
    assert new[: len(large())] == large()
    assert report.new_bytes == len(new)
    uploads = [exchange for exchange in bucket.proxy.exchanges if exchange.operation == "UploadPart"]
    assert [exchange.uploaded for exchange in uploads] == [tail]
    assert bucket.proxy.uploaded < tail + 2000  # beyond the tail, the list of parts
    assert bucket.proxy.count("UploadPartCopy") == 1
    assert bucket.proxy.count("CompleteMultipartUpload") == 2  # conditional, which Swift does not know; then after a look
    assert bucket.unfinished() == []
    head = bucket.head("lake/large.parquet")
    assert (head["Metadata"], head["ContentType"], head["CacheControl"]) == ({"who": "me"}, "application/x-own", "max-age=60")
    assert sbbf_tool.verify(url).is_sound
    assert sbbf_tool.probe(url, "id", [ABSENT]).is_absent
    assert not sbbf_tool.probe(url, "id", [PRESENT]).is_absent


def test_values_are_read_once_and_verified_from_the_same_read(bucket):
    url = bucket.put("large.parquet", large())
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    tail = report.new_bytes - report.old_bytes
    column = sum(pq.read_metadata(io.BytesIO(large())).row_group(n).column(0).total_compressed_size for n in range(3))
    # The column once, what is fetched ahead of it, the footer, and what is read back.
    assert column < bucket.proxy.downloaded - tail < column * 1.6 + 300_000
    assert len(bucket.proxy.exchanges) < 60


def test_a_small_object_is_put_in_one_piece(bucket):
    url = bucket.put("small.parquet", small(), Metadata={"a": "1"})
    report = sbbf_tool.add_filters(url, ["id", "name"], in_place=True)
    assert bucket.proxy.count("PutObject") == 2  # the first one conditional
    assert bucket.proxy.count("CreateMultipartUpload") == 0
    assert bucket.get("small.parquet")[: len(small())] == small()
    assert len(report.filters) == 6
    assert bucket.head("small.parquet")["Metadata"] == {"a": "1"}
    assert sbbf_tool.verify(url).is_sound


@pytest.mark.parametrize("data", [small(), large()], ids=["small", "large"])
def test_a_new_object_beside_the_old_one(bucket, data):
    url = bucket.put("old.parquet", data)
    report = sbbf_tool.add_filters(url, ["id"], output=bucket.url("copies/new.parquet"))
    assert report.warnings == ()  # If-None-Match is known
    assert bucket.get("old.parquet") == data
    assert bucket.get("copies/new.parquet")[: len(data)] == data
    assert bucket.proxy.uploaded < max(len(data) // 4, 60_000)
    assert sbbf_tool.verify(bucket.url("copies/new.parquet")).is_sound


def test_an_existing_object_is_not_overwritten(bucket):
    url = bucket.put("old.parquet", small())
    bucket.put("there.parquet", b"something")
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.add_filters(url, ["id"], output=bucket.url("there.parquet"))
    assert bucket.get("there.parquet") == b"something"


@pytest.mark.heavy
def test_an_object_that_comes_to_exist_meanwhile_is_not_overwritten(bucket):
    for data in (small(), large()):
        url = bucket.put("old.parquet", data)

        def rival(exchange):
            if exchange.operation in ("PutObject", "CompleteMultipartUpload") and not rival.done:
                rival.done = True
                bucket.client.put_object(Bucket=bucket.name, Key="new.parquet", Body=b"theirs")

        rival.done = False
        bucket.proxy.fault = rival
        with pytest.raises(RefusedError, match="the target exists"):
            sbbf_tool.add_filters(url, ["id"], output=bucket.url("new.parquet"))
        assert bucket.get("new.parquet") == b"theirs"
        assert bucket.unfinished() == []
        bucket.client.delete_object(Bucket=bucket.name, Key="new.parquet")


@pytest.mark.heavy
def test_between_the_file_system_and_the_store(bucket, tmp_path):
    here = tmp_path / "here.parquet"
    here.write_bytes(large())
    sbbf_tool.add_filters(here, ["id"], output=bucket.url("there.parquet"))
    assert bucket.get("there.parquet")[: len(large())] == large()
    assert bucket.head("there.parquet")["ContentType"] == "application/vnd.apache.parquet"
    sbbf_tool.remove_filters(bucket.url("there.parquet"), output=tmp_path / "back.parquet")
    assert (tmp_path / "back.parquet").read_bytes() == large()
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.remove_filters(bucket.url("there.parquet"), output=tmp_path / "back.parquet")


@pytest.mark.heavy
def test_keys_are_not_decoded(bucket):
    for key in ("with space.parquet", "per%20cent.parquet", "plus+and#hash.parquet", "ünïcödé=ł.parquet", "day=2026-01-31/quest?.parquet"):
        url = bucket.put(key, large() if "%" in key or "?" in key else small())
        sbbf_tool.add_filters(url, ["id"], in_place=True)
        assert len(sbbf_tool.inspect(url).filters) == 3
        assert key in bucket.list_keys()


def test_queries_that_cannot_be_answered_are_refused(bucket, capsys):
    url = bucket.put("small.parquet", small())
    assert run(["add-filter", url, "-c", "id", "--in-place", "--append"]) == 4
    assert "an object cannot be appended to" in capsys.readouterr().err
    with pytest.raises(UsageError, match="names a prefix, not an object"):
        sbbf_tool.add_filters(url, ["id"], output=bucket.url("folder/"))
    assert bucket.proxy.uploaded == 0


def test_files_of_tables_are_refused(bucket):
    markers = {
        "delta": "delta/_delta_log/0.json",
        "hudi": "hudi/.hoodie/hoodie.properties",
        "iceberg": "iceberg/metadata/v1.metadata.json",
    }
    for name, marker in markers.items():
        bucket.put(marker, b"{}")
        url = bucket.put(f"{name}/data/day=1/file.parquet", small())
        with pytest.raises(RefusedError, match=f"(?i)belongs to an? {name} table"):
            sbbf_tool.add_filters(url, ["id"], in_place=True)
        sbbf_tool.add_filters(url, ["id"], in_place=True, allow_table_files=True)


def test_unfinished_uploads_of_others_are_reported_and_kept(bucket):
    url = bucket.put("large.parquet", large())
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="large.parquet")
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="large.parquet.other")
    warnings = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert any(warning.startswith("earlier unfinished uploads of the object remain") for warning in warnings)
    assert sorted(bucket.unfinished()) == ["large.parquet", "large.parquet.other"]
