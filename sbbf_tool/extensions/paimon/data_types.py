"""Paimon's data types, as written in its schema files (types/DataTypeJsonParser.java).

Atomic types are strings (`VARCHAR(64) NOT NULL`), nested types objects (`{"type": "MAP", "key": "STRING", "value": "BIGINT"}`). Synonyms
are replaced (`STRING` is `VARCHAR(2147483647)`, `BYTES` is `VARBINARY(2147483647)`), so that equal types compare equal. A type that is
unknown to this module keeps its name and has no hash; this is not an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UnreadableError

MAX_LENGTH = (1 << 31) - 1
MAX_DEPTH = 50
INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}

_ATOMIC = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:\((?P<args>[^)]*)\))?(?P<rest>[A-Za-z\s]*)")
_SYNONYMS = {"INTEGER": "INT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL", "STRING": "VARCHAR", "BYTES": "VARBINARY"}
_DEFAULT_PRECISION = {"CHAR": 1, "VARCHAR": 1, "BINARY": 1, "VARBINARY": 1, "TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6, "DECIMAL": 10}


@dataclass(frozen=True, slots=True)
class DataType:
    """Data type. `root` is the name without parameters, and TIMESTAMP_LTZ for a timestamp with local time zone.

    `precision` is the first parameter: a length (CHAR, BINARY, ...) or a number of digits (TIMESTAMP, TIME, DECIMAL), and 0 for types
    without parameters.
    """

    root: str
    precision: int = 0
    scale: int = 0
    nullable: bool = True
    key: DataType | None = None
    """The key type of a map."""
    value: DataType | None = None
    """The value type of a map; the element type of ARRAY, MULTISET and VECTOR."""
    fields: tuple[DataField, ...] = ()
    """The fields of a row."""

    def __str__(self) -> str:
        return self._format() + ("" if self.nullable else " NOT NULL")

    def _format(self) -> str:
        if self.root == "TIMESTAMP_LTZ":
            return f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
        if self.root in ("VARCHAR", "VARBINARY") and self.precision == MAX_LENGTH:
            return "STRING" if self.root == "VARCHAR" else "BYTES"
        if self.root == "DECIMAL" and self.precision:
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.root in _DEFAULT_PRECISION and self.root != "DECIMAL":
            return f"{self.root}({self.precision})"
        if self.key is not None:
            return f"MAP<{self.key}, {self.value}>"
        if self.root == "ROW":
            return f"ROW<{', '.join(f'`{field.name}` {field.type}' for field in self.fields)}>"
        return f"{self.root}<{self.value}>" if self.value else self.root


@dataclass(frozen=True, slots=True)
class DataField:
    """Column of a table, or field of a row. Its `id` survives renames."""

    id: int
    name: str
    type: DataType


def parse_data_type(json: Any, depth: int = 0) -> DataType:
    """Parse a type from the JSON of a schema file: a string or an object. Raises UnreadableError for anything else."""
    if isinstance(json, str):
        return parse_type_text(json)
    if depth > MAX_DEPTH:
        raise UnreadableError("a data type is nested too deep")
    if not isinstance(json, dict) or not isinstance(json.get("type"), str):
        raise UnreadableError(f"a data type must be text or an object with a type, not {json!r:.80}")
    text: str = json["type"]
    root = text.split(None, 1)[0].upper() if text.split() else ""
    nullable = "NOT NULL" not in text
    if root == "MAP":
        key, value = (parse_data_type(json.get(part), depth + 1) for part in ("key", "value"))
        return DataType(root, nullable=nullable, key=key, value=value)
    if root == "ROW":
        return DataType(root, nullable=nullable, fields=parse_fields(json.get("fields"), depth + 1))
    if root in ("ARRAY", "MULTISET", "VECTOR"):
        return DataType(root, nullable=nullable, value=parse_data_type(json.get("element"), depth + 1))
    raise UnreadableError(f"unknown nested data type {text!r:.80}")


def parse_fields(json: Any, depth: int = 0) -> tuple[DataField, ...]:
    """Parse the fields of a schema or a row type. Raises UnreadableError if a field lacks an id, a name or a type."""
    if not isinstance(json, list):
        raise UnreadableError("the fields are not a list")
    fields = []
    for item in json:
        if not isinstance(item, dict) or not isinstance(item.get("id"), int) or not isinstance(item.get("name"), str):
            raise UnreadableError(f"a field has no id or no name: {item!r:.80}")
        fields.append(DataField(item["id"], item["name"], parse_data_type(item.get("type"), depth)))
    return tuple(fields)


def parse_type_text(text: str) -> DataType:
    """Parse a type written as SQL: any atomic type, or `MAP<key, value>` of atomic types. Raises UnreadableError when it is invalid."""
    stripped = text.strip()
    if map_match := re.fullmatch(r"MAP\s*<(.*)>(.*)", stripped, re.IGNORECASE | re.DOTALL):
        key, _, value = map_match[1].partition(",")
        if map_match[1].count(",") == 1 and "<" not in map_match[1]:
            return DataType("MAP", nullable=_is_nullable(map_match[2]), key=parse_type_text(key), value=parse_type_text(value))
    match = _ATOMIC.fullmatch(stripped)
    if match is None:
        return _parse_unknown(stripped)
    suffix = " ".join(match["rest"].upper().split())
    root = match["name"].upper()
    precision = {"STRING": MAX_LENGTH, "BYTES": MAX_LENGTH}.get(root)
    root = _SYNONYMS.get(root, root)
    if root == "TIMESTAMP" and suffix.startswith("WITH LOCAL TIME ZONE"):
        root = "TIMESTAMP_LTZ"
    numbers = [int(number) for number in re.findall(r"\d{1,10}", match["args"] or "")] if root in _DEFAULT_PRECISION else []
    return DataType(
        root,
        precision=precision or (numbers[0] if numbers else _DEFAULT_PRECISION.get(root, 0)),
        scale=numbers[1] if len(numbers) > 1 else 0,
        nullable=_is_nullable(suffix),
    )


def _is_nullable(suffix: str) -> bool:
    return "NOT NULL" not in suffix.upper()


def _parse_unknown(text: str) -> DataType:
    name = re.match(r"[A-Za-z_]\w*", text)
    if name is None:
        raise UnreadableError(f"unknown data type {text!r:.80}")
    return DataType(name[0].upper(), nullable=_is_nullable(text[-9:]))
