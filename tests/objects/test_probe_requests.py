"""What a probe of many keys requests of an object: the footer, the filters of the row groups that
statistics leave, and their chunks."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sbbf_tool
from support.buckets import Bucket

ROWS, ROW_GROUPS = 100_000, 6
LEFT = (1, 4)
"""The row groups whose min and max enclose keys."""


def write(*, dictionary: bool) -> bytes:
    """Each row group has its own range of ids, of which every second number is stored; the column
    after them takes more bytes."""
    rng, buffer = np.random.default_rng(1), io.BytesIO()
    repeats = 2 if dictionary else 1
    ids = np.concatenate(
        [rng.permutation(ROWS) // repeats * 2 + number * 10 * ROWS for number in range(ROW_GROUPS)]
    )
    table = pa.table({"id": ids, "ballast": rng.integers(0, 1 << 62, len(ids))})
    options = None if dictionary else {"id": {"ndv": ROWS, "fpp": 1e-6}}
    names, sizes = (
        ["id"] if dictionary else False,
        {"row_group_size": ROWS, "dictionary_pagesize_limit": 1 << 20},
    )
    pq.write_table(
        table,
        buffer,
        use_dictionary=names,
        compression="none",
        bloom_filter_options=options,
        **sizes,
    )
    return buffer.getvalue()


def keys() -> list[int]:
    return [number * 10 * ROWS + 2 * at for number in LEFT for at in range(1500)]


def ranges(bucket: Bucket) -> list[tuple[int, int]]:
    """Return the start and end of what was requested since the last call, but for the end of the
    object, which comes first."""
    headers = [
        exchange.headers.get("Range") or exchange.headers["range"]
        for exchange in bucket.proxy.exchanges
    ]
    bucket.proxy.forget()
    assert headers[0].startswith("bytes=-")
    spans = (header.removeprefix("bytes=").split("-") for header in headers[1:])
    return sorted((int(first), int(last) + 1) for first, last in spans)


def test_many_keys_take_the_filters_of_their_row_groups_and_a_confirmation_their_chunks(
    moto_bucket: Bucket,
) -> None:
    data = write(dictionary=False)
    url = moto_bucket.put("a.parquet", data)
    metas = [pq.read_metadata(io.BytesIO(data)).row_group(number).column(0) for number in LEFT]
    filters = [
        (meta.bloom_filter_offset, meta.bloom_filter_offset + meta.bloom_filter_length)
        for meta in metas
    ]
    chunks = [
        (meta.data_page_offset, meta.data_page_offset + meta.total_compressed_size)
        for meta in metas
    ]
    for confirm in (False, True):
        absent = sbbf_tool.probe(url, "id", [number + 1 for number in keys()], confirm=confirm)
        assert (ranges(moto_bucket), len(absent.hits)) == (filters, 0)
    assert len(sbbf_tool.probe(url, "id", keys()).hits) == len(keys())
    assert ranges(moto_bucket) == filters
    report = sbbf_tool.probe(url, "id", keys(), confirm=True)
    assert ranges(moto_bucket) == chunks + filters
    assert [hit.answer for hit in report.hits] == ["present"] * len(keys())
    assert report.requests == 5


def test_a_dictionary_without_the_keys_is_read_alone(moto_bucket: Bucket) -> None:
    data = write(dictionary=True)
    url = moto_bucket.put("a.parquet", data)
    metas = [pq.read_metadata(io.BytesIO(data)).row_group(number).column(0) for number in LEFT]
    dictionaries = [(meta.dictionary_page_offset, meta.data_page_offset) for meta in metas]
    pages = [
        (meta.data_page_offset, meta.dictionary_page_offset + meta.total_compressed_size)
        for meta in metas
    ]
    report = sbbf_tool.probe(url, "id", [number + 1 for number in keys()], confirm=True)
    assert (ranges(moto_bucket), report.hits) == (dictionaries, ())
    report = sbbf_tool.probe(url, "id", keys(), confirm=True)
    assert ranges(moto_bucket) == sorted(dictionaries + pages)
    assert {hit.count for hit in report.hits} == {2}
