"""Objects of 0 bytes that consoles, Hadoop and Azure write at the key of a folder: with keys below
them they are folders, without any they are broken files."""

from __future__ import annotations

import pytest

from objects.large_files import small
from sbbf_tool.storage.objects.listing import entries, find_single_object
from support.calls import call


@pytest.fixture(
    params=[
        pytest.param("container", id="azure", marks=pytest.mark.environment(minutes=1)),
        pytest.param("google_bucket", id="google", marks=pytest.mark.environment(minutes=1)),
        pytest.param("moto_bucket", id="s3"),
    ]
)
def store(request):
    return request.getfixturevalue(request.param)


def files_in(url: str) -> list[str]:
    return [entry.path.rpartition("/")[2] for entry in entries(url)]


def test_a_mark_of_a_folder_is_no_file(store):
    data = small()
    for key in ("lake", "lake/day=1", "lake/ev.parquet"):
        store.put(key, b"")
    store.put("lake/day=1/part-0.parquet", data)
    store.put("lake/ev.parquet-1/part-1.parquet", data)
    store.put("lake/ev.parquet/part-2.parquet", data)
    parts = ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    assert files_in(store.url("lake")) == files_in(store.url("lake/")) == parts
    assert files_in(store.url("lake/ev*")) == ["part-1.parquet", "part-2.parquet"]
    assert files_in(store.url("lake/ev.parquet")) == ["part-2.parquet"]
    assert find_single_object(store.url("lake")) is None
    assert find_single_object(store.url("lake/ev.parquet")) is None


def test_an_empty_object_without_keys_below_is_a_broken_file(store, capsys):
    store.put("lake/ev.parquet", b"")
    store.put("lake/ev.parquet-1/part.parquet", small())
    assert files_in(store.url("lake")) == ["ev.parquet", "part.parquet"]
    assert find_single_object(store.url("lake/ev.parquet")) == store.url("lake/ev.parquet")
    code, _, err = call(capsys, "inspect", store.url("lake"))
    assert code == 3
    assert "ev.parquet: " in err
