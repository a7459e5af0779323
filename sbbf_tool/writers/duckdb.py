"""DuckDB: options of COPY for the whole file, because it takes neither columns nor NDV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.writers.writer import Request, Setting, Writer


def _write_duckdb(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    # Room for more values than were counted: a chunk whose dictionary exceeds the limit gets no filter.
    limit = 1 << max(setting.ndv for setting in settings).bit_length()
    yield "COPY my_table TO 'data.parquet' ("
    yield "    FORMAT parquet,"
    yield f"    BLOOM_FILTER_FALSE_POSITIVE_RATIO {settings[0].fpp:g},"
    yield f"    DICTIONARY_SIZE_LIMIT {limit}"
    yield ");"


DUCKDB = Writer(
    _write_duckdb,
    "--",
    (
        "DuckDB takes neither columns nor NDV: it writes filters for all dictionary-encoded chunks, and for no others",
        "a chunk is dictionary-encoded if it has at most DICTIONARY_SIZE_LIMIT distinct values; text also has a limit in bytes,"
        " STRING_DICTIONARY_PAGE_SIZE_LIMIT",
    ),
    takes_ndv=False,
    has_one_fpp=True,
)
