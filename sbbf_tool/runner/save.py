"""Write a report of many rows to a file as the rows arrive: a Parquet file, or their JSON documents, one per line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from sbbf_tool.display import to_json
from sbbf_tool.errors import RefusedError, UsageError, WriteError
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.storage.whole import write_whole

Save = Callable[[FileRow | None, dict[str, Any]], None]
"""Function that takes a row and its document, or None and the document that summarizes all rows."""

_BATCH = 1000


@contextmanager
def save_rows(path: str, row: type[FileRow]) -> Iterator[Save]:
    """Yield the function that saves a row to `*.parquet` or `*.jsonl`; the file appears when the block ends without an error.

    Raises UsageError for any other suffix, RefusedError if the file exists, and WriteError.
    """
    writers = {".parquet": _rows, ".jsonl": _lines}
    writer = writers.get(os.path.splitext(path)[1].lower())
    if writer is None:
        raise UsageError("the name of a report must end with .parquet or .jsonl", file=path)
    if os.path.lexists(path):
        raise RefusedError("the report already exists", file=path, hint="name another, or remove it first")
    with write_whole(path, overwrite=False) as stream, writer(path, stream, row) as save:
        yield save


@contextmanager
def _lines(path: str, stream: BinaryIO, row: type[FileRow]) -> Iterator[Save]:
    def save(saved_row: FileRow | None, document: dict[str, Any]) -> None:
        stream.write(f"{to_json(document)}\n".encode())

    yield save


@contextmanager
def _rows(path: str, stream: BinaryIO, row: type[FileRow]) -> Iterator[Save]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sbbf_tool.reports.arrow import schema_of, to_batch

    waiting: list[FileRow] = []

    def save(saved_row: FileRow | None, document: dict[str, Any]) -> None:
        if saved_row is None:
            return
        waiting.append(saved_row)
        if len(waiting) >= _BATCH:
            writer.write_batch(to_batch(row, waiting))
            waiting.clear()

    try:
        with pq.ParquetWriter(stream, schema_of(row)) as writer:
            yield save
            writer.write_batch(to_batch(row, waiting))
    except pa.ArrowException as error:
        raise WriteError(f"the report cannot be written: {error}", file=path) from error
