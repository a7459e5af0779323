"""New versions of Azure block blobs: what is uploaded, what is carried, what is refused, and that
no reader sees a half."""

from __future__ import annotations

import base64
import os
import urllib.parse
import urllib.request

import pytest

import sbbf_tool
from objects.azure_server import blocks_of, operation
from objects.large_files import large, small
from sbbf_tool.errors import RefusedError
from sbbf_tool.storage.objects import azure_blocks
from support.tables import each

pytestmark = pytest.mark.environment(minutes=1)

MIB = 1 << 20


def test_a_blob_without_blocks_is_uploaded_as_blocks_once(container):
    url = container.put("large.parquet", large())
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert container.get("large.parquet")[: len(large())] == large()
    assert report.new_bytes < container.proxy.uploaded < report.new_bytes + 2000
    container.proxy.forget()
    report = sbbf_tool.resize_filters(url, max_bytes=16384, in_place=True, force=True)
    assert container.proxy.uploaded < MIB
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
        container.put_blocks("x.parquet", blocks_of(large()), **attributes)
        if blocks
        else container.put("x.parquet", small(), **attributes)
    )
    old, old_tags = (
        container.head("x.parquet"),
        container.send("GET", "x.parquet", {"comp": "tags"}).body,
    )
    assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
    new = container.head("x.parquet")
    prefixes = ("x-ms-meta-", "content-", "cache-", "x-ms-access-tier", "x-ms-tag")
    changing = ("content-length", "content-md5", "x-ms-access-tier-change-time")
    names = [name for name in old if name.startswith(prefixes) and name not in changing]
    assert {name: new.get(name) for name in names} == {name: old[name] for name in names}
    assert new["x-ms-access-tier"] == "Cool"
    assert b"cost centre" in old_tags
    assert container.send("GET", "x.parquet", {"comp": "tags"}).body == old_tags


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


def test_a_leased_blob_is_refused(container):
    url = container.put("x.parquet", small())
    container.send(
        "PUT",
        "x.parquet",
        {"comp": "lease"},
        {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "60"},
    )
    container.proxy.forget()
    with pytest.raises(RefusedError, match="the object is leased"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert container.proxy.uploaded == 0
    with pytest.raises(RefusedError, match="the object is leased"):
        sbbf_tool.add_filters(url, ["id"], in_place=True, dry_run=True)


def test_other_kinds_of_blobs_are_refused(container):
    container.send("PUT", "append.parquet", headers={"x-ms-blob-type": "AppendBlob"})
    container.send("PUT", "append.parquet", {"comp": "appendblock"}, body=small())
    with pytest.raises(RefusedError, match="the object is no block blob but AppendBlob"):
        sbbf_tool.add_filters(container.url("append.parquet"), ["id"], in_place=True)


def test_unreadable_tags_are_refused(container):
    url = container.put("x.parquet", small(), x_ms_tags="a=b")
    container.fail("GetBlobTags", 403)
    with pytest.raises(
        RefusedError, match="the object's tags cannot be read, so the new version would lack them"
    ):
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


def test_a_block_that_another_client_uploads_under_an_old_id_is_not_taken(container):
    """The ids, as those of other clients, are no text. An uncommitted block changes no ETag."""
    ids = [base64.b64encode(bytes([0xFF, 0xFE, number, 0x80])).decode() for number in range(3)]
    blocks = [(block_id, data) for block_id, (_, data) in zip(ids, blocks_of(large()), strict=True)]
    url = container.put_blocks("x.parquet", blocks)
    container.send("PUT", "x.parquet", {"comp": "block", "blockid": ids[0]}, body=b"theirs")
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert container.block_ids("x.parquet")[:3] == ids
    assert container.get("x.parquet")[: len(large())] == large()


def test_the_store_copies_more_bytes_than_are_uploaded(container, monkeypatch):
    """Azurite has no Put Block From URL, so a proxy carries it out: with the URL and the range that
    it gets."""
    monkeypatch.setattr(azure_blocks, "MOST_UPLOADED_AGAIN", MIB)
    monkeypatch.setattr(azure_blocks, "_COPY_BLOCK", 2 * MIB)
    url = container.put("x.parquet", large())

    def copy(exchange):
        if operation(exchange) == "PutBlockFromURL":
            headers = exchange.headers
            source = headers["x-ms-copy-source"].replace(
                container.proxy.url, container.proxy.upstream
            )
            request = urllib.request.Request(
                source, headers={"x-ms-range": headers["x-ms-source-range"]}
            )
            assert headers["x-ms-source-if-match"] == container.head("x.parquet")["etag"]
            query = dict(pair.split("=") for pair in exchange.query.split("&"))
            data = urllib.request.urlopen(request).read()
            container.send(
                "PUT",
                "x.parquet",
                {"comp": "block", "blockid": urllib.parse.unquote(query["blockid"])},
                body=data,
            )
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
    container.fail("PutBlockFromURL", 403)
    (warning,) = sbbf_tool.add_filters(url, ["id"], in_place=True).warnings
    assert (
        "the service did not copy old bytes itself, so they were uploaded (access denied" in warning
    )
    assert "sig=" not in warning
    assert container.get("x.parquet")[: len(large())] == large()


@each(
    "sizes, keep, size, can_copy, num_old, parts",
    [
        ([5, 5], 10, 12, True, 2, [(10, 12, False)]),
        ([5, 5], 9, 12, True, 1, [(5, 9, False), (9, 12, False)]),
        ([5, 5], 5, 5, True, 1, []),
        ([], 10, 12, True, 0, [(0, 10, False), (10, 12, False)]),
        (
            [],
            40 * MIB,
            41 * MIB,
            True,
            0,
            [(0, 32 * MIB, True), (32 * MIB, 40 * MIB, True), (40 * MIB, 41 * MIB, False)],
        ),
        (
            [],
            20 * MIB,
            21 * MIB,
            False,
            0,
            [(0, 16 * MIB, False), (16 * MIB, 20 * MIB, False), (20 * MIB, 21 * MIB, False)],
        ),
        (
            [1] * 50_000,
            50_000,
            50_001,
            True,
            49_998,
            [(49_998, 50_000, False), (50_000, 50_001, False)],
        ),
    ],
)
def test_planned_blocks(sizes, keep, size, can_copy, num_old, parts):
    plan = azure_blocks.plan_blocks(sizes, keep, size, can_copy)
    assert (plan.num_old, [tuple(part) for part in plan.parts]) == (num_old, parts)
    assert plan.num_old + len(plan.parts) <= azure_blocks.MOST_BLOCKS


def test_block_ids_have_one_length_and_are_new():
    old = [base64.b64encode(os.urandom(4)).decode() for _ in range(100)]
    ids = [azure_blocks.encode_id(text) for text in azure_blocks.new_ids(old, 100)]
    assert len({*old, *ids}) == 200
    assert {len(block_id) for block_id in ids} == {8}
    with pytest.raises(RefusedError, match="the object's block ids have 3 bytes"):
        azure_blocks.new_ids(["AAAA"], 1)
