"""Avro schemas (Avro 1.11 specification, "Schema Declaration"), as far as Paimon's manifests and data files need them.

Named types may be used again by name; a type that contains itself is not read, because no Paimon file has one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UnreadableError

MAX_DEPTH = 64
MAX_NODES = 100_000
PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))


@dataclass(frozen=True, slots=True)
class Primitive:
    """null, boolean, int, long, float, double, bytes or string; `logical` is its logicalType, or empty."""

    kind: str
    logical: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    size: int


@dataclass(frozen=True, slots=True)
class Enumeration:
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Array:
    items: Schema
    logical: str = ""


@dataclass(frozen=True, slots=True)
class Map:
    values: Schema


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class Record:
    fields: tuple[tuple[str, Schema], ...]
    """Names and types, in order."""


Schema = Primitive | Fixed | Enumeration | Array | Map | Union | Record


def parse_schema(text: str) -> Schema:
    """A schema from its JSON. Raises UnreadableError where it is none, names an unknown type, or contains itself."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError("an Avro schema that is not JSON") from None
    return _Parser().parse(tree, "", 0)


def record_of(schema: Schema) -> Record:
    """The record of a file's schema; Java wraps it into a union with null. Raises UnreadableError when there is none."""
    branches = schema.branches if isinstance(schema, Union) else (schema,)
    for branch in branches:
        if isinstance(branch, Record):
            return branch
    raise UnreadableError("an Avro file whose values are not records")


def without_null(schema: Schema) -> Schema:
    """The other branch of a union of null and one type; any other schema as it is."""
    if isinstance(schema, Union):
        others = [branch for branch in schema.branches if branch != Primitive("null")]
        if len(others) == 1:
            return others[0]
    return schema


def ensure_bounded(schema: Schema) -> None:
    """Raises UnreadableError where few bytes may be many values: for an array of items that take no byte, since their number is then
    bounded by nothing, and for more types than MAX_NODES once each named type stands wherever it is used.
    """
    _measure(schema, {})


def _measure(schema: Schema, known: dict[int, tuple[int, bool]]) -> tuple[int, bool]:
    """How many types a schema is made of, and whether each of its values takes a byte."""
    found = known.get(id(schema))
    if found is not None:
        return found
    if isinstance(schema, Array | Map):
        (nodes, takes_bytes), one_takes = _measure(schema.items if isinstance(schema, Array) else schema.values, known), True
        if isinstance(schema, Array) and not takes_bytes:
            raise UnreadableError("an Avro array of items that take no byte")
    else:
        fields = [field for _, field in schema.fields] if isinstance(schema, Record) else ()
        measures = [_measure(one, known) for one in (schema.branches if isinstance(schema, Union) else fields)]
        nodes = sum(count for count, _ in measures)
        is_empty = isinstance(schema, Record) or (schema.kind == "null" if isinstance(schema, Primitive) else schema == Fixed(0))
        one_takes = not is_empty or any(takes for _, takes in measures)
    if nodes >= MAX_NODES:
        raise UnreadableError("an Avro schema too large or nested too deep")
    known[id(schema)] = nodes + 1, one_takes
    return known[id(schema)]


class _Parser:
    def __init__(self) -> None:
        self.named: dict[str, Schema | None] = {}
        """Types by full name; None while such a type is being read, so that recursion shows."""
        self.nodes = 0

    def parse(self, tree: Any, namespace: str, depth: int) -> Schema:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise UnreadableError("an Avro schema too large or nested too deep")
        if isinstance(tree, str):
            return self._by_name(tree, namespace)
        if isinstance(tree, list):
            return Union(tuple(self.parse(branch, namespace, depth + 1) for branch in tree))
        if not isinstance(tree, dict):
            raise UnreadableError(f"an Avro type that is {tree!r:.40}")
        kind = tree.get("type")
        if isinstance(kind, (dict, list)):
            return self.parse(kind, namespace, depth + 1)
        logical = tree.get("logicalType")
        logical = logical if isinstance(logical, str) else ""
        if kind == "array":
            return Array(self.parse(tree.get("items"), namespace, depth + 1), logical)
        if kind == "map":
            return Map(self.parse(tree.get("values"), namespace, depth + 1))
        if kind in ("record", "error", "fixed", "enum"):
            return self._named_type(kind, tree, namespace, depth)
        if isinstance(kind, str) and kind in PRIMITIVES:
            return Primitive(kind, logical)
        return self._by_name(kind, namespace) if isinstance(kind, str) else self._unknown(kind)

    def _by_name(self, name: str, namespace: str) -> Schema:
        if name in PRIMITIVES:
            return Primitive(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for known in (full, name):
            if known in self.named:
                schema = self.named[known]
                if schema is None:
                    raise UnreadableError(f"Avro type {name!r:.80} contains itself")
                return schema
        return self._unknown(name)

    def _named_type(self, kind: str, tree: Mapping[str, Any], namespace: str, depth: int) -> Schema:
        name = tree.get("name")
        if not isinstance(name, str):
            raise UnreadableError(f"an Avro {kind} without a name")
        own = tree.get("namespace")
        namespace = name.rpartition(".")[0] if "." in name else own if isinstance(own, str) else namespace
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        self.named[full] = None
        schema = self._body(kind, tree, namespace, depth)
        self.named[full] = schema
        return schema

    def _body(self, kind: str, tree: Mapping[str, Any], namespace: str, depth: int) -> Schema:
        if kind == "fixed":
            size = tree.get("size")
            if not isinstance(size, int) or size < 0:
                raise UnreadableError(f"an Avro fixed of size {size!r:.40}")
            return Fixed(size)
        parts = tree.get("symbols" if kind == "enum" else "fields")
        if not isinstance(parts, list):
            raise UnreadableError(f"an Avro {kind} without its parts")
        if kind == "enum":
            return Enumeration(tuple(str(symbol) for symbol in parts))
        fields = []
        for part in parts:
            if not isinstance(part, dict) or not isinstance(part.get("name"), str):
                raise UnreadableError("an Avro field without a name")
            fields.append((part["name"], self.parse(part.get("type"), namespace, depth + 1)))
        return Record(tuple(fields))

    def _unknown(self, name: Any) -> Schema:
        raise UnreadableError(f"an Avro type called {name!r:.80}")
