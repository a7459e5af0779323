"""What a URL names, which keys a glob means, and of which parts a new object is made; all without a
server."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.storage import places
from sbbf_tool.storage.objects.conditional import plan_parts
from sbbf_tool.storage.objects.listing import _build_matcher
from sbbf_tool.storage.objects.store import parse_location
from support.tables import each

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40


@each(
    "url, service, root, key",
    [
        ("s3://bucket/a/b.parquet", "s3", "s3://bucket", "a/b.parquet"),
        ("s3a://bucket/a b%20c#d?e.parquet", "s3", "s3://bucket", "a b%20c#d?e.parquet"),
        ("S3N://bucket", "s3", "s3://bucket", ""),
        ("gs://bucket/x", "gs", "gs://bucket", "x"),
        ("gcs://bucket/x", "gs", "gs://bucket", "x"),
        ("az://container/x", "azure", "az://container", "x"),
        (
            "abfss://container@account.dfs.core.windows.net/x",
            "azure",
            "abfss://container@account.dfs.core.windows.net",
            "x",
        ),
        ("https://host:8443/a/b.parquet", "http", "https://host:8443", "a/b.parquet"),
        ("http://[::1]:80/x", "http", "http://[::1]:80", "x"),
        ("hdfs://namenode:8020/user/x", "hdfs", "hdfs://namenode:8020", "user/x"),
        ("hdfs:///user/x", "hdfs", "hdfs://", "user/x"),
        (
            "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/point/a/b.parquet",
            "s3",
            "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint:point",
            "a/b.parquet",
        ),
        (
            "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint:point/a/b.parquet",
            "s3",
            "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint:point",
            "a/b.parquet",
        ),
    ],
)
def test_what_a_url_names(url, service, root, key):
    location = parse_location(url)
    assert (location.service, location.root, location.key) == (service, root, key)
    assert location.secret == ""


@each("url", ["ftp://host/x", "s3://", "https:///x", "http://host:port/x", "s4://bucket/x"])
def test_names_that_match_nothing(url):
    with pytest.raises(UsageError):
        parse_location(url)


MATCHES = [
    ("a/*.parquet", ["a/x.parquet"], ["a/b/x.parquet", "b/x.parquet", "a/x.parquet2"]),
    (
        "a/**/x.parquet",
        ["a/x.parquet", "a/b/x.parquet", "a/b/c/x.parquet"],
        ["x.parquet", "a/bx.parquet"],
    ),
    ("a/**", ["a/b", "a/b/c.parquet"], ["b/a"]),
    ("day=*", ["day=1/x.parquet", "day=1/h=2/x.parquet"], ["x/day=1", "day/x.parquet"]),
    (
        "[ab]?[!c].parquet",
        ["axd.parquet", "b-e.parquet"],
        ["axc.parquet", "cxd.parquet", "a/d.parquet"],
    ),
    ("a.b+c(", ["a.b+c("], ["aXb+c(", "a.bbc("]),
    ("[", ["["], ["a"]),
]


@each("pattern, yes, no", MATCHES)
def test_what_a_glob_means(pattern, yes, no):
    matches = _build_matcher(pattern)
    assert [key for key in yes if matches(key) is None] == []
    assert [key for key in no if matches(key) is not None] == []


@given(keep=st.integers(0, 5 * TIB), tail=st.integers(0, 8 * GIB), can_copy=st.booleans())
@example(keep=5 * TIB, tail=8 * GIB, can_copy=True)
@example(keep=5 * TIB, tail=8 * GIB, can_copy=False)
@example(keep=9 * GIB, tail=1, can_copy=True)
@example(keep=0, tail=9 * GIB, can_copy=False)
@example(keep=5 * MIB - 1, tail=0, can_copy=True)
@example(keep=5 * MIB - 1, tail=1, can_copy=False)
def test_parts_are_as_the_store_takes_them(keep, tail, can_copy):
    """S3's limits (Amazon S3 multipart upload limits): parts of 5 MiB to 5 GiB, of which the last
    may be smaller; at most 10,000."""
    size = keep + tail
    parts = plan_parts(keep, size, can_copy)
    if parts is None:
        assert size < 5 * MIB
        return
    assert parts[0].start == 0
    assert parts[-1].end == size
    assert len(parts) <= 10_000
    for part, following in pairwise(parts):
        assert part.end == following.start
        assert part.end - part.start >= 5 * MIB
    for part in parts:
        assert 0 < part.end - part.start <= 5 * GIB
        assert part.is_copy == (can_copy and keep >= 5 * MIB and part.end <= keep)


def test_local_files_load_nothing_that_speaks_to_services(fixtures):
    program = (
        "import sys; from sbbf_tool.cli import run; "
        f"assert run(['inspect', {str(fixtures / 'events.parquet')!r}]) == 0; "
        "assert not {'botocore', 'obstore', 'sbbf_tool.storage.objects'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_an_error_names_the_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "sbbf_tool.storage.objects.cloud", raising=False)
    with pytest.raises(UsageError, match=r"needs the package obstore; pip install '\.\[gcs\]'"):
        places.open_source("gs://some-bucket/x.parquet")


def test_an_http_server_accepts_no_writes(fixtures):
    import sbbf_tool

    with pytest.raises(RefusedError, match=r"sbbf cannot write to .*; write to a local file"):
        sbbf_tool.add_filters(
            fixtures / "events.parquet", ["user_id"], output="https://host/new.parquet"
        )
