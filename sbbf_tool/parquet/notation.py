"""What a written value becomes (`Literal`), and what it takes to write values of one kind of column (`Notation`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import Logical

ABSENT, MAYBE, CANNOT_SAY = "absent", "maybe", "cannot say"


@dataclass(frozen=True, slots=True)
class Literal:
    """What to ask for: the value is there at most if one of `forms` is. `verdict` is the answer where no filter is needed."""

    text: str
    forms: tuple[bytes, ...] = ()
    verdict: str | None = None
    note: str | None = None
    is_null: bool = False
    """No value: a row may be null where no value is stored, and no filter holds it."""


class Notation(NamedTuple):
    """How values of a kind of column are written: both directions, and a description for the one who got it wrong.

    `parse` raises ValueError or OverflowError for what cannot be a value, `format` for bytes that are none.
    """

    parse: Callable[[Column, str], Literal]
    format: Callable[[Column, bytes], str]
    expects: Callable[[Column], str]


def logical_of(column: Column) -> Logical:
    """The logical type of a column whose notation was chosen by it."""
    assert column.logical is not None
    return column.logical


def width_of(column: Column) -> int:
    """Bytes of a value of a column whose notation was chosen because all have the same."""
    assert column.width is not None
    return column.width
