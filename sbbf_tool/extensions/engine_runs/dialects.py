"""The SQL of a condition on one column, as each query engine writes it.

Values are texts as the reports of this package print them. They are cast to the type that the
engine says the column has, because most engines cast a column that is compared with a value of
another type, and then query no filter.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sbbf_tool.writers.writer import write_sql

if TYPE_CHECKING:
    import pyarrow as pa


class SqlDialect:
    """The SQL of a condition; dialects override what they write differently."""

    quote_mark = '"'
    field = "{parent}.{quoted}"
    contains = "list_contains({column}, {value})"

    def reference(self, path: Sequence[str]) -> str:
        """Write the column with this path."""
        column = self.quote_name(path[0])
        for name in path[1:]:
            column = self.field.format(
                parent=column, quoted=self.quote_name(name), literal=write_sql(name)
            )
        return column

    def condition(self, column: str, kind: str, texts: Sequence[str], *, many: bool = False) -> str:
        """Write that a column of this type equals the first text or, if `many`, is IN all of them;
        that a list contains the first."""
        element = self.element_of(kind)
        if element is not None:
            return self.contains.format(column=column, value=self.literal(element, texts[0]))
        if not many:
            return f"{column} = {self.literal(kind, texts[0])}"
        literals = ", ".join(self.literal(kind, text) for text in texts)
        return f"{column} IN ({literals})"

    def literal(self, kind: str, text: str) -> str:
        """Write a value of this type."""
        return f"CAST({write_sql(text)} AS {kind})"

    def element_of(self, kind: str) -> str | None:
        """Return the type of a list's elements; None for other types."""
        return None

    def quote_name(self, name: str) -> str:
        """Write the name of a column."""
        escaped = name.replace(self.quote_mark, self.quote_mark * 2)
        return f"{self.quote_mark}{escaped}{self.quote_mark}"


class DuckDBDialect(SqlDialect):
    def element_of(self, kind: str) -> str | None:
        if kind.endswith("[]"):
            return kind.removesuffix("[]")
        return None

    def literal(self, kind: str, text: str) -> str:
        if kind == "BLOB":
            return f"unhex('{hex_of(text)}')"
        if kind == "UUID":
            return f"CAST('{text.removeprefix('0x')}' AS UUID)"
        interval = re.fullmatch(r"P(\d+)M(\d+)DT([\d.]+)S", text)
        if kind == "INTERVAL" and interval is not None:
            months, days, seconds = interval.groups()
            milliseconds = int(float(seconds) * 1000)
            return f"(to_months({months}) + to_days({days}) + to_milliseconds({milliseconds}))"
        return super().literal(kind, text)


class DataFusionDialect(SqlDialect):
    field = "{parent}[{literal}]"
    contains = "array_has({column}, {value})"

    def element_of(self, kind: str) -> str | None:
        match = re.match(r"List\((\w+)", kind)
        return match[1] if match else None

    def literal(self, kind: str, text: str) -> str:
        if "Binary" in kind:
            digits = hex_of(text, is_uuid=kind == "FixedSizeBinary(16)")
            value = f"X'{digits}'"
        else:
            value = write_sql(text)
        return f"arrow_cast({value}, {write_sql(kind)})"


class SparkDialect(SqlDialect):
    quote_mark = "`"
    contains = "array_contains({column}, {value})"

    def element_of(self, kind: str) -> str | None:
        if kind.startswith("array<"):
            return kind.removeprefix("array<").removesuffix(">")
        return None

    def literal(self, kind: str, text: str) -> str:
        if kind == "binary":
            return f"X'{hex_of(text)}'"
        return f"CAST({_quote_escaped(text)} AS {kind})"


class ClickHouseDialect(SqlDialect):
    quote_mark = "`"
    contains = "has({column}, {value})"

    def element_of(self, kind: str) -> str | None:
        match = re.fullmatch(r"Array\((?:Nullable\()?(\w+)\)*", kind)
        return match[1] if match else None

    def literal(self, kind: str, text: str) -> str:
        if kind == "UUID":
            return f"CAST('{uuid.UUID(text.removeprefix('0x'))}' AS UUID)"
        if "String" in kind and text.startswith("0x"):
            return f"CAST(unhex('{text[2:]}') AS {kind})"
        if kind.startswith("DateTime64"):
            moment = _moment_of(text).replace("T", " ")
            return f"CAST({_quote_escaped(moment)} AS {kind})"
        return f"CAST({_quote_escaped(text)} AS {kind})"

    def quote_name(self, name: str) -> str:
        escaped = name.replace("\\", "\\\\").replace("`", "\\`")
        return f"`{escaped}`"


def _quote_escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _moment_of(text: str) -> str:
    """Return a point in time without its zone, which is UTC; one of a time is on the first day."""
    naive = text.removesuffix("Z").removesuffix("+00:00")
    return naive if "-" in naive else f"1970-01-01T{naive}"


def hex_of(text: str, *, is_uuid: bool = False) -> str:
    """Return the hexadecimal digits of a value of bytes, which is `0x...` or text; with `is_uuid`,
    36 characters are a UUID's."""
    if is_uuid and len(text) == 36:
        return text.replace("-", "")
    return text[2:] if text.startswith("0x") else text.encode().hex()


def escape_glob(path: str) -> str:
    """Write a path for an engine that takes globs."""
    return "".join(f"\\{letter}" if letter in "*?{}[]\\" else letter for letter in path)


def parse_texts(texts: Iterable[str], kind: pa.DataType) -> pa.Array:
    """Parse texts as values of an Arrow type."""
    import numpy as np
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return parse_texts(texts, kind.storage_type)
    if pa.types.is_dictionary(kind):
        return parse_texts(texts, kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        is_uuid = kind.byte_width == 16
        return pa.array([bytes.fromhex(hex_of(text, is_uuid=is_uuid)) for text in texts], kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([bytes.fromhex(hex_of(text)) for text in texts], kind)
    if pa.types.is_float16(kind):
        return pa.array([np.float16(text) for text in texts], kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        moments = pa.array(list(map(_moment_of, texts))).cast(pa.timestamp("ns"))
        counts = moments.cast(pa.timestamp(kind.unit)).cast(pa.int64())
        if kind.bit_width == 32:
            counts = counts.cast(pa.int32())
        return counts.cast(kind)
    return pa.array(list(texts)).cast(kind)
