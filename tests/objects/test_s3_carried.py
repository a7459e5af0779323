"""What OpenStack Swift does not know, against moto: tags, storage classes, access lists, locks, and writes on condition of an ETag."""

from __future__ import annotations

import pytest

import sbbf_tool
from sbbf_tool.errors import RefusedError, UnreadableError
from support.buckets import Bucket
from support.large_files import large, small
from support.tables import each


@pytest.fixture
def bucket(moto_bucket: Bucket) -> Bucket:
    return moto_bucket


DATA = each("data", [small(), large()])


@DATA
def test_metadata_tags_and_class_go_along(bucket, data):
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
    url = bucket.put("x.parquet", data, **attributes)
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    head = bucket.head("x.parquet")
    assert {name: head.get(name) for name in attributes if name != "Tagging"} == {k: v for k, v in attributes.items() if k != "Tagging"}
    tags = bucket.client.get_object_tagging(Bucket=bucket.name, Key="x.parquet")["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"team": "lake", "cost centre": "1/2"}
    assert sbbf_tool.verify(url).is_sound


@DATA
def test_the_write_itself_is_on_condition(bucket, data):
    bucket.proxy.forget()
    url = bucket.put("x.parquet", data)
    tag = bucket.head("x.parquet")["ETag"]
    assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
    (write,) = (exchange for exchange in bucket.proxy.exchanges if exchange.operation in ("PutObject", "CompleteMultipartUpload"))
    assert write.headers["if-match"] == tag
    bucket.proxy.forget()
    sbbf_tool.remove_filters(url, output=bucket.url(f"{len(data)}.parquet"))
    (write,) = (exchange for exchange in bucket.proxy.exchanges if exchange.operation in ("PutObject", "CompleteMultipartUpload"))
    assert write.headers["if-none-match"] == "*"


@DATA
def test_a_rival_in_the_last_moment_wins(bucket, data):
    bucket.proxy.forget()
    url = bucket.put("x.parquet", data)

    def rival(exchange):
        if exchange.operation in ("PutObject", "CompleteMultipartUpload") and not done:
            done.append(exchange)
            bucket.client.put_object(Bucket=bucket.name, Key="x.parquet", Body=b"theirs")
            # moto takes no notice of the condition here, which S3 does.
            return 412 if exchange.operation == "CompleteMultipartUpload" else None
        return None

    done: list[object] = []
    bucket.proxy.fault = rival
    with pytest.raises(RefusedError, match="the object changed while it was worked on"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert bucket.get("x.parquet") == b"theirs"
    assert bucket.unfinished() == []


@DATA
def test_a_write_with_a_lost_response_is_recognised(bucket, data):
    bucket.proxy.forget()
    url = bucket.put("x.parquet", data)
    exchanges: list[object] = []

    def lose(exchange):
        if exchange.operation in ("PutObject", "CompleteMultipartUpload") and not exchanges:
            exchanges.append(exchange)
            return "lose answer"
        return None

    bucket.proxy.fault = lose
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert sbbf_tool.verify(url).is_sound


def test_a_replacement_without_readable_tags_is_refused(bucket):
    url = bucket.put("x.parquet", small(), Tagging="a=b")
    bucket.proxy.fault = lambda exchange: 403 if exchange.operation == "GetObjectTagging" else None
    with pytest.raises(
        RefusedError, match="the object's tags cannot be read, so the new version would lack them; allow s3:GetObjectTagging"
    ):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    (warning,) = sbbf_tool.add_filters(url, ["id"], output=bucket.url("y.parquet")).warnings
    assert "tags could not be read" in warning


def test_a_warning_reports_an_access_list(bucket):
    url = bucket.put("x.parquet", small(), ACL="public-read")
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert "access list was not kept" in warning


def test_archives_and_locks_are_refused(bucket):
    url = bucket.put("cold.parquet", small(), StorageClass="DEEP_ARCHIVE")
    archived = "the object is archived in storage class DEEP_ARCHIVE; restore it first"
    for change in (sbbf_tool.add_filters, sbbf_tool.remove_filters):
        with pytest.raises(RefusedError, match=f"{archived}, and write the result to another file"):
            change(url, ["id"], in_place=True)
    with pytest.raises(UnreadableError, match=archived):
        sbbf_tool.add_filters(url, ["id"], output=bucket.url("new.parquet"))
    with pytest.raises(UnreadableError, match=archived):
        sbbf_tool.verify(url)
    # Restored, it can be read for some days, and its new version could not.
    bucket.client.restore_object(Bucket=bucket.name, Key="cold.parquet", RestoreRequest={"Days": 1})
    with pytest.raises(RefusedError, match="the object is in storage class DEEP_ARCHIVE, in which a new version could not be read"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    bucket.client.create_bucket(Bucket=f"{bucket.name}-locked", ObjectLockEnabledForBucket=True)
    bucket.client.put_object(
        Bucket=f"{bucket.name}-locked", Key="x.parquet", Body=small(), ObjectLockLegalHoldStatus="ON", ChecksumAlgorithm="CRC32"
    )
    bucket.proxy.forget()
    with pytest.raises(RefusedError, match="the object is locked"):
        sbbf_tool.add_filters(f"s3://{bucket.name}-locked/x.parquet", ["id"], in_place=True)
    assert bucket.proxy.uploaded == 0
