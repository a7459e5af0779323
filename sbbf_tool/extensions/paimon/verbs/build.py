"""Build a file index for a data file from its values.

For one column, the container has the same bytes as Paimon's container, given the same `items` and `fpp`. Without `items` a filter is sized
for the distinct values in the file, not for the million that Paimon assumes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from sbbf_tool.errors import RefusedError, UsageError, WriteError
from sbbf_tool.extensions.paimon.build_index import build
from sbbf_tool.extensions.paimon.files import FileIO, list_names
from sbbf_tool.extensions.paimon.index_options import IndexRequest, index_requests, parse_bloom_columns
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX
from sbbf_tool.extensions.paimon.reports import BuildReport
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable, find_table_around, request_in_file
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.folders import LocalFolders
from sbbf_tool.storage.system_calls import FORBIDDEN, reason_of


def build_paimon_index(
    data_file: str | os.PathLike[str],
    columns: str | IndexRequest | Iterable[str | IndexRequest] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: FileIO | None = None,
) -> BuildReport:
    """Write a container for these columns of a Parquet, ORC or Avro data file to `output`, by default `<data file>.index`.

    Columns are given by their names in the data file (see `requests` for the syntax). Without columns, the columns in the options of the
    file's table are indexed, with the sizes in the options. Raises UsageError for a column that does not exist or cannot be indexed,
    UnreadableError for a file that cannot be read, RefusedError if `output` exists, writing is not permitted, or the header of a Parquet
    page states more than `max_page_bytes` uncompressed bytes, and WriteError if writing fails.
    """
    path = os.fsdecode(data_file)
    if output is not None and not os.fsdecode(output):
        raise UsageError("the name of the output file is empty")
    target = path + INDEX_SUFFIX if output is None else os.fsdecode(output)
    files = files or LocalFolders()
    if not dry_run and os.path.basename(target) in list_names(files, os.path.dirname(target) or "."):
        raise _exists(target)
    table_and_file = find_table_around(files, path)
    requests = index_requests(columns) or _default_requests(table_and_file, path)
    index = build(files, path, requests, table_and_file, max_page_bytes)
    if not dry_run:
        _write(files, target, index.container)
    table = table_and_file[0].path if table_and_file else None
    return BuildReport(path, target, dry_run, len(index.container), index.columns, table)


def _default_requests(table_and_file: tuple[PaimonTable, IndexedFile] | None, path: str) -> list[IndexRequest]:
    if table_and_file is None:
        raise UsageError("there is no column to index", file=path, hint="name one; the file belongs to no table")
    requests_in_file = [
        request_in_file(*table_and_file, request) for request in parse_bloom_columns(table_and_file[0].schema.options).values()
    ]
    if present := [request for request in requests_in_file if request is not None]:
        return present
    raise UsageError("there is no column to index", file=path, hint="name one; the options of the table name no column of this file")


def _write(files: FileIO, target: str, data: bytes) -> None:
    try:
        files.create(target, data)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise RefusedError("the folder of the output file does not exist", file=target, hint="create it first") from None
        if error.errno in FORBIDDEN:
            raise RefusedError(f"the index cannot be created: {reason_of(error)}", file=target, hint=ELSEWHERE) from error
        raise WriteError(reason_of(error), file=target, hint="nothing was written") from error


def _exists(target: str) -> RefusedError:
    return RefusedError("the output file exists", file=target, hint="name another, or remove it first")
