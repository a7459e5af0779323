"""Verify that an index has no false negatives: query its filters for every value of the data file."""

from __future__ import annotations

import os

from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.extensions.paimon.files import FileIO, list_names, parse_file
from sbbf_tool.extensions.paimon.index_container import parse_container
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX, data_file_of
from sbbf_tool.extensions.paimon.membership import verify_container, verify_index
from sbbf_tool.extensions.paimon.reports import PaimonVerifyReport, VerifiedFile
from sbbf_tool.extensions.paimon.table import find_index, find_table_around, open_table
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.running.table import read_metadata
from sbbf_tool.storage.folders import LocalFolders


def verify_paimon(
    target: str | os.PathLike[str],
    data_file: str | os.PathLike[str] | None = None,
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: FileIO | None = None,
) -> PaimonVerifyReport:
    """Verify every index of a table, or one `.index` file against `data_file`, by default the one that the index name refers to.

    The types of a single file come from its table or, without one, from the file. Files outside the directory of the table are read only
    with `allow_outside`.

    Raises UnreadableError if the target is neither a table nor an index, or an `.index` file or its data file cannot be read; RefusedError
    if the header of a Parquet page in that data file states more than `max_page_bytes` uncompressed bytes.
    """
    path, files = os.fsdecode(target), files or LocalFolders()
    if not path.endswith(INDEX_SUFFIX) and data_file is None:
        table = open_table(files, path, snapshot=snapshot, branch=branch, allow_outside=allow_outside)
        verified = (verify_index(table, live, find_index(table.files, live), max_page_bytes) for live in table.live_files)
        return PaimonVerifyReport(table.path, tuple(verified))
    if snapshot is not None or branch is not None:
        raise UsageError("an index file has no snapshots and no branches", file=path)
    data_path = data_file_of(path) if data_file is None else os.fsdecode(data_file)
    name = os.path.basename(data_path)
    if data_file is None and name not in list_names(files, os.path.dirname(data_path) or "."):
        raise UsageError(f"its data file {name} does not exist beside it", file=path, hint="name the data file")
    container = parse_file(files, path, parse_container)
    table_and_file = find_table_around(files, data_path)
    schema = table_and_file[0].schema_of(table_and_file[1].file) if table_and_file is not None else None
    with ErrorPlace(data_path):
        columns = verify_container(container, read_metadata(files, data_path), data_path, schema, max_page_bytes)
    return PaimonVerifyReport(path, (VerifiedFile(data_path, "file", columns),))
