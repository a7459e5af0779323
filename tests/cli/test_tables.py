"""Tables in a given width: what is hidden, shortened and wrapped, and that no number is ever
broken."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from sbbf_tool.cli.screen import Screen
from sbbf_tool.cli.tables import (
    BYTES,
    COUNT,
    ESTIMATE,
    GAP,
    NAME,
    NUMBERS,
    RATE,
    SENTENCE,
    SUMMARY,
    WORD,
    CellKind,
    Heading,
    Plain,
    format_cells,
)


def draw(
    columns: Sequence[Heading],
    rows: Sequence[Sequence[object]],
    width: int | None = None,
    *,
    units: bool = False,
) -> list[str]:
    writer = Plain() if width is None else Screen(width, has_color=False)
    return writer.table(*format_cells(columns, rows, units=units))


NAMES = st.text(alphabet="ab/._-0 数한é\u0301\x1b|", max_size=40)
CELLS = {
    COUNT: st.integers(0, 10**18),
    BYTES: st.integers(0, 10**18),
    RATE: st.floats(0, 1),
    ESTIMATE: st.floats(0, 1e15),
    NAME: NAMES,
    WORD: st.sampled_from(["INT64", "STRING", "3 of 4", "verified", "4,000 of 4,000"]),
    SENTENCE: st.lists(
        st.sampled_from(
            ["word", "of", "12,345", "3.1 kB", "s3://a/b/c=1/2024-01-01/part-0001.parquet", "数量"]
        )
    ).map(" ".join),
}
CELLS[SUMMARY] = CELLS[SENTENCE]
"""The cells of each kind of column."""


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Heading], list[tuple[object, ...]]]:
    kinds = draw(st.lists(st.sampled_from(CellKind), min_size=1, max_size=9))
    columns = [
        Heading(
            f"{draw(st.sampled_from(['c', '列', 'a long name ']))}{at}",
            kind,
            draw(st.integers(0, 4)),
        )
        for at, kind in enumerate(kinds)
    ]
    rows = st.tuples(*(st.none() | CELLS[kind] for kind in kinds))
    return columns, draw(st.lists(rows, min_size=1, max_size=5))


@given(tables(), st.integers(20, 130), st.booleans())
def test_a_random_table_fits_and_loses_no_number(table, width, units):
    columns, rows = table
    lines = draw(columns, rows, width, units=units)
    visible, cells = format_cells(columns, rows, units=units)
    text = " ".join(" ".join(lines).split())
    _, _, names = text.rpartition("hidden: ")
    hidden = (
        names.removesuffix("; --all shows them").split(", ")
        if names.endswith("; --all shows them")
        else []
    )
    numbers = {
        line[at]
        for at, column in enumerate(visible)
        for line in cells
        if column.kind in NUMBERS and column.name not in hidden and line[at]
    }
    assert [number for number in numbers if number not in text] == []
    assert {column.name for column in visible if column.priority == 0} & set(hidden) == set()
    assert [line for line in lines if wcswidth(line) > width and line.strip() not in numbers] == []


@given(tables(), st.none() | st.integers(20, 130))
def test_no_cell_leaves_its_column(table, width):
    """Two empty cells are before each column of text, and after each column of numbers."""
    columns, rows = table
    lines = draw(columns, rows, width)
    # The hint at hidden columns may take several lines.
    lines = lines[
        : next((at for at, line in enumerate(lines) if line.startswith("hidden: ")), len(lines))
    ]
    header = lines.pop(0) if lines else ""
    for column in columns:
        at = header.find(column.name)
        # Paragraphs have no header.
        if at < 0 or f"{column.name}:" in header:
            continue
        start = wcswidth(header[:at])
        gap = start + wcswidth(column.name) if column.kind in NUMBERS else start - GAP
        for line in lines:
            if gap >= 0:
                cells = "".join(
                    character + " " * (wcswidth(character) - 1)
                    for character in line
                    if wcswidth(character)
                )
                assert cells[gap : gap + GAP].strip() == "", line
