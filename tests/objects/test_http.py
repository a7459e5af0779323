"""HTTP servers: read by ranges, pinned to ETag or Last-Modified; what a server cannot do is an error and never misread."""

from __future__ import annotations

import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.places import open_source
from support.large_files import large, small
from support.tables import each


def test_a_file_is_read_in_few_requests(site):
    url = site.put("a b/events.parquet", small()).replace(" ", "%20")
    assert sbbf_tool.inspect(url).row_groups == 3
    assert [command for command, _, _ in site.requests] == ["GET"]
    assert site.requests[0][2]["range"] == "bytes=-65536"


def test_reads_return_the_stored_bytes(site):
    url = site.put("x", large())
    with open_source(url) as source:
        for offset, length in ((0, 4), (1_000_000, 3_000_000), (len(large()) - 8, 8)):
            assert source.read(offset, length) == large()[offset : offset + length]
        assert len(site.requests) > 1
        assert all("if-match" in headers for _, _, headers in site.requests[1:])
    assert sbbf_tool.verify(url).is_sound


def test_a_signed_url_is_requested_whole_and_shown_without_its_signature(site, capsys):
    url = site.put("events.parquet", small()) + "?X-Amz-Signature=hush&x=a%2Fb"
    assert run(["inspect", url]) == 0
    assert {path for _, path, _ in site.requests} == {"/events.parquet?X-Amz-Signature=hush&x=a%2Fb"}
    site.status = 403
    assert run(["inspect", url]) == 3
    site.status = None
    assert run(["inspect", url.replace("events", "none")]) == 3
    assert run(["add-filter", url, "-c", "id", "--in-place"]) == 4
    assert run(["add-filter", url, "-c", "id"]) == 2
    printed = "".join(capsys.readouterr())
    assert "hush" not in printed
    assert f"{site.url}/events.parquet?...: access denied; a signed URL may have expired" in printed


@pytest.mark.parametrize("answer", ["etag", "last-modified"])
def test_a_changed_file_is_an_error_and_no_mixture(site, answer):
    if answer == "last-modified":
        site.tags, site.modified = None, 1_700_000_000
    url = site.put("x", large())
    with open_source(url) as source:
        source.read(0, 100)
        site.put("x", large()[::-1])
        site.modified = None if site.modified is None else site.modified + 60
        with pytest.raises(UnreadableError, match="the object changed while it was worked on"):
            source.read(1_000_000, 100)


def test_a_weak_etag_is_compared_and_not_required(site):
    """It never matches a condition (RFC 9110, section 13.1.1)."""
    site.tags = 'W/"{}"'
    url = site.put("x", large())
    with open_source(url) as source:
        assert source.read(0, 4) == b"PAR1"
        assert not any("if-match" in headers for _, _, headers in site.requests)
        site.put("x", large()[::-1])
        with pytest.raises(UnreadableError, match="the object changed while it was worked on"):
            source.read(1_000_000, 100)


def test_a_server_that_does_not_distinguish_versions_is_not_read(site):
    site.tags = None
    with pytest.raises(UnreadableError, match="neither ETag nor Last-Modified"):
        open_source(site.put("x", small()))


def test_a_server_without_ranges_is_not_misread(site):
    site.knows_ranges = False
    with pytest.raises(UnreadableError, match="does not support range requests: it sent the whole file; download the file"):
        open_source(site.put("x", large()))


@each("status", [500, 503, 418])
def test_an_error_of_the_server_is_reported(site, status):
    site.status = status
    site.requests.clear()
    with pytest.raises(UnreadableError) as caught:
        open_source(site.put("x", small()))
    assert caught.value.message.startswith(f"the server answered {status}")
    assert len(site.requests) == (3 if status >= 500 else 1)


def test_an_empty_file_and_one_that_is_not_there(site, capsys):
    assert run(["inspect", site.put("empty.parquet", b"")]) == 3
    assert run(["inspect", f"{site.url}/none.parquet"]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"sbbf: {site.url}/empty.parquet: ")
    assert lines[1] == f"sbbf: {site.url}/none.parquet: no such object"
