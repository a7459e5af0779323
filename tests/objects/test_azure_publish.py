"""New versions of Azure block blobs: what is uploaded, what is carried, what is refused, and that no reader sees a half."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest

import sbbf_tool
from sbbf_tool.errors import ChangedError, RefusedError, WriteError
from sbbf_tool.storage.objects import azure_blocks
from support.azure_server import operation
from support.large_files import ABSENT, PRESENT, large, small
from support.tables import each

pytestmark = pytest.mark.environment(minutes=1)

MIB = 1 << 20


def blocks_of(data: bytes, size: int = 2 * MIB, id_bytes: int = 8) -> list[tuple[str, bytes]]:
    ids = [base64.b64encode(number.to_bytes(id_bytes, "big")).decode() for number in range(-(-len(data) // size))]
    return [(block_id, data[number * size : (number + 1) * size]) for number, block_id in enumerate(ids)]


def fault_of(name: str, answer: str | int, times: int | None = None):
    """A fault of one operation, each time or the first few."""
    matches = []

    def fault(exchange):
        if operation(exchange) == name and (times is None or len(matches) < times):
            matches.append(exchange)
            return answer
        return None

    return fault


def test_only_the_tail_of_a_blob_of_blocks_is_uploaded(container):
    url = container.put_blocks("lake/large.parquet", blocks_of(large()), x_ms_meta_who="me", x_ms_blob_content_type="application/x-own")
    container.proxy.forget()
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert report.warnings == ()
    new, tail = container.get("lake/large.parquet"), report.new_bytes - report.old_bytes
    assert new[: len(large())] == large()
    assert report.new_bytes == len(new)
    assert container.proxy.uploaded < tail + 2000  # beyond the tail, the list of blocks
    assert [container.count(name) for name in ("GetBlockList", "PutBlock", "PutBlockList", "PutBlob")] == [1, 1, 1, 0]
    ids = container.block_ids("lake/large.parquet")
    assert ids[:-1] == [block_id for block_id, _ in blocks_of(large())]
    assert len(ids[-1]) == len(ids[0])
    head = container.head("lake/large.parquet")
    assert (head["x-ms-meta-who"], head["content-type"]) == ("me", "application/x-own")
    assert sbbf_tool.verify(url).is_sound
    assert sbbf_tool.probe(url, "id", [ABSENT]).is_absent
    assert not sbbf_tool.probe(url, "id", [PRESENT]).is_absent


def test_a_blob_without_blocks_is_uploaded_as_blocks_once(container):
    url = container.put("large.parquet", large())
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert container.get("large.parquet")[: len(large())] == large()
    assert report.new_bytes < container.proxy.uploaded < report.new_bytes + 2000
    container.proxy.forget()
    report = sbbf_tool.resize_filters(url, num_bytes=16384, in_place=True, force=True)
    assert container.proxy.uploaded < MIB
    assert sbbf_tool.verify(url).is_sound


def test_a_small_blob_is_put_in_one_request(container):
    url = container.put("small.parquet", small(), x_ms_meta_a="1")
    report = sbbf_tool.add_filters(url, ["id", "name"], in_place=True)
    assert report.warnings == ()
    assert [container.count(name) for name in ("PutBlob", "PutBlock", "PutBlockList", "GetBlockList")] == [1, 0, 0, 0]
    assert container.get("small.parquet")[: len(small())] == small()
    assert container.head("small.parquet")["x-ms-meta-a"] == "1"
    assert sbbf_tool.verify(url).is_sound


@each("blocks", [False, True])
def test_attributes_go_along(container, blocks):
    attributes = {
        "x_ms_meta_Who": "me",
        "x_ms_meta_other": "value with spaces",
        "x_ms_blob_content_type": "application/x-own",
        "x_ms_blob_content_encoding": "identity",
        "x_ms_blob_content_language": "la",
        "x_ms_blob_content_disposition": 'attachment; filename="x"',
        "x_ms_blob_cache_control": "no-cache",
        "x_ms_access_tier": "Cool",
        "x_ms_tags": "team=lake&cost%20centre=1%2F2",
    }
    url = (
        container.put_blocks("x.parquet", blocks_of(large()), **attributes) if blocks else container.put("x.parquet", small(), **attributes)
    )
    old, old_tags = container.head("x.parquet"), container.send("GET", "x.parquet", {"comp": "tags"}).body
    assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
    new = container.head("x.parquet")
    prefixes = ("x-ms-meta-", "content-", "cache-", "x-ms-access-tier", "x-ms-tag")
    changing = ("content-length", "content-md5", "x-ms-access-tier-change-time")
    names = [name for name in old if name.startswith(prefixes) and name not in changing]
    assert {name: new.get(name) for name in names} == {name: old[name] for name in names}
    assert new["x-ms-access-tier"] == "Cool"
    assert b"cost centre" in old_tags
    assert container.send("GET", "x.parquet", {"comp": "tags"}).body == old_tags


def test_an_inferred_tier_is_not_made_explicit(container):
    url = container.put("x.parquet", small())
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert "x-ms-access-tier" not in next(e for e in container.proxy.exchanges if e.method == "PUT").headers


def test_every_change_in_place(container):
    url = container.put_blocks("large.parquet", blocks_of(large()))
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    sbbf_tool.resize_filters(url, num_bytes=16384, in_place=True, force=True)
    assert {row.bitset_bytes for row in sbbf_tool.inspect(url).filters} == {16384}
    assert sbbf_tool.repair(url, drop=True, in_place=True).steps == ()
    container.proxy.forget()
    assert sbbf_tool.remove_filters(url, in_place=True).method == "truncated"
    assert container.get("large.parquet") == large()
    assert container.count("PutBlock") == 0  # the old blocks are still whole
    assert sorted(container.block_ids("large.parquet", "all")) == sorted(block_id for block_id, _ in blocks_of(large()))


def test_a_block_that_is_cut_is_uploaded_in_part(container):
    """The tail was committed in one block with old bytes."""
    url = container.put("small.parquet", large())
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    data = container.get("small.parquet")
    url = container.put_blocks("x.parquet", blocks_of(data, 3 * MIB))
    container.proxy.forget()
    sbbf_tool.remove_filters(url, in_place=True)
    assert container.get("x.parquet") == large()
    assert container.proxy.uploaded < 3 * MIB + 2000


@pytest.mark.parametrize("data", [small(), large()], ids=["small", "large"])
def test_a_new_blob_beside_the_old_one(container, data):
    url = container.put("old.parquet", data, x_ms_meta_a="1")
    sbbf_tool.add_filters(url, ["id"], output=container.url("copies/new.parquet"))
    assert container.get("old.parquet") == data
    assert container.get("copies/new.parquet")[: len(data)] == data
    assert container.head("copies/new.parquet")["x-ms-meta-a"] == "1"
    assert sbbf_tool.verify(container.url("copies/new.parquet")).is_sound
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.add_filters(url, ["id"], output=container.url("copies/new.parquet"))


@each("step", ["GetBlockList", "PutBlock", "PutBlockList", "PutBlob"])
def test_a_blob_that_changes_meanwhile_keeps_the_change(container, step):
    container.proxy.forget()
    theirs = small(600)
    url = container.put("x.parquet", small()) if step == "PutBlob" else container.put_blocks("x.parquet", blocks_of(large()))
    done: list[object] = []

    def rival(exchange):
        if operation(exchange) == step and not done:
            done.append(exchange)
            container.put("x.parquet", theirs)

    container.proxy.fault = rival
    with pytest.raises(ChangedError, match=f"{url}: the object changed while it was worked on; run the command again"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert done
    assert container.get("x.parquet") == theirs


@pytest.mark.parametrize("data", [small(), large()], ids=["small", "large"])
def test_a_blob_that_comes_to_exist_meanwhile_is_not_overwritten(container, data):
    url = container.put("old.parquet", data)
    done: list[object] = []

    def rival(exchange):
        if operation(exchange) in ("PutBlob", "PutBlockList") and not done:
            done.append(exchange)
            container.put("new.parquet", b"theirs")

    container.proxy.fault = rival
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.add_filters(url, ["id"], output=container.url("new.parquet"))
    assert container.get("new.parquet") == b"theirs"


@each("step", ["PutBlob", "PutBlockList"])
def test_a_write_with_a_lost_response_is_recognised(container, step):
    container.proxy.forget()
    url = container.put("x.parquet", small()) if step == "PutBlob" else container.put_blocks("x.parquet", blocks_of(large()))
    container.proxy.fault = fault_of(step, "lose answer", times=1)
    assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
    container.proxy.forget()
    assert sbbf_tool.verify(url).is_sound


@pytest.mark.heavy
@each("step", ["GetBlockList", "PutBlock", "PutBlockList", "PutBlob"])
@each("answer", [500, "cut"])
def test_a_step_that_fails_leaves_the_old_blob(container, step, answer):
    container.proxy.forget()
    data = small() if step == "PutBlob" else large()
    url = container.put("x.parquet", data) if step == "PutBlob" else container.put_blocks("x.parquet", blocks_of(data))
    container.proxy.fault = fault_of(step, answer)
    with pytest.raises(WriteError, match="the old object is untouched"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    container.proxy.fault = fault_of(step, answer, times=1)
    assert container.get("x.parquet") == data
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    container.proxy.forget()
    assert sbbf_tool.verify(url).is_sound
    assert container.block_ids("x.parquet", "uncommitted") == []  # what the failed run left is gone


def test_a_denied_write_is_refused(container):
    url = container.put("x.parquet", small())
    container.proxy.fault = fault_of("PutBlob", 403)
    with pytest.raises(RefusedError, match="the object cannot be written: access denied"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)


def test_a_leased_blob_is_refused(container):
    url = container.put("x.parquet", small())
    container.send("PUT", "x.parquet", {"comp": "lease"}, {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "60"})
    container.proxy.forget()
    with pytest.raises(RefusedError, match="the object is leased"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert container.proxy.uploaded == 0


def test_other_kinds_of_blobs_are_refused(container):
    container.send("PUT", "append.parquet", headers={"x-ms-blob-type": "AppendBlob"})
    container.send("PUT", "append.parquet", {"comp": "appendblock"}, body=small())
    with pytest.raises(RefusedError, match="the object is no block blob but AppendBlob"):
        sbbf_tool.add_filters(container.url("append.parquet"), ["id"], in_place=True)


def test_unreadable_tags_are_refused(container):
    url = container.put("x.parquet", small(), x_ms_tags="a=b")
    container.proxy.fault = fault_of("GetBlobTags", 403)
    with pytest.raises(RefusedError, match="the object's tags cannot be read, so the new version would lack them"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    (warning,) = sbbf_tool.add_filters(url, ["id"], output=container.url("y.parquet")).warnings
    assert "tags could not be read" in warning


def test_snapshots_stay_as_they_are(container):
    url = container.put_blocks("x.parquet", blocks_of(large()))
    snapshot = container.send("PUT", "x.parquet", {"comp": "snapshot"}).headers["x-ms-snapshot"]
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert container.send("GET", "x.parquet", {"snapshot": snapshot}).body == large()


def test_blocks_of_another_program_with_ids_of_another_length(container):
    url = container.put_blocks("x.parquet", blocks_of(large(), id_bytes=5))
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert {len(block_id) for block_id in container.block_ids("x.parquet")} == {8}


def test_the_store_copies_more_bytes_than_are_uploaded(container, monkeypatch):
    """Azurite has no Put Block From URL, so a proxy carries it out: with the URL and the range that it gets."""
    monkeypatch.setattr(azure_blocks, "MOST_UPLOADED_AGAIN", MIB)
    monkeypatch.setattr(azure_blocks, "_COPY_BLOCK", 2 * MIB)
    url = container.put("x.parquet", large())

    def copy(exchange):
        if operation(exchange) == "PutBlockFromURL":
            headers = exchange.headers
            source = headers["x-ms-copy-source"].replace(container.proxy.url, container.proxy.upstream)
            request = urllib.request.Request(source, headers={"x-ms-range": headers["x-ms-source-range"]})
            assert headers["x-ms-source-if-match"] == container.head("x.parquet")["etag"]
            query = dict(pair.split("=") for pair in exchange.query.split("&"))
            data = urllib.request.urlopen(request).read()
            container.send("PUT", "x.parquet", {"comp": "block", "blockid": urllib.parse.unquote(query["blockid"])}, body=data)
            return 201
        return None

    container.proxy.fault = copy
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert report.warnings == ()
    assert container.count("PutBlockFromURL") == 3
    assert container.proxy.uploaded < report.new_bytes - report.old_bytes + 3000
    container.proxy.forget()
    assert container.get("x.parquet")[: len(large())] == large()


def test_bytes_that_the_store_does_not_copy_are_uploaded(container, monkeypatch):
    monkeypatch.setattr(azure_blocks, "MOST_UPLOADED_AGAIN", MIB)
    url = container.put("x.parquet", large())
    container.proxy.fault = fault_of("PutBlockFromURL", 403)
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert "the service did not copy old bytes itself, so they were uploaded (access denied" in warning
    assert "sig=" not in warning
    assert container.get("x.parquet")[: len(large())] == large()


@pytest.mark.nightly(minutes=1)
@pytest.mark.parametrize("step", ["PutBlock", "PutBlockList"])
def test_a_kill_leaves_a_whole_blob_and_the_next_run_removes_the_rest(container, step):
    url = container.put_blocks("x.parquet", blocks_of(large()))
    running: list[subprocess.Popen[bytes]] = []

    def kill(exchange):
        if operation(exchange) == step and running and running[0].poll() is None:
            running[0].kill()
            return 500  # the request does not arrive
        return None

    container.proxy.fault = kill
    command = [sys.executable, "-m", "sbbf_tool", "add-filter", url, "-c", "id", "--in-place"]
    with container.proxy.draining():
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        assert running[0].wait(timeout=120) == -9
    container.proxy.forget()
    assert container.get("x.parquet") == large()
    assert len(container.block_ids("x.parquet", "uncommitted")) == (step == "PutBlockList")
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert container.block_ids("x.parquet", "uncommitted") == []
    assert sbbf_tool.verify(url).is_sound


@each(
    "sizes, keep, size, can_copy, num_old, parts",
    [
        ([5, 5], 10, 12, True, 2, [(10, 12, False)]),
        ([5, 5], 9, 12, True, 1, [(5, 9, False), (9, 12, False)]),
        ([5, 5], 5, 5, True, 1, []),
        ([], 10, 12, True, 0, [(0, 10, False), (10, 12, False)]),
        ([], 40 * MIB, 41 * MIB, True, 0, [(0, 32 * MIB, True), (32 * MIB, 40 * MIB, True), (40 * MIB, 41 * MIB, False)]),
        ([], 20 * MIB, 21 * MIB, False, 0, [(0, 16 * MIB, False), (16 * MIB, 20 * MIB, False), (20 * MIB, 21 * MIB, False)]),
        ([1] * 50_000, 50_000, 50_001, True, 49_998, [(49_998, 50_000, False), (50_000, 50_001, False)]),
        (
            [1] * 49_999,
            49_999,
            49_999 + 20 * MIB,
            True,
            49_997,
            [(49_997, 49_999, False), (49_999, 49_999 + 16 * MIB, False), (49_999 + 16 * MIB, 49_999 + 20 * MIB, False)],
        ),
    ],
)
def test_planned_blocks(sizes, keep, size, can_copy, num_old, parts):
    plan = azure_blocks.plan_blocks(sizes, keep, size, can_copy)
    assert (plan.num_old, [tuple(part) for part in plan.parts]) == (num_old, parts)
    assert plan.num_old + len(plan.parts) <= azure_blocks.MOST_BLOCKS


def test_block_ids_have_one_length_and_are_new():
    old = [base64.b64encode(os.urandom(4)).decode() for _ in range(100)]
    ids = azure_blocks.new_ids(old, 100)
    assert len({*old, *ids}) == 200
    assert {len(block_id) for block_id in ids} == {8}
    with pytest.raises(RefusedError, match="the object's block ids have 3 bytes"):
        azure_blocks.new_ids(["AAAA"], 1)
