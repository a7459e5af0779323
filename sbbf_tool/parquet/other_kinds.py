"""What a file is that is not Parquet, by its first bytes, and what to do about it."""

from __future__ import annotations

import re

_DECOMPRESS = "decompress it first"
_EXTRACT = "extract it first"
_AS_PARQUET = "only Parquet files can have filters: write its data as Parquet"
_OF_AN_ERROR = "look at its text, which may be the answer to a failed download"
OTHER_KINDS: dict[bytes, tuple[str, str]] = {
    b"version https://git-lfs.github.com/spec/": (
        "a Git LFS pointer, which stands for the file",
        "fetch the file: git lfs pull",
    ),
    b"\x1f\x8b": ("a file compressed by gzip", _DECOMPRESS),
    b"\x28\xb5\x2f\xfd": ("a file compressed by Zstandard", _DECOMPRESS),
    b"BZh": ("a file compressed by bzip2", _DECOMPRESS),
    b"\xfd7zXZ\0": ("a file compressed by xz", _DECOMPRESS),
    b"\x04\x22\x4d\x18": ("a file compressed by LZ4", _DECOMPRESS),
    b"\xff\x06\0\0sNaPpY": ("a file compressed by Snappy", _DECOMPRESS),
    b"PK\x03\x04": ("a ZIP archive, such as an Excel workbook", _EXTRACT),
    b"7z\xbc\xaf\x27\x1c": ("a 7-Zip archive", _EXTRACT),
    b"ORC": ("an ORC file", _AS_PARQUET),
    b"Obj\x01": ("an Avro file", _AS_PARQUET),
    b"ARROW1": ("an Arrow file", _AS_PARQUET),
    b"\xff\xff\xff\xff": ("a stream of Arrow", _AS_PARQUET),
    b"FEA1": ("a Feather file", _AS_PARQUET),
    b"SEQ": ("a Hadoop SequenceFile", _AS_PARQUET),
    b"RCF": ("an RCFile", _AS_PARQUET),
    b"\x89HDF\r\n": ("an HDF5 file", _AS_PARQUET),
    b"SQLite format 3\0": ("a SQLite database", _AS_PARQUET),
    b"PFA1": ("a Puffin file", _AS_PARQUET),
    b"%PDF-": ("a PDF document", _AS_PARQUET),
}
"""First bytes of other kinds of file, their names, and what to do."""


def name_other_kind(start: bytes) -> tuple[str, str] | None:
    """Name the kind of file that begins with these bytes and is not Parquet, and say what to do;
    None if it is not known."""
    for first, kind in OTHER_KINDS.items():
        if start.startswith(first):
            return kind
    if start[8:12] == b"DUCK":
        return "a DuckDB database", _AS_PARQUET
    if start[257:262] == b"ustar":
        return "a tar archive", _EXTRACT
    if start and not start.strip(b"\0"):
        return (
            "a file of zero bytes, which was never written or was cut off",
            "write or copy it again",
        )
    return _name_text(start.removeprefix(b"\xef\xbb\xbf").lstrip())


def _name_text(text: bytes) -> tuple[str, str] | None:
    """Name the kind of text that begins with these bytes; None if they are no text."""
    if text[:1] == b"<":
        return "a document of HTML or XML", _OF_AN_ERROR
    if text[:1] in (b"{", b"["):
        return "a file of JSON", f"{_AS_PARQUET}; or {_OF_AN_ERROR}"
    if not text or not _is_text(text):
        return None
    first_line, *others = text.split(b"\n", 1)
    if others and re.search(rb"[,;\t|]", first_line):
        return "a file of text, such as CSV", _AS_PARQUET
    return "a file of text", _OF_AN_ERROR


def _is_text(start: bytes) -> bool:
    if re.search(rb"[\0-\x08\x0e-\x1f]", start):
        return False
    # Cut in the middle of a character, the last bytes may be invalid.
    valid = start.decode(errors="ignore").encode()
    return len(valid) > len(start) - 4
