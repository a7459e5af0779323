"""`verify`: verify that a file's filters answer `maybe` for every stored value, and that they are as readers expect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.file.membership import verify_filter
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.reports.verify import VerifyReport
from sbbf_tool.rules.verification import report_of
from sbbf_tool.storage.inputs import find_input

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.meter import Progress
    from sbbf_tool.storage.inputs import FileSystemLike, Readable


def verify(
    path: Readable,
    columns: Iterable[str] = (),
    *,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    strict: bool = True,
    filesystem: FileSystemLike | None = None,
) -> VerifyReport:
    """Query each filter of `columns` (if empty, of all columns) for every value of its column chunk.

    Values are streamed from `jobs` chunks concurrently, one per core if None. A filter that cannot be read, or cannot be decrypted without
    a key, is reported as not verified; in the second case, `locked_columns` lists its column. A filter whose chunk cannot be decoded is
    also not verified; `unreadable` lists the chunk. `strict` is as in `inspect`. Raises UnreadableError (not a Parquet file), UsageError
    (no such column), RefusedError (encrypted footer without a key; a page whose header states more than `max_page_bytes` uncompressed
    bytes).
    """
    with ParquetFile.open(find_input(path, filesystem), keys, max_page_bytes) as file:
        return report_of(file, as_names(columns), verify_filter, jobs, progress, strict=strict)
