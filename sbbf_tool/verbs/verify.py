"""`verify`: verify that a file's filters answer `maybe` for every stored value, and that they are
as readers expect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from sbbf_tool.arguments import as_names
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName
from sbbf_tool.frozen import opt
from sbbf_tool.reports.findings import VerifyReport
from sbbf_tool.rules.verification import report_of
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, ReadOptions


class Verify(ReadingVerb[VerifyReport]):
    """Query each filter of `columns` (if empty, of all columns) for every value of its column
    chunk.

    A filter that cannot be read, or cannot be decrypted without a key, is reported as not verified;
    in the second case, `locked_columns` lists its column. A filter whose chunk cannot be decoded is
    also not verified; `unreadable` lists the chunk. Raises UnreadableError (not a Parquet file),
    UsageError (no such column), RefusedError (encrypted footer without a key; an oversized page).
    """

    name = "verify"
    has_state = True
    report = VerifyReport
    columns: Iterable[str] = opt("Only these columns", default=(), convert=as_names)

    def needs(self) -> Needs:
        return Needs(data=True, threads=True, columns=tuple(self.columns))

    def request(self, path: FileName) -> tuple[object, ...]:
        return (self.columns,)

    def on(self, file: ParquetFile) -> VerifyReport:
        return report_of(file, tuple(self.columns))


def verify(
    path: Readable, columns: Iterable[str] = (), **options: Unpack[ReadOptions]
) -> VerifyReport:
    """Verify the filters of one file; see `Verify`, and `ReadingVerb` for the options."""
    return Verify(columns)(path, **options)
