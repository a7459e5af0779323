"""A report of many rows as a Parquet file, written while they come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.runner.rows import schema_of, to_batch
from sbbf_tool.storage.whole import write_whole

_BATCH = 1000


@contextmanager
def saved(path: str, row: type[FileRow]) -> Iterator[Callable[[FileRow], None]]:
    """To be called with each row; the file is there when the block ends well. Raises RefusedError where it exists, WriteError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if os.path.lexists(path):
        raise RefusedError("the report exists already", file=path, hint="name another, or remove it first")
    waiting: list[FileRow] = []
    try:
        with write_whole(path, overwrite=False) as stream, pq.ParquetWriter(stream, schema_of(row)) as writer:

            def add(one: FileRow) -> None:
                waiting.append(one)
                if len(waiting) >= _BATCH:
                    writer.write_batch(to_batch(row, waiting))
                    waiting.clear()

            yield add
            writer.write_batch(to_batch(row, waiting))
    except pa.ArrowException as error:
        raise WriteError(f"the report cannot be written: {error}", file=path) from error
