"""Three files, some of which hold a value, and the exit codes of `probe` and `explain` for all of
them together."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import add_filters

VALUE = 4242
UNREADABLE = b"PAR1, it says"


class Case(NamedTuple):
    files: tuple[bytes, bytes, bytes]
    code: int


@cache
def file_of(
    *values: int, column: str = "id", has_filter: bool = True, has_dictionary: bool = False
) -> bytes:
    """Return a Parquet file of these values and of a smallest and a largest one, so that min and
    max exclude none of them."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.parquet"
        pq.write_table(
            pa.table({column: [0, *values, 10_000]}), path, use_dictionary=has_dictionary
        )
        if has_filter:
            add_filters(path, [column], in_place=True, ndv=100)
        return path.read_bytes()


def _place(
    content: bytes, at: int, others_content: tuple[bytes, bytes]
) -> tuple[bytes, bytes, bytes]:
    files = [*others_content[:at], content, *others_content[at:]]
    return files[0], files[1], files[2]


WITH, WITHOUT = file_of(VALUE), file_of(1)
CASES = {
    "none has it": Case((WITHOUT,) * 3, 1),
    "all have it": Case((WITH,) * 3, 0),
    **{f"file {at} has it": Case(_place(WITH, at, (WITHOUT, WITHOUT)), 0) for at in range(3)},
    **{
        f"file {at} has no filter": Case(
            _place(file_of(1, has_filter=False), at, (WITHOUT, WITHOUT)), 0
        )
        for at in range(3)
    },
    "file 1 has a dictionary alone": Case(
        _place(file_of(1, has_filter=False, has_dictionary=True), 1, (WITHOUT, WITHOUT)), 1
    ),
    **{
        f"file {at} is broken, none has it": Case(_place(UNREADABLE, at, (WITHOUT, WITHOUT)), 3)
        for at in range(3)
    },
    **{
        f"file {at} is broken, the first other one has it": Case(
            _place(UNREADABLE, at, (WITH, WITHOUT)), 3
        )
        for at in range(3)
    },
    **{
        f"file {at} is broken, the last other one has it": Case(
            _place(UNREADABLE, at, (WITHOUT, WITH)), 3
        )
        for at in range(3)
    },
    **{
        f"file {at} lacks the column": Case(_place(file_of(column="x"), at, (WITH, WITHOUT)), 0)
        for at in range(3)
    },
    **{
        f"file {at} lacks the column, none has it": Case(
            _place(file_of(column="x"), at, (WITHOUT, WITHOUT)), 1
        )
        for at in range(3)
    },
    "no file has the column": Case((file_of(column="x"),) * 3, 2),
}
"""Cases by a description of the files."""

FORMS = {
    "probe of a folder": ["probe", "FOLDER", "id", str(VALUE)],
    "probe of files": ["probe", "FILES", "-c", "id", "--value", str(VALUE)],
    "probe of two values": ["probe", "FOLDER", "id", "5", str(VALUE), "--format", "json"],
    "explain of files": ["explain", "FILES", "-c", "id", "--value", str(VALUE)],
    "explain of a folder": ["explain", "FOLDER", "id", str(VALUE), "--format", "json"],
}


FEW = {form: list(CASES)[::2][number :: len(FORMS)] for number, form in enumerate(FORMS)}
"""Two cases for each form, for tests in which a run takes a second."""


def words(form: str, folder: str, files: list[str]) -> list[str]:
    """Return the arguments of a form of the question, of this folder or these files."""
    arguments = {"FOLDER": [folder], "FILES": files}
    return [word for argument in FORMS[form] for word in arguments.get(argument, [argument])]


def write(folder: Path, case: str) -> list[str]:
    """Write the files of a case, and return their names."""
    paths = [folder / f"{name}.parquet" for name in "abc"]
    for path, content in zip(paths, CASES[case].files, strict=True):
        path.write_bytes(content)
    return [str(path) for path in paths]
