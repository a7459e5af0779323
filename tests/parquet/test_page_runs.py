"""Pages that are read in one call of the extension: the same values, rows and errors as pages that
are read one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet.made_pages import write_files
from sbbf_tool import add_filters, verify
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import page_runs
from sbbf_tool.parquet.checked_streams import HeaderWalk
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.pages import ChunkPages, Read, page_range, read_pages
from sbbf_tool.parquet.plain_page import PlainPage
from sbbf_tool.parquet.plain_pages import NotPlainError, PlainChunk
from support.damage import damage
from support.tables import each

pytestmark = pytest.mark.skipif(not page_runs.is_built, reason="the extension _pages was not built")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of each form, with a dictionary, without one, and with one that is given up."""
    return write_files(tmp_path_factory.mktemp("made"))


# --- What is read ---


def content_of(read: Read, column: Column, meta: Any) -> Iterator[tuple[str, Any]]:
    """Yield what the pages of a chunk have: the values with their rows, and the indices."""
    for page in PlainChunk(ChunkPages(meta, read, open), column).pages():
        if isinstance(page, PlainPage):
            rows = page.rows().tolist() if page.rows else None
            yield f"values of {page.page_type}", (bytes(page.plain), page.hashes.tolist(), rows)
        else:
            rows_of, indices = page()
            yield "indices", (indices.tolist(), rows_of().tolist())


def outcome(contents: Iterator[tuple[str, Any]]) -> Any:
    """Return all that was read, however many pages were read at once, or why it ends."""
    joined: dict[str, list[Any]] = {}
    try:
        for kind, parts in contents:
            before = joined.setdefault(kind, [type(part)() for part in parts])
            for at, part in enumerate(parts):
                if part is not None:
                    before[at] += part
    except NotPlainError:
        return "must be decoded"
    except SbbfError as error:
        return str(error)
    return joined


def walk(read: Read, meta: Any, size: int) -> Iterator[tuple[str, Any]]:
    """Check the sizes of all pages in two steps, as a stream does, and yield where they end."""
    headers = HeaderWalk(meta, size, lambda stored, plain: None)
    for end in ((headers.first + headers.last) // 2, headers.last):
        headers.check_up_to(end, read)
        yield "checked", ([headers._position, headers._remaining_values],)


def both_ways(monkeypatch: pytest.MonkeyPatch, contents: Callable[[], Any]) -> list[Any]:
    """Read with the extension and without."""
    answers = []
    for is_built in (True, False):
        monkeypatch.setattr(page_runs, "is_built", is_built)
        answers.append(outcome(contents()))
    return answers


def ensure_equal(path: Path, monkeypatch: pytest.MonkeyPatch, chance: random.Random | None) -> int:
    """Compare what is read of each chunk of a file, whose pages are damaged if there is a `chance`;
    return the number of chunks without an error."""
    num_read = 0
    try:
        file = ParquetFile.open(path)
    except SbbfError:
        return 0
    with file:
        data = file.source.read(0, file.source.size)
        for row_group in range(file.footer.num_row_groups):
            for column in file.footer.columns:
                meta = file.footer.chunk(row_group, column.index)
                if meta is None or meta.num_values is None:
                    continue
                start, end = page_range(meta)
                pages = data[start:end]
                if chance is not None:
                    pages = damage(pages, chance)[: end - start].ljust(end - start, b"\0")
                damaged = data[:start] + pages + data[end:]

                def read(offset: int, length: int, damaged: bytes = damaged) -> bytes:
                    return damaged[max(0, offset) : max(0, offset) + max(0, length)]

                for contents in (
                    partial(content_of, read, column, meta),
                    partial(walk, read, meta, len(data)),
                ):
                    quick, slow = both_ways(monkeypatch, contents)
                    assert quick == slow, (path.name, column.name, row_group)
                    num_read += isinstance(quick, dict)
    return num_read


# --- Tests ---


def test_files_of_every_form(made, monkeypatch):
    for path in made:
        assert ensure_equal(path, monkeypatch, None) > 20


def test_fixtures(fixtures, monkeypatch):
    paths = [path for path in fixtures.rglob("*.parquet") if path.is_file()]
    assert sum(ensure_equal(path, monkeypatch, None) > 0 for path in paths) > 20


def test_conformance_files(conformance, monkeypatch):
    paths = [path for path in conformance.rglob("*.parquet") if path.is_file()]
    assert sum(ensure_equal(path, monkeypatch, None) > 0 for path in paths) > 100


@each("rounds", [1], heavy=[40])
def test_damaged_pages(made, monkeypatch, rounds):
    chance = random.Random(rounds)
    num_read = 0
    for _ in range(rounds):
        for path in made:
            num_read += ensure_equal(path, monkeypatch, chance)
    assert num_read > 0


def test_many_pages_are_one_run(tmp_path):
    """A chunk of thousands of pages is read in few calls, whatever form its values have."""
    table = pa.table({"n": np.arange(5000) % 50})
    for name, options in (("plain", {"use_dictionary": False}), ("dictionary", {})):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path, data_page_size=1, write_batch_size=1, **options)
        with ParquetFile.open(path) as file:
            meta = file.footer.chunk(0, 0)
            num_pages = sum(1 for _ in read_pages(file.source.read_up_to, meta))
            pages = ChunkPages(meta, file.source.read_up_to, file.source.open_arrow)
            chunk = PlainChunk(pages, file.footer.columns[0])
            assert num_pages >= 5000
            assert sum(1 for _ in chunk.pages()) < 25


def test_a_wrong_checksum_among_many_pages_is_reported(tmp_path):
    """The pages before it are read at once; it is reported as if each was read alone."""
    for options in ({"use_dictionary": False}, {}):
        path = tmp_path / "f.parquet"
        table = pa.table({"n": np.arange(500) % 50})
        pq.write_table(
            table, path, data_page_size=1, write_batch_size=1, write_page_checksum=True, **options
        )
        with ParquetFile.open(path) as file:
            meta = file.footer.chunk(0, 0)
            page = list(read_pages(file.source.read_up_to, meta))[200]
            data = bytearray(file.source.read(0, file.source.size))
        data[page.end - 1] ^= 0xFF
        path.write_bytes(data)
        with ParquetFile.open(path) as file:
            answer = outcome(content_of(file.source.read_up_to, file.footer.columns[0], meta))
        assert answer == f"page at byte {page.offset:,}: the checksum does not match"


def test_the_limit_of_a_page_counts_for_each(tmp_path):
    """A run is larger than the limit, but no page is."""
    path = tmp_path / "f.parquet"
    table = pa.table({"n": np.arange(5000)})
    pq.write_table(table, path, data_page_size=1, write_batch_size=1, use_dictionary=False)
    report = add_filters(path, ["n"], in_place=True, max_page_bytes=100)
    assert len(report.filters) == 1
    assert not verify(path, max_page_bytes=100).findings
