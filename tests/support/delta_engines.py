"""Query engines on Delta tables: chdb in this process, DuckDB with its extension and Sail in environments of their own."""

from __future__ import annotations

import os
import subprocess
from contextlib import chdir
from pathlib import Path

import pyarrow.parquet as pq

from support.ducklakes import DuckDB
from support.environments import install_python

SAIL = "pysail==0.7.2", "pyspark-client==4.1.3"


class DeltaDuckDB(DuckDB):
    """DuckDB with its extension for Delta."""

    def __init__(self) -> None:
        super().__init__("1.5.5", "duckdb-delta", ("delta",))


class Sail(DuckDB):
    """Sail, which writes deletion vectors, in-commit timestamps and column mapping."""

    def __init__(self) -> None:
        """Raise NotInstallableError if it cannot be installed."""
        python = install_python("pysail-0.7.2", *SAIL)
        program = Path(__file__).parent / "sail_program.py"
        self._process = subprocess.Popen(
            [str(python), str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )


def read_by_chdb(path: Path | str, columns: str = "*", where: str = "true") -> list[str]:
    """Return rows as text, sorted. A session of its own sees the newest version; ClickHouse reads only below its working folder."""
    from chdb.session import Session

    with chdir(os.path.dirname(path)):
        session = Session()
        try:
            answer = session.query(f"select {columns} from deltaLakeLocal('{path}') where {where}", "JSONEachRow")
            return sorted(answer.data().splitlines())
        finally:
            session.close()


def zero_pages(path: str, column: str) -> None:
    """Overwrite the pages of a column with zeros, in all row groups; the footer and the filters stay."""
    metadata = pq.read_metadata(path)
    with open(path, "r+b") as stream:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for index in range(group.num_columns):
                chunk = group.column(index)
                if chunk.path_in_schema == column:
                    stream.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
                    stream.write(bytes(chunk.total_compressed_size))
