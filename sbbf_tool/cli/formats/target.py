"""What an output writes to: standard output, or a report file that replaces an earlier one in one step."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import click

from sbbf_tool.cli.output import PatientBinary, PatientOutput
from sbbf_tool.cli.terminal import is_terminal
from sbbf_tool.errors import RefusedError, UsageError

MARK = b"sbbf.report"
"""A key in the metadata of Parquet files that are reports, so that a report never replaces a file of data."""
_FOOTER_BYTES = 1 << 16


class StandardOutput:
    """Standard output. Its errors are kept until the command ends."""

    def __init__(self) -> None:
        self.encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self.is_terminal = is_terminal(sys.stdout)

    def write(self, text: str) -> None:
        click.echo(text, nl=False, color=True)

    def binary(self) -> BinaryIO:
        """Return the stream for bytes. Raises UsageError for a terminal."""
        if is_terminal(sys.stdout):
            raise UsageError("a terminal cannot show this format: redirect the output, or save it with --report FILE")
        sys.stdout.flush()
        return cast(BinaryIO, PatientBinary(sys.stdout) if isinstance(sys.stdout, PatientOutput) else sys.stdout.buffer)


class _File:
    encoding, is_terminal = "utf-8", False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(text.encode())

    def binary(self) -> BinaryIO:
        return self._stream


OutputTarget = StandardOutput | _File
"""`encoding` is that of the text; formats that can escape the characters that it lacks."""


@contextmanager
def open_file(path: str) -> Iterator[OutputTarget]:
    """Yield a target that becomes the file when the block ends without an error. Raises RefusedError and WriteError.

    A Parquet file that is not a report is not replaced.
    """
    from sbbf_tool.storage.whole import write_whole

    if _is_data(path):
        raise RefusedError("the file holds data and is not a report", file=path, hint="name another, or remove it first")
    with write_whole(path, overwrite=True) as stream:
        yield _File(stream)


def _is_data(path: str) -> bool:
    """Return whether a path is a Parquet file without the mark of a report."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            start = stream.read(4)
            stream.seek(-min(_FOOTER_BYTES, os.fstat(stream.fileno()).st_size), os.SEEK_END)
            end = stream.read(_FOOTER_BYTES)
    except OSError:
        return False
    return start in (b"PAR1", b"PARE") and end.endswith(start) and MARK not in end
