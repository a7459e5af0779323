"""Notes about a file that are no findings: what its footer leaves unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.numbers import format_columns, format_count
from sbbf_tool.parquet.columns import Column


def type_notes(file: ParquetFile, columns: Sequence[Column]) -> Iterator[str]:
    """Yield notes on columns whose values have an unknown meaning, or may be read in two ways."""
    if not file.footer.columns:
        yield "the file has no columns"
    names_by_note: dict[str, list[str]] = {}
    for column in columns:
        if column.doubt:
            yield f"column {column.name}: the meaning of its values is unknown: {column.doubt}"
        for note in column.reading.notes():
            names_by_note.setdefault(note, []).append(column.name)
    for note, names in names_by_note.items():
        yield f"{format_columns(names)}: {note}"


def other_file_notes(file: ParquetFile) -> Iterator[str]:
    """Yield a note on column chunks that the footer places in other files."""
    (paths,) = file.footer.numbers("file_path")
    other_files = []
    for at, path in enumerate(paths):
        if path:
            row_group, column = divmod(at, len(file.footer.columns))
            other_file = file.footer.elsewhere(row_group, column)
            if other_file:
                other_files.append(other_file)
    if other_files:
        yield (
            f"{format_count(len(other_files), 'column chunk')} and their filters are in "
            f"other files, such as {other_files[0]}: inspect those"
        )


def key_notes(file: ParquetFile) -> Iterator[str]:
    """Yield a note on a signature that could not be verified."""
    if file.ring is not None and not file.footer.is_writable:
        yield "the footer's signature was not verified: its key was not given"


def find_locked(file: ParquetFile) -> set[int]:
    """Return the indexes of the columns whose metadata is encrypted, and whose key is missing."""
    locked: set[int] = set()
    if not file.footer.has_encrypted_chunks:
        return locked
    for number in range(file.footer.num_row_groups):
        for index, meta in enumerate(file.footer.chunk_metas(number)):
            if meta.is_locked:
                locked.add(index)
    return locked
