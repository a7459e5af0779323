"""New versions of S3 objects: what is uploaded, what is carried, what is refused, and that nothing
is left behind."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

import sbbf_tool
from objects.large_files import ABSENT, PRESENT, large, small
from sbbf_tool.cli import run
from sbbf_tool.errors import (
    RefusedError,
    UncertainWriteError,
    UnreadableError,
    UsageError,
    WriteError,
)
from support.tables import each


def test_only_the_tail_of_a_large_object_is_uploaded(bucket):
    url = bucket.put(
        "lake/large.parquet",
        large(),
        Metadata={"who": "me"},
        ContentType="application/x-own",
        CacheControl="max-age=60",
    )
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    new = bucket.get("lake/large.parquet")
    tail = report.new_bytes - report.old_bytes
    assert new[: len(large())] == large()
    assert report.new_bytes == len(new)
    uploads = [
        exchange for exchange in bucket.proxy.exchanges if exchange.operation == "UploadPart"
    ]
    assert [exchange.uploaded for exchange in uploads] == [tail]
    assert bucket.proxy.uploaded < tail + 2000  # beyond the tail, the list of parts
    assert bucket.proxy.count("UploadPartCopy") == 1
    assert (
        bucket.proxy.count("CompleteMultipartUpload") == 2
    )  # conditional, which Swift does not know; then after a look
    assert bucket.unfinished() == []
    head = bucket.head("lake/large.parquet")
    assert (head["Metadata"], head["ContentType"], head["CacheControl"]) == (
        {"who": "me"},
        "application/x-own",
        "max-age=60",
    )
    assert sbbf_tool.verify(url).is_sound
    assert sbbf_tool.probe(url, "id", [ABSENT]).is_absent
    assert not sbbf_tool.probe(url, "id", [PRESENT]).is_absent


def test_values_are_read_once_and_verified_from_the_same_read(bucket):
    url = bucket.put("large.parquet", large())
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    tail = report.new_bytes - report.old_bytes
    column = sum(
        pq.read_metadata(io.BytesIO(large())).row_group(n).column(0).total_compressed_size
        for n in range(3)
    )
    # The column once, what is fetched ahead of it, the footer, and what is read back.
    assert column < bucket.proxy.downloaded - tail < column * 1.6 + 300_000
    assert len(bucket.proxy.exchanges) < 60


@pytest.mark.parametrize("data", [small(), large()], ids=["small", "large"])
def test_a_new_object_beside_the_old_one(bucket, data):
    url = bucket.put("old.parquet", data)
    report = sbbf_tool.add_filters(url, ["id"], output=bucket.url("copies/new.parquet"))
    assert report.warnings == ()  # If-None-Match is known
    assert bucket.get("old.parquet") == data
    assert bucket.get("copies/new.parquet")[: len(data)] == data
    assert bucket.proxy.uploaded < max(len(data) // 4, 60_000)
    assert sbbf_tool.verify(bucket.url("copies/new.parquet")).is_sound


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
    for key in (
        "with space.parquet",
        "per%20cent.parquet",
        "plus+and#hash.parquet",
        "ünïcödé=ł.parquet",
        "day=2026-01-31/quest?.parquet",
    ):
        url = bucket.put(key, large() if "%" in key or "?" in key else small())
        sbbf_tool.add_filters(url, ["id"], in_place=True)
        assert len(sbbf_tool.inspect(url).filters) == 3
        assert key in bucket.list_keys()


def test_queries_that_cannot_be_answered_are_refused(bucket, capsys):
    url = bucket.put("small.parquet", small())
    assert run(["add-filter", url, "-c", "id", "--in-place", "--append"]) == 4
    assert "an object cannot be appended to" in capsys.readouterr().err
    with pytest.raises(UsageError, match="names a prefix, not an object"):
        sbbf_tool.add_filters(url, ["id"], output=bucket.url("").rstrip("/"))
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


def test_an_abort_that_fails_is_in_the_hint(bucket):
    url = bucket.put("large.parquet", large())
    bucket.proxy.fault = lambda exchange: (
        500 if exchange.operation in ("UploadPart", "AbortMultipartUpload") else None
    )
    with pytest.raises(WriteError, match="an unfinished upload remains"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert bucket.unfinished() == ["large.parquet"]
    assert bucket.proxy.count("AbortMultipartUpload") == 3


@each(
    "key, is_left",
    [("large.parquet", True), (f"t/sbbf-{'0' * 16}-{'1' * 8}-part.parquet", False)],
)
def test_an_upload_whose_answer_was_lost_is_named_or_aborted(key, is_left, moto_bucket, tmp_path):
    lost: list[object] = []

    def lose(exchange):
        if exchange.operation == "CreateMultipartUpload" and not lost:
            lost.append(exchange)
            return "lose answer"
        return None

    (tmp_path / "a.parquet").write_bytes(large())
    moto_bucket.proxy.fault = lose
    report = sbbf_tool.add_filters(tmp_path / "a.parquet", ["id"], output=moto_bucket.url(key))
    (tmp_path / "a.parquet").unlink()
    assert lost
    answer = moto_bucket.client.list_multipart_uploads(Bucket=moto_bucket.name)
    ids = [upload["UploadId"] for upload in answer.get("Uploads", ())]
    assert len(ids) == is_left
    for upload_id in ids:
        (warning,) = report.warnings
        assert "an unfinished upload of the object remains: remove it with aws s3api" in warning
        assert upload_id in warning
        moto_bucket.client.abort_multipart_upload(
            Bucket=moto_bucket.name, Key=key, UploadId=upload_id
        )


def test_an_upload_of_a_longer_key_is_not_taken_for_a_lost_one(moto_bucket, tmp_path):
    """A store lists uploads by the beginning of their keys."""
    created: list[str] = []

    def lose(exchange):
        if exchange.operation == "CreateMultipartUpload" and not created:
            created.append("large.parquet")
            answer = moto_bucket.client.create_multipart_upload(
                Bucket=moto_bucket.name, Key="large.parquet.other"
            )
            created.append(answer["UploadId"])
            return 500
        return None

    (tmp_path / "a.parquet").write_bytes(large())
    moto_bucket.proxy.fault = lose
    url = moto_bucket.url("large.parquet")
    report = sbbf_tool.add_filters(tmp_path / "a.parquet", ["id"], output=url)
    assert report.warnings == ()
    assert moto_bucket.unfinished() == ["large.parquet.other"]


def test_an_upload_that_may_be_complete_is_named_and_not_aborted(moto_bucket):
    url, lost = moto_bucket.put("large.parquet", large()), []

    def lose(exchange):
        if exchange.operation == "CompleteMultipartUpload":
            lost.append(exchange)
            return "cut"
        return 500 if lost and exchange.operation == "HeadObject" else None

    moto_bucket.proxy.fault = lose
    with pytest.raises(UncertainWriteError, match="unknown whether") as caught:
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert "abort-multipart-upload, upload " in caught.value.hint
    assert moto_bucket.proxy.count("AbortMultipartUpload") == 0


def test_unfinished_uploads_of_others_are_reported_and_kept(bucket):
    url = bucket.put("large.parquet", large())
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="large.parquet")
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="large.parquet.other")
    warnings = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert any(
        warning.startswith("earlier unfinished uploads of the object remain")
        for warning in warnings
    )
    assert sorted(bucket.unfinished()) == ["large.parquet", "large.parquet.other"]


DATA = each("data", [small(), large()])


@DATA
def test_metadata_tags_and_class_go_along(moto_bucket, data):
    attributes = {
        "Metadata": {"who": "me", "odd-name": "value with spaces"},
        "ContentType": "application/x-own",
        "ContentEncoding": "identity",
        "ContentLanguage": "la",
        "ContentDisposition": 'attachment; filename="x"',
        "CacheControl": "no-cache",
        "StorageClass": "STANDARD_IA",
        "ServerSideEncryption": "AES256",
        "Tagging": "team=lake&cost+centre=1%2F2",
    }
    url = moto_bucket.put("x.parquet", data, **attributes)
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    head = moto_bucket.head("x.parquet")
    assert {name: head.get(name) for name in attributes if name != "Tagging"} == {
        k: v for k, v in attributes.items() if k != "Tagging"
    }
    tags = moto_bucket.client.get_object_tagging(Bucket=moto_bucket.name, Key="x.parquet")["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"team": "lake", "cost centre": "1/2"}
    assert sbbf_tool.verify(url).is_sound


@DATA
def test_the_write_itself_is_on_condition(moto_bucket, data):
    moto_bucket.proxy.forget()
    url = moto_bucket.put("x.parquet", data)
    tag = moto_bucket.head("x.parquet")["ETag"]
    assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
    (write,) = (
        exchange
        for exchange in moto_bucket.proxy.exchanges
        if exchange.operation in ("PutObject", "CompleteMultipartUpload")
    )
    assert write.headers["if-match"] == tag
    moto_bucket.proxy.forget()
    sbbf_tool.remove_filters(url, output=moto_bucket.url(f"{len(data)}.parquet"))
    (write,) = (
        exchange
        for exchange in moto_bucket.proxy.exchanges
        if exchange.operation in ("PutObject", "CompleteMultipartUpload")
    )
    assert write.headers["if-none-match"] == "*"


def test_an_object_whose_tag_is_no_hash_of_its_bytes_is_uncertain(moto_bucket):
    """As with SSE-KMS: the response is lost, and the tag of the object is not that of the bytes
    that were sent."""
    url = moto_bucket.put("x.parquet", small())
    sizes: list[int] = []

    def lose(exchange):
        if exchange.operation == "PutObject" and not sizes:
            sizes.append(exchange.uploaded)
            return "lose answer"
        if exchange.operation == "HeadObject" and len(sizes) == 1:
            sizes.append(0)
            moto_bucket.put("x.parquet", b"x" * sizes[0])
        return None

    moto_bucket.proxy.fault = lose
    with pytest.raises(UncertainWriteError, match="ETag"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)


def test_a_replacement_without_readable_tags_is_refused(moto_bucket):
    url = moto_bucket.put("x.parquet", small(), Tagging="a=b")
    moto_bucket.proxy.fault = lambda exchange: (
        403 if exchange.operation == "GetObjectTagging" else None
    )
    with pytest.raises(
        RefusedError,
        match="the object's tags cannot be read, so the new version would lack them; allow "
        "s3:GetObjectTagging",
    ):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    (warning,) = sbbf_tool.add_filters(url, ["id"], output=moto_bucket.url("y.parquet")).warnings
    assert "tags could not be read" in warning


def test_a_warning_reports_an_access_list(moto_bucket):
    url = moto_bucket.put("x.parquet", small(), ACL="public-read")
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert "access list was not kept" in warning


def test_archives_and_locks_are_refused(moto_bucket):
    url = moto_bucket.put("cold.parquet", small(), StorageClass="DEEP_ARCHIVE")
    archived = "the object is archived in storage class DEEP_ARCHIVE; restore it first"
    for change in (sbbf_tool.add_filters, sbbf_tool.remove_filters):
        with pytest.raises(RefusedError, match=f"{archived}, and write the result to another file"):
            change(url, ["id"], in_place=True)
    with pytest.raises(UnreadableError, match=archived):
        sbbf_tool.add_filters(url, ["id"], output=moto_bucket.url("new.parquet"))
    with pytest.raises(UnreadableError, match=archived):
        sbbf_tool.verify(url)
    # Restored, it can be read for some days, and its new version could not.
    moto_bucket.client.restore_object(
        Bucket=moto_bucket.name, Key="cold.parquet", RestoreRequest={"Days": 1}
    )
    with pytest.raises(
        RefusedError,
        match="the object is in storage class DEEP_ARCHIVE, in which a new version could not "
        "be read",
    ):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    moto_bucket.client.create_bucket(
        Bucket=f"{moto_bucket.name}-locked", ObjectLockEnabledForBucket=True
    )
    moto_bucket.client.put_object(
        Bucket=f"{moto_bucket.name}-locked",
        Key="x.parquet",
        Body=small(),
        ObjectLockLegalHoldStatus="ON",
        ChecksumAlgorithm="CRC32",
    )
    moto_bucket.proxy.forget()
    with pytest.raises(RefusedError, match="the object is locked"):
        sbbf_tool.add_filters(f"s3://{moto_bucket.name}-locked/x.parquet", ["id"], in_place=True)
    assert moto_bucket.proxy.uploaded == 0
