"""The code for HDFS over pyarrow's local file system: the same class, without a cluster, which no package index has to offer."""

from __future__ import annotations

import os

import pytest
from pyarrow import fs

from sbbf_tool.errors import MissingError, RefusedError, UnreadableError
from sbbf_tool.storage.local import LocalSource
from sbbf_tool.storage.objects.arrow import ArrowStore
from sbbf_tool.storage.objects.location import parse_location
from sbbf_tool.storage.objects.store import OtherVersionError
from support.large_files import large, small


@pytest.fixture
def store(tmp_path) -> ArrowStore:
    return ArrowStore(fs.LocalFileSystem(), f"{tmp_path}/")


def test_reading(store, tmp_path):
    (tmp_path / "x").write_bytes(large())
    tail, version = store.tail("x", 1000)
    assert tail == large()[-1000:]
    assert version.size == len(large())
    assert store.get("x", 5, 100, version) == large()[5:105]
    (tmp_path / "x").write_bytes(small())
    with pytest.raises(OtherVersionError):
        store.get("x", 5, 100, version)
    assert store.version("none") is None
    with pytest.raises(MissingError):
        store.tail("none", 10)


def test_listing(store, tmp_path):
    for name in ("a/1.parquet", "a/b/2.parquet", "ab.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list(store.keys("")) == ["a/1.parquet", "a/b/2.parquet", "ab.parquet"]
    assert list(store.keys("a")) == ["a/1.parquet", "a/b/2.parquet", "ab.parquet"]
    assert list(store.keys("a/", 1)) == ["a/1.parquet"]
    assert list(store.keys("none/")) == []


def test_every_write_is_refused(store, tmp_path):
    target = parse_location("hdfs://cluster/new")
    for in_place in (False, True):
        with pytest.raises(RefusedError, match="sbbf cannot write to HDFS"):
            store.ensure_writable(target, in_place=in_place)
    (tmp_path / "old").write_bytes(small())
    with LocalSource(tmp_path / "old") as source, pytest.raises(RefusedError, match="sbbf cannot write to"):
        store.replace(source, target, source.size, (b"x",))
    assert os.listdir(tmp_path) == ["old"]


def test_without_hadoop_the_error_names_the_settings():
    from sbbf_tool.storage.places import open_source

    if os.environ.get("HADOOP_HOME") or os.environ.get("ARROW_LIBHDFS_DIR"):
        pytest.skip("there is a Hadoop here")
    with pytest.raises(UnreadableError, match=r"HDFS cannot be reached .*pyarrow needs a Hadoop installation"):
        open_source("hdfs://127.0.0.1:1/x.parquet")
