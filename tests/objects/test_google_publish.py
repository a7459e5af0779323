"""New versions of objects of Google Cloud Storage: what is uploaded, what is carried, what is refused, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import sbbf_tool
from sbbf_tool.errors import ChangedError, RefusedError, WriteError
from sbbf_tool.storage.objects import google_publish
from sbbf_tool.storage.objects.crc32c import combine, parse_checksum
from support.google_server import operation
from support.large_files import ABSENT, PRESENT, large, small
from support.tables import each

pytestmark = pytest.mark.environment(minutes=1)


def fault_of(name: str, answer: str | int, times: int | None = None):
    """A fault of one operation, each time or the first few."""
    matches = []

    def fault(exchange):
        if operation(exchange) == name and (times is None or len(matches) < times):
            matches.append(exchange)
            return answer
        return None

    return fault


def test_only_the_tail_of_a_large_object_is_uploaded(google_bucket):
    url = google_bucket.put("lake/large.parquet", large(), metadata={"who": "me"}, contentType="application/x-own")
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert report.warnings == ()
    new, tail = google_bucket.get("lake/large.parquet"), report.new_bytes - report.old_bytes
    assert new[: len(large())] == large()
    assert report.new_bytes == len(new)
    assert google_bucket.proxy.uploaded < tail + 2000
    assert [google_bucket.count(name) for name in ("Upload", "Compose", "Delete")] == [1, 1, 1]
    assert google_bucket.names() == ["lake/large.parquet"]
    metadata = google_bucket.metadata("lake/large.parquet")
    assert (metadata["metadata"], metadata["contentType"]) == ({"who": "me"}, "application/x-own")
    assert metadata["componentCount"] == 2
    assert "md5Hash" not in metadata
    assert sbbf_tool.verify(url).is_sound
    assert sbbf_tool.probe(url, "id", [ABSENT]).is_absent
    assert not sbbf_tool.probe(url, "id", [PRESENT]).is_absent


def test_a_small_object_is_uploaded_in_one_request(google_bucket):
    url = google_bucket.put("small.parquet", small(), metadata={"a": "1"})
    report = sbbf_tool.add_filters(url, ["id", "name"], in_place=True)
    assert report.warnings == ()
    assert [google_bucket.count(name) for name in ("Upload", "Compose", "Delete")] == [1, 0, 0]
    assert google_bucket.get("small.parquet")[: len(small())] == small()
    assert google_bucket.metadata("small.parquet")["metadata"] == {"a": "1"}
    assert sbbf_tool.verify(url).is_sound


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
    writes = [exchange for exchange in google_bucket.proxy.exchanges if operation(exchange) in ("Upload", "Compose")]
    assert len(writes) == 2
    assert all(f"kmsKeyName={key.replace('/', '%2F')}&" in f"{exchange.query}&" for exchange in writes)


@each(
    "attributes, message",
    [
        ({"temporaryHold": True}, "the object is under a hold"),
        ({"eventBasedHold": True}, "the object is under a hold"),
        ({"retentionExpirationTime": "2020-01-01T00:00:00Z"}, "the object or its bucket has a retention policy"),
        ({"retention": {"mode": "Unlocked", "retainUntilTime": "2099-01-01T00:00:00Z"}}, "the object or its bucket has a retention policy"),
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
    google_bucket.server.attributes["x.parquet"] = {"acl": [{"entity": "allUsers", "role": "READER"}]}
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert "access list was not kept" in warning


def test_every_change_in_place(google_bucket):
    url = google_bucket.put("large.parquet", large())
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    sbbf_tool.resize_filters(url, num_bytes=16384, in_place=True, force=True)
    assert {row.bitset_bytes for row in sbbf_tool.inspect(url).filters} == {16384}
    assert sbbf_tool.repair(url, drop=True, in_place=True).steps == ()
    google_bucket.proxy.forget()
    assert sbbf_tool.remove_filters(url, in_place=True).method == "truncated"
    assert google_bucket.get("large.parquet") == large()
    # Google composes whole objects only.
    assert len(large()) < google_bucket.proxy.uploaded < len(large()) + 3000
    assert google_bucket.names() == ["large.parquet"]


@pytest.mark.parametrize("data", [small(), large()], ids=["small", "large"])
def test_a_new_object_beside_the_old_one(google_bucket, data):
    url = google_bucket.put("old.parquet", data, metadata={"a": "1"})
    report = sbbf_tool.add_filters(url, ["id"], output=google_bucket.url("copies/new.parquet"))
    assert google_bucket.get("old.parquet") == data
    assert google_bucket.get("copies/new.parquet")[: len(data)] == data
    assert google_bucket.metadata("copies/new.parquet")["metadata"] == {"a": "1"}
    if data is large():
        assert google_bucket.proxy.uploaded < report.new_bytes - report.old_bytes + 2000
    assert google_bucket.names() == ["copies/new.parquet", "old.parquet"]
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.add_filters(url, ["id"], output=google_bucket.url("copies/new.parquet"))


def test_more_parts_than_one_request_composes(google_bucket, monkeypatch):
    monkeypatch.setattr(google_publish, "UPLOAD_PART", 20_000)
    monkeypatch.setattr(google_publish, "MOST_SOURCES", 8)
    url = google_bucket.put("x.parquet", large())
    sbbf_tool.add_filters(url, ["id", "payload"], in_place=True)
    assert google_bucket.count("Compose") > 2
    assert google_bucket.get("x.parquet")[: len(large())] == large()
    assert google_bucket.names() == ["x.parquet"]
    assert sbbf_tool.verify(url).is_sound


@each("step, data", [("GetMetadata", small()), ("Upload", small()), ("GetMetadata", large()), ("Upload", large()), ("Compose", large())])
def test_an_object_that_changes_meanwhile_keeps_the_change(google_bucket, step, data):
    google_bucket.proxy.forget()
    theirs = small(600)
    url = google_bucket.put("x.parquet", data)
    count = []

    def rival(exchange):
        # The first request for metadata comes before the object is read.
        if operation(exchange) == step:
            count.append(exchange)
            if len(count) == (2 if step == "GetMetadata" else 1):
                google_bucket.put("x.parquet", theirs)

    google_bucket.proxy.fault = rival
    with pytest.raises(ChangedError, match=f"{url}: the object changed while it was worked on; run the command again"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert google_bucket.get("x.parquet") == theirs
    assert google_bucket.names() == ["x.parquet"]


@pytest.mark.parametrize("data", [small(), large()], ids=["small", "large"])
def test_an_object_that_comes_to_exist_meanwhile_is_not_overwritten(google_bucket, data):
    url = google_bucket.put("old.parquet", data)

    def rival(exchange):
        if operation(exchange) == ("Compose" if data is large() else "Upload"):
            google_bucket.proxy.fault = None
            google_bucket.put("new.parquet", b"theirs")

    google_bucket.proxy.fault = rival
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.add_filters(url, ["id"], output=google_bucket.url("new.parquet"))
    assert google_bucket.get("new.parquet") == b"theirs"
    assert google_bucket.names() == ["new.parquet", "old.parquet"]


@each("data", [small(), large()])
def test_a_write_with_a_lost_response_is_recognised(google_bucket, data):
    google_bucket.proxy.forget()
    url = google_bucket.put("x.parquet", data)
    google_bucket.proxy.fault = fault_of("Compose" if data is large() else "Upload", "lose answer", times=1)
    assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
    google_bucket.proxy.forget()
    assert sbbf_tool.verify(url).is_sound
    assert google_bucket.names() == ["x.parquet"]


@pytest.mark.heavy
@each("step, data", [("Upload", small()), ("Upload", large()), ("Compose", large())])
@each("answer", [500, "cut"])
def test_a_step_that_fails_leaves_the_old_object_and_nothing_else(google_bucket, step, data, answer):
    google_bucket.proxy.forget()
    url = google_bucket.put("x.parquet", data)
    google_bucket.proxy.fault = fault_of(step, answer)
    with pytest.raises(WriteError, match="the old object is untouched"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert google_bucket.get("x.parquet") == data
    assert google_bucket.names() == ["x.parquet"]
    google_bucket.proxy.fault = fault_of(step, answer, times=1)
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    google_bucket.proxy.forget()
    assert sbbf_tool.verify(url).is_sound


def test_a_tail_that_is_stored_without_an_answer_is_deleted(google_bucket):
    url = google_bucket.put("x.parquet", large())
    google_bucket.proxy.fault = fault_of("Upload", "lose answer")
    with pytest.raises(WriteError, match="the old object is untouched"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert google_bucket.get("x.parquet") == large()
    assert google_bucket.names() == ["x.parquet"]


def test_a_temporary_object_that_cannot_be_deleted_is_reported(google_bucket):
    url = google_bucket.put("x.parquet", large())
    google_bucket.proxy.fault = fault_of("Delete", 403)
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert "temporary objects with the suffix .sbbf-tail remain" in warning
    (rest,) = (name for name in google_bucket.names() if name != "x.parquet")
    assert rest.startswith(".sbbf-")  # hidden from readers of a lake
    google_bucket.proxy.forget()
    sbbf_tool.resize_filters(url, num_bytes=16384, in_place=True, force=True)
    assert google_bucket.names() == ["x.parquet"]


def test_concurrent_changes_of_one_object(google_bucket):
    """The second replaces the temporary object of the first, which then fails and leaves the object to the second."""
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


def killed_at(google_bucket, url: str, step: str, number: int) -> int:
    """Run a command and send it this signal when it requests this step, whose answer is delayed; return its exit code."""
    running: list[subprocess.Popen[bytes]] = []

    def kill(exchange):
        if operation(exchange) == step and running and running[0].poll() is None:
            running[0].send_signal(number)
            time.sleep(0.3)

    google_bucket.proxy.fault = kill
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from sbbf_tool.__main__ import main; main()"
    command = [sys.executable, "-c", program, "add-filter", url, "-c", "id", "--in-place"]
    with google_bucket.proxy.draining():
        running.append(subprocess.Popen(command, env={**os.environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        code = running[0].wait(timeout=120)
    google_bucket.proxy.forget()
    return code


@pytest.mark.nightly(minutes=2)
@pytest.mark.parametrize("step", ["Download", "Upload", "Compose"])
def test_a_kill_leaves_a_whole_object_and_the_next_run_removes_the_rest(google_bucket, step):
    url = google_bucket.put("lake/large.parquet", large())
    assert killed_at(google_bucket, url, step, signal.SIGKILL) == -signal.SIGKILL
    assert google_bucket.get("lake/large.parquet")[: len(large())] == large()
    temporary = [name for name in google_bucket.names() if name != "lake/large.parquet"]
    assert all(name.startswith("lake/.sbbf-") and name.endswith(google_publish.TEMPORARY_SUFFIX) for name in temporary)
    # Whether the upload was whole when its client was killed is left to chance.
    assert step == "Upload" or bool(temporary) == (step == "Compose")
    if google_bucket.get("lake/large.parquet") == large():
        sbbf_tool.add_filters("gs://" + url.removeprefix("gs://"), ["id"], in_place=True)
    else:
        sbbf_tool.resize_filters(url, num_bytes=16384, in_place=True, force=True)
    assert sbbf_tool.verify(url).is_sound
    assert google_bucket.names() == ["lake/large.parquet"]


@pytest.mark.nightly(minutes=1)
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_terminated_command_leaves_nothing(google_bucket, number, exit_code):
    url = google_bucket.put("large.parquet", large())
    assert killed_at(google_bucket, url, "Upload", number) == exit_code
    assert google_bucket.get("large.parquet") == large()
    assert google_bucket.names() == ["large.parquet"]


def test_a_server_without_generations_is_refused(google_bucket, monkeypatch):
    url = google_bucket.put("x.parquet", small())
    really = google_publish.GoogleStore._version
    monkeypatch.setattr(google_publish.GoogleStore, "_version", lambda self, meta: really(self, {**meta, "version": None}))
    with pytest.raises(RefusedError, match="the server states no generation"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)


def checksum(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@each("lengths", [(9,), (0, 3), (3, 0), (1, 255, 256), (1000, 1, 1)])
def test_checksums_of_concatenated_bytes(lengths):
    parts = [os.urandom(length) for length in lengths]
    assert combine((checksum(part), len(part)) for part in parts) == checksum(b"".join(parts))


def test_a_checksum_as_google_writes_it():
    assert checksum(b"123456789") == 0xE3069283  # RFC 3720, section B.4
    assert parse_checksum("4waSgw==") == 0xE3069283
    assert [parse_checksum(text) for text in (None, "", "AAAA", "not Base64", 7)] == [None] * 5
