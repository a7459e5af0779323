"""New versions of objects of Google Cloud Storage: what is uploaded, what is carried, what is
refused, and that nothing is left behind."""

from __future__ import annotations

import base64
import os
from dataclasses import replace

import google_crc32c
import pytest

import sbbf_tool
from objects.google_server import operation
from objects.large_files import large, small
from sbbf_tool.errors import ChangedError, RefusedError, WriteError
from sbbf_tool.storage.objects import cloud, google
from support.tables import each

pytestmark = pytest.mark.environment(minutes=1)


@each("data", [small(), large()])
def test_attributes_go_along(google_bucket, data):
    google_bucket.proxy.forget()
    attributes = {
        "metadata": {"who": "me", "odd name": "value with spaces"},
        "contentType": "application/x-own",
        "contentEncoding": "identity",
        "contentLanguage": "la",
        "contentDisposition": 'attachment; filename="x"',
        "cacheControl": "no-cache",
        "storageClass": "NEARLINE",
        "customTime": "2024-01-01T00:00:00Z",
    }
    url = google_bucket.put("x.parquet", data, **attributes)
    assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
    metadata = google_bucket.metadata("x.parquet")
    if data is large():
        # The emulator drops the time of an object that it composes or rewrites; the request has it.
        del attributes["customTime"]
    assert {name: metadata.get(name) for name in attributes} == attributes
    assert sbbf_tool.verify(url).is_sound


def test_the_key_of_the_key_service_goes_along(google_bucket):
    url = google_bucket.put("x.parquet", large())
    key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    google_bucket.server.attributes["x.parquet"] = {"kmsKeyName": f"{key}/cryptoKeyVersions/3"}
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    writes = [
        exchange
        for exchange in google_bucket.proxy.exchanges
        if operation(exchange) in ("Upload", "Compose")
    ]
    assert len(writes) == 2
    assert f"kmsKeyName={key.replace('/', '%2F')}&" in f"{writes[0].query}&"
    assert google_bucket.server.attributes["x.parquet"]["destination"]["kmsKeyName"] == key


@each(
    "attributes, message",
    [
        ({"temporaryHold": True}, "the object is under a hold"),
        ({"eventBasedHold": True}, "the object is under a hold"),
        (
            {"retentionExpirationTime": "2020-01-01T00:00:00Z"},
            "the object or its bucket has a retention policy",
        ),
        (
            {"retention": {"mode": "Unlocked", "retainUntilTime": "2099-01-01T00:00:00Z"}},
            "the object or its bucket has a retention policy",
        ),
        ({"customerEncryption": {"encryptionAlgorithm": "AES256"}}, "customer-supplied key"),
        ({"contentEncoding": "gzip"}, "content encoding gzip"),
    ],
)
def test_what_cannot_be_carried_is_refused(google_bucket, attributes, message):
    url = google_bucket.put("x.parquet", large())
    google_bucket.server.attributes["x.parquet"] = attributes
    with pytest.raises(RefusedError, match=message):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert google_bucket.proxy.uploaded == 0


def test_a_warning_reports_an_access_list(google_bucket):
    url = google_bucket.put("x.parquet", small())
    google_bucket.server.attributes["x.parquet"] = {
        "acl": [{"entity": "allUsers", "role": "READER"}]
    }
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert "access list was not kept" in warning


def test_a_tail_in_several_requests(google_bucket, monkeypatch):
    monkeypatch.setattr(google, "UPLOAD_PART", 256 << 10)
    monkeypatch.setattr("google.cloud.storage.blob._MAX_MULTIPART_SIZE", 256 << 10)
    url = google_bucket.put("x.parquet", large())
    sbbf_tool.add_filters(url, ["id", "payload"], in_place=True)
    assert google_bucket.count("Upload") > 2
    assert google_bucket.get("x.parquet")[: len(large())] == large()
    assert google_bucket.names() == ["x.parquet"]
    assert sbbf_tool.verify(url).is_sound


def test_a_tail_that_is_stored_without_an_answer_is_deleted(google_bucket):
    url = google_bucket.put("x.parquet", large())
    google_bucket.fail("Upload", "lose answer")
    with pytest.raises(WriteError, match="the old object is untouched"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert google_bucket.get("x.parquet") == large()
    assert google_bucket.names() == ["x.parquet"]


def test_a_temporary_object_that_cannot_be_deleted_is_reported(google_bucket):
    url = google_bucket.put("x.parquet", large())
    google_bucket.fail("Delete", 403)
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert "temporary objects with the suffix .sbbf-tail remain" in warning
    (rest,) = (name for name in google_bucket.names() if name != "x.parquet")
    assert rest.startswith(".sbbf-")  # hidden from readers of a lake
    google_bucket.proxy.forget()
    sbbf_tool.resize_filters(url, max_bytes=16384, in_place=True, force=True)
    assert google_bucket.names() == ["x.parquet"]


def test_a_new_object_in_another_bucket(google_bucket):
    """The service composes objects of one bucket alone."""
    other = replace(google_bucket, name=f"{google_bucket.name}-other")
    other.create()
    url = google_bucket.put("x.parquet", large())
    sbbf_tool.add_filters(url, ["id"], output=other.url("new.parquet"))
    assert google_bucket.get("x.parquet") == large()
    assert other.get("new.parquet")[: len(large())] == large()
    assert (google_bucket.names(), other.names()) == (["x.parquet"], ["new.parquet"])


def test_concurrent_changes_of_one_object(google_bucket):
    """The second replaces the temporary object of the first, which then fails and leaves the object
    to the second."""
    url = google_bucket.put("x.parquet", large())
    outcomes = []

    def second(exchange):
        if operation(exchange) == "Compose":
            google_bucket.proxy.fault = None
            outcomes.append(sbbf_tool.add_filters(url, ["payload"], in_place=True))

    google_bucket.proxy.fault = second
    with pytest.raises(ChangedError, match="the object changed while it was worked on"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert len(outcomes) == 1
    assert {row.column for row in sbbf_tool.inspect(url).filters} == {"payload"}
    assert sbbf_tool.verify(url).is_sound
    assert google_bucket.names() == ["x.parquet"]


def test_a_server_without_generations_is_refused(google_bucket, monkeypatch):
    url = google_bucket.put("x.parquet", small())
    really = cloud.CloudStore._version
    monkeypatch.setattr(
        cloud.CloudStore, "_version", lambda self, meta: really(self, {**meta, "version": None})
    )
    with pytest.raises(RefusedError, match="the server states no generation"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)


@each("lengths", [(9,), (0, 3), (3, 0), (1, 255, 256), (1000, 1, 1), ((1 << 20) + 1, 3)])
def test_checksums_of_concatenated_bytes(lengths):
    def checksum(data: bytes) -> str:
        return base64.b64encode(google_crc32c.Checksum(data).digest()).decode()

    parts = [os.urandom(length) for length in lengths]
    assert google.checksum_of((checksum(part), len(part)) for part in parts) == checksum(
        b"".join(parts)
    )
    assert checksum(b"123456789") == "4waSgw=="  # RFC 3720, section B.4
