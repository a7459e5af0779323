"""Open logs: find their files, decompress them, and read them line by line in bounded memory.

Spark compresses event logs with zstd, lz4 or snappy, and may roll one log over into several files in a folder `eventlog_v2_<application>`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import BinaryIO

from sbbf_tool.errors import UnreadableError

MOST_LINE_BYTES = 64 << 20
"""Longer lines are skipped; a plan of some thousand operators has a few megabytes."""
_BLOCK = 1 << 20
_MOST_FILES = 100_000
_ROLLED = "eventlog_v2_"
_NUMBER = re.compile(r"events_(\d+)_")
_CODECS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_LZ4_MAGIC, _LZ4_RAW, _LZ4_BLOCK = b"LZ4Block", 0x10, 0x20
_LZ4_HEADER_BYTES = 21
_MOST_LZ4_BYTES = 32 << 20
"""The largest block that lz4-java writes."""


def find_logs(name: str) -> list[list[str]]:
    """Return the logs that a name means, each as the files that follow each other. Raises UnreadableError."""
    if not os.path.isdir(name):
        return [[name]]
    if os.path.basename(os.path.normpath(name)).startswith(_ROLLED):
        files = _rolled_files(name)
        if not files:
            raise UnreadableError("the folder of a rolled event log has no events file", file=name)
        return [files]
    logs = []
    for entry in _list(name):
        path = os.path.join(name, entry)
        if os.path.isdir(path):
            if entry.startswith(_ROLLED) and (files := _rolled_files(path)):
                logs.append(files)
        elif _is_regular(path):
            logs.append([path])
    if not logs:
        raise UnreadableError("the folder has no log", file=name)
    return logs


def _is_regular(path: str) -> bool:
    """Return whether a file of a folder can be read to its end: a FIFO or a device may never end. A link is what it points to."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True  # reading it states the reason


def _rolled_files(folder: str) -> list[str]:
    numbered = [(int(match[1]), entry) for entry in _list(folder) if (match := _NUMBER.match(entry))]
    return [path for _, entry in sorted(numbered) if _is_regular(path := os.path.join(folder, entry))]


def _list(folder: str) -> list[str]:
    try:
        entries = sorted(entry for entry in os.listdir(folder) if not entry.startswith((".", "_")))
    except OSError as error:
        raise UnreadableError(error.strerror or str(error), file=folder) from error
    if len(entries) > _MOST_FILES:
        raise UnreadableError(f"the folder has {len(entries):,} files, more than {_MOST_FILES:,}", file=folder)
    return entries


def read_lines(path: str) -> Iterator[bytes | None]:
    """Yield the lines of a log without their ends; None for a line that is too long. Raises UnreadableError.

    A log that is still being written may end within a line or a compressed block.
    """
    is_in_progress = path.endswith(".inprogress")
    pending, is_skipping = bytearray(), False
    try:
        for block in _blocks(path):
            start = 0
            while (end := block.find(b"\n", start)) >= 0:
                pending += block[start:end]
                if not is_skipping:
                    yield bytes(pending)
                pending.clear()
                is_skipping, start = False, end + 1
            pending += block[start:]
            if len(pending) > MOST_LINE_BYTES:
                pending.clear()
                if not is_skipping:
                    yield None
                is_skipping = True
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, UnreadableError) or is_in_progress:
            return
        raise UnreadableError(f"the log cannot be decompressed: {_one_line(error)}", file=path) from error
    if pending and not is_skipping:
        yield bytes(pending)


def _blocks(path: str) -> Iterator[bytes]:
    """Yield the decompressed content in blocks."""
    suffix = os.path.splitext(path.removesuffix(".inprogress"))[1]
    if suffix in (".snappy", ".lzf"):
        raise UnreadableError(
            f"logs compressed with {suffix[1:]} are not supported", file=path, hint="decompress it, or use zstd, lz4 or gzip"
        )
    try:
        # A FIFO that no process writes is empty instead of a wait without end.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        os.set_blocking(descriptor, True)
        stream = open(descriptor, "rb")  # noqa: SIM115  closed below
    except OSError as error:
        raise UnreadableError(error.strerror or str(error), file=path) from error
    with stream:
        if suffix == ".lz4":
            yield from _lz4_blocks(stream)
        elif suffix in _CODECS:
            import pyarrow as pa

            with pa.CompressedInputStream(pa.PythonFile(stream), _CODECS[suffix]) as decompressed:
                while block := decompressed.read(_BLOCK):
                    yield block
        else:
            while block := stream.read(_BLOCK):
                yield block


def _lz4_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the blocks of lz4-java's LZ4BlockOutputStream: each has magic, method, both lengths and a checksum, which is not compared."""
    import cramjam

    while header := stream.read(_LZ4_HEADER_BYTES):
        if len(header) < _LZ4_HEADER_BYTES or not header.startswith(_LZ4_MAGIC):
            raise ValueError("it is not in the format of lz4-java")
        method = header[8] & 0xF0
        compressed, size = (int.from_bytes(header[start : start + 4], "little") for start in (9, 13))
        if size > _MOST_LZ4_BYTES or compressed > _MOST_LZ4_BYTES or method not in (_LZ4_RAW, _LZ4_BLOCK):
            raise ValueError("a block has impossible lengths")
        data = stream.read(compressed)
        if len(data) < compressed:
            raise ValueError("its last block is incomplete")
        if size:
            yield data if method == _LZ4_RAW else bytes(cramjam.lz4.decompress_block(data, output_len=size))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
