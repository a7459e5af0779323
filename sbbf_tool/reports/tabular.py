"""Reports as tables: Arrow for other libraries, HTML for notebooks, and one line for the prompt.

pyarrow, polars, DuckDB and pandas read an object that has `__arrow_c_stream__` (the Arrow PyCapsule
interface).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

from sbbf_tool.display import escape
from sbbf_tool.extension import load_each
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count, format_number
from sbbf_tool.reports.plain import hints_of, schema_of, to_plain

if TYPE_CHECKING:
    import pyarrow as pa


_HTML_ROWS = 20


class JoinedRow:
    """The row of several dataclasses: their fields, without those in `but`. Of a name that occurs
    again, the last counts."""

    def __init__(self, *parts: type, but: Collection[str]) -> None:
        hints: dict[str, Any] = {}
        for at, part in enumerate(parts):
            for name, hint in hints_of(part):
                hints.pop(name, None)
                if name not in but:
                    hints[name] = hint | None if at else hint
        self.type = type("JoinedRow", (Frozen,), {"__annotations__": hints})
        self._names = tuple(hints)

    def of(self, *values: object) -> object:
        """Build the row of these; None stands for one that is missing."""
        fields = dict.fromkeys(self._names)
        for value in values:
            for name in self._names:
                if hasattr(value, name):
                    fields[name] = getattr(value, name)
        return self.type(**fields)


class Tabular(Frozen, ABC):
    """Report of rows. Each row has the fields `_first` of the report itself, then those of a
    dataclass, `_row`.

    If `_row` is None, the report is its only row.
    """

    _row: ClassVar[type | None] = None
    _first: ClassVar[tuple[str, ...]] = ()

    def _rows(self) -> Iterable[object]:
        """Return the rows, each a `_row`: by default, those of the field that has them."""
        kind = type(self)._row or type(self)
        for value in vars(self).values():
            if isinstance(value, tuple) and value and isinstance(value[0], kind):
                return value
        return ()

    @abstractmethod
    def _summary(self) -> str:
        """Return the subject of the report and its size, such as `events.parquet: 6 filters`."""

    def to_arrow(self) -> pa.Table:
        """Convert the report to an Arrow table, whose schema is the same for every report of this
        class, also for one without rows.

        Strings are UTF-8: other bytes of file names are escaped. A fix is a call in Python.
        """
        import pyarrow as pa

        return pa.Table.from_pylist(list(self.plain_rows()), schema=self.arrow_schema())

    @classmethod
    def arrow_schema(cls) -> pa.Schema:
        """Return the schema of `to_arrow`."""
        import pyarrow as pa

        fields = []
        if cls._first:
            fields = [field for field in schema_of(cls) if field.name in cls._first]
        fields += schema_of(cls._row or cls)
        return pa.schema(fields)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as an Arrow stream. Other libraries call this; the schema that they
        request may change types, not columns."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def plain_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as `to_plain` converts them, each of which is made when it is taken."""
        values = {name: to_plain(getattr(self, name)) for name in type(self)._first}
        rows = (self,) if type(self)._row is None else self._rows()
        for row in rows:
            yield {**values, **to_plain(row)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {escape(self._summary())}>"

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table for a notebook, without the columns that are empty
        in all of them, and pictures."""
        rows = self.plain_rows()
        first_rows = list(islice(rows, _HTML_ROWS))
        names = _names_with_values(first_rows)
        title = f"{type(self).__name__} {self._summary()}"
        header = "".join(f"<th>{_text(name)}</th>" for name in names)
        lines = [
            "<table>",
            f"<caption>{_text(title)}</caption>",
            f"<thead><tr>{header}</tr></thead>",
            "<tbody>",
        ]
        for row in first_rows:
            cells = "".join(_cell(row[name]) for name in names)
            lines.append(f"<tr>{cells}</tr>")
        lines.append("</tbody>")
        more = sum(1 for _ in rows)
        if more:
            text = f"and {format_count(more, 'more row')}"
            lines.append(f'<tfoot><tr><td colspan="{len(names)}">{text}</td></tr></tfoot>')
        return "\n".join([*lines, "</table>", *self._render_figures()])

    def _render_figures(self) -> Iterator[str]:
        name = type(self).__name__
        title = f"{name} {self._summary()}"
        # A notebook shows several reports on one page.
        key = f"sbbf_{crc32(title.encode('utf-8', 'backslashreplace')):08x}"
        for render in load_each("figures", f"{type(self).__module__}:{name}"):
            yield from render(self, key)


def _names_with_values(rows: list[dict[str, Any]]) -> list[str]:
    """Return the names of the columns that are not empty in all rows."""

    def has_value(name: str) -> bool:
        return any(row[name] not in (None, [], "") for row in rows)

    return list(filter(has_value, rows[0] if rows else ()))


def _cell(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td style="text-align: right">{_format_exactly(value)}</td>'
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    text = "" if value is None else _text(str(value))
    return f'<td style="text-align: left">{text}</td>'


def _format_exactly(value: float) -> str:
    """Format a number; one that is too small for `format_number`, with three digits."""
    if isinstance(value, int):
        return f"{value:,}"
    return format_number(value) if abs(value) >= 0.001 else f"{value:.3g}"


def _text(text: str) -> str:
    import html  # only notebooks draw tables so

    return html.escape(escape(text))
