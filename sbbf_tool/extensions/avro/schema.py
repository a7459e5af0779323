"""Avro schemas (Avro 1.11 specification, "Schema Declaration"), as far as the files of Paimon and
Iceberg need them.

A schema may refer to named types by name. A type that contains itself is refused, because no such
file has one.

Values ("Binary Encoding") are read and written by fastavro within limits. In Python, a record is a
dict, a union is the value itself, bytes and fixed are bytes, an enum is its symbol, an array is a
list, and a map is a dict. Values of logical types are the stored numbers and bytes. One value has
at most MAX_ITEMS array and map items: each item takes at least one byte (`parse_schema` refuses
others), and the reads are counted if a block has more than MAX_ITEMS bytes.

fastavro is laxer than the specification: a negative index of a symbol or branch counts from the
end, any byte but 0 is true, an int may have 64 bits, and a longer number is truncated to its low 64
bits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.hints import install_extra

MAX_DEPTH = 64
MAX_NODES = 100_000
PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))

Schema = str | dict[str, Any] | list[Any]
"""A schema as fastavro represents it: the name of a primitive type, the list of the branches of a
union, or an object.

Each named type is written out wherever it is used, under a unique name. The `logicalType` of a
primitive type is kept as `logical`, so that fastavro reads the stored value.
"""


def parse_schema(text: str) -> Schema:
    """Parse a schema from its JSON.

    Raises UnreadableError if the text is not a schema, or if the schema names an unknown type,
    contains itself, or lets few bytes encode many values: with an array whose items take no bytes,
    since nothing limits their number, or with more than MAX_NODES types after named types are
    written out.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError("the Avro schema is not valid JSON") from None
    return _SchemaParser().parse(tree, "", 0)


def fields_of(schema: Schema) -> dict[str, Schema]:
    """Return the fields of a file's record, in order.

    Java wraps the record in a union with null. Raises UnreadableError without a record.
    """
    branches = schema if isinstance(schema, list) else [schema]
    for branch in branches:
        if isinstance(branch, dict) and branch["type"] == "record":
            return {field["name"]: field["type"] for field in branch["fields"]}
    raise UnreadableError("the values of the Avro file are not records")


def without_null(schema: Schema) -> Schema:
    """Return the other branch of a union of null and one type; any other schema unchanged."""
    if not isinstance(schema, list):
        return schema
    branches: list[Schema] = [branch for branch in schema if branch != "null"]
    return branches[0] if len(branches) == 1 else schema


def kind_of(schema: Schema) -> str:
    """Return the name of a type: a primitive one, fixed, enum, array, map, record or union."""
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, str):
        return schema
    return str(schema["type"])


def logical_of(schema: Schema) -> str:
    """Return the `logicalType` of a primitive type; empty if there is none."""
    if isinstance(schema, dict):
        return str(schema.get("logical", ""))
    return ""


def _takes_bytes(schema: Schema) -> bool:
    """Return whether every value of a schema takes at least one byte."""
    kind = kind_of(schema)
    if kind == "record":
        return any(map(_takes_bytes, fields_of(schema).values()))
    is_empty_fixed = isinstance(schema, dict) and schema.get("size") == 0
    return kind != "null" and not is_empty_fixed


class _SchemaParser:
    def __init__(self) -> None:
        self.types: dict[str, tuple[Mapping[str, Any], str] | None] = {}
        """Each named type as declared, with its enclosing namespace, by full name; None while it is
        being parsed, to detect recursion."""
        self.nodes = 0

    def parse(self, tree: Any, namespace: str, depth: int) -> Schema:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise UnreadableError("the Avro schema is too large or nested too deep")
        match tree:
            case str():
                return self._by_name(tree, namespace, depth)
            case list():
                return [self.parse(branch, namespace, depth + 1) for branch in tree]
            case {"type": dict() | list() as inner}:
                return self.parse(inner, namespace, depth + 1)
            case {"type": "array"}:
                items = self.parse(tree.get("items"), namespace, depth + 1)
                if not _takes_bytes(items):
                    raise UnreadableError("the Avro schema has an array whose items take no bytes")
                return {"type": "array", "items": items}
            case {"type": "map"}:
                values = self.parse(tree.get("values"), namespace, depth + 1)
                return {"type": "map", "values": values}
            case {"type": "record" | "error" | "fixed" | "enum"}:
                return self._named_type(tree, namespace, depth)
            case {"type": str(kind), "logicalType": str(logical)} if kind in PRIMITIVES:
                return {"type": kind, "logical": logical}
            case {"type": str(name)}:
                return self._by_name(name, namespace, depth)
            case dict():
                raise _unknown_type(tree.get("type"))
        raise UnreadableError(f"{tree!r:.40} is not an Avro type")

    def _by_name(self, name: str, namespace: str, depth: int) -> Schema:
        if name in PRIMITIVES:
            return name
        for full_name in (_full_name(name, namespace), name):
            if full_name in self.types:
                declaration = self.types[full_name]
                if declaration is None:
                    raise UnreadableError(f"the Avro type {name!r:.80} contains itself")
                return self._named_type(*declaration, depth)
        raise _unknown_type(name)

    def _named_type(self, tree: Mapping[str, Any], enclosing: str, depth: int) -> Schema:
        kind = tree["type"]
        name = tree.get("name")
        if not isinstance(name, str):
            raise UnreadableError(f"a type of kind {kind} in the Avro schema has no name")
        namespace = enclosing
        if "." in name:
            namespace = name.rpartition(".")[0]
        elif isinstance(tree.get("namespace"), str):
            namespace = tree["namespace"]
        full_name = _full_name(name, namespace)
        self.types[full_name] = None
        schema: dict[str, Any] = {"name": f"{kind}{self.nodes}"}
        match kind:
            case "fixed":
                schema |= _parse_fixed(tree)
            case "enum":
                symbols = _list_of(tree, "symbols")
                schema |= {"type": "enum", "symbols": [str(symbol) for symbol in symbols]}
            case _:
                schema |= {"type": "record", "fields": self._fields(tree, namespace, depth)}
        self.types[full_name] = tree, enclosing
        return schema

    def _fields(
        self, tree: Mapping[str, Any], namespace: str, depth: int
    ) -> list[dict[str, Schema]]:
        """Parse the fields of a record. Raises UnreadableError unless each has a unique name."""
        declarations = _list_of(tree, "fields")
        names = set()
        for declaration in declarations:
            name = declaration.get("name") if isinstance(declaration, dict) else None
            if not isinstance(name, str) or name in names:
                raise UnreadableError(
                    "the Avro schema has a field without a name, or two fields of one name"
                )
            names.add(name)
        fields = []
        for declaration in declarations:
            schema = self.parse(declaration.get("type"), namespace, depth + 1)
            fields.append({"name": declaration["name"], "type": schema})
        return fields


def _parse_fixed(tree: Mapping[str, Any]) -> dict[str, Any]:
    size = tree.get("size")
    if not isinstance(size, int) or size < 0:
        raise UnreadableError(f"the Avro schema has a fixed type of size {size!r:.40}")
    return {"type": "fixed", "size": size}


def _list_of(tree: Mapping[str, Any], member: str) -> list[Any]:
    """Return the symbols of an enum or the fields of a record, as declared."""
    members = tree.get(member)
    if not isinstance(members, list):
        raise UnreadableError(f"the Avro {tree['type']} has no list of {member}")
    return members


def _full_name(name: str, namespace: str) -> str:
    if "." in name or not namespace:
        return name
    return f"{namespace}.{name}"


def _unknown_type(name: Any) -> UnreadableError:
    return UnreadableError(f"the Avro schema has an unknown type {name!r:.80}")


MAX_ITEMS = 4_000_000
"""Maximum number of array and map items in one value."""


class Encoding:
    """Reader and writer of the values of one schema."""

    def __init__(self, schema: Schema) -> None:
        try:
            import fastavro
        except ImportError:
            raise UsageError(
                "manifests of Iceberg and Paimon are Avro files, and the package fastavro is not "
                "installed",
                hint=install_extra("iceberg", "paimon"),
            ) from None

        # A record is encoded as its fields, so this one adds no bytes and turns any schema into a
        # record.
        root = {"type": "record", "name": "root", "fields": [{"name": "value", "type": schema}]}
        try:
            self._schema: Any = fastavro.parse_schema(root)
        except Exception as error:
            raise UnreadableError(f"the Avro schema cannot be read ({_shorten(error)})") from None

    def read(self, stream: BytesIO, *, raw_strings: bool = False) -> Any:
        """Read one value.

        With `raw_strings`, bytes of a string that are not UTF-8 become lone surrogates
        (`surrogateescape`). Raises UnreadableError, with the offset where reading stopped.
        """
        import fastavro

        if isinstance(stream, _LimitedStream):
            stream.remaining_reads = MAX_ITEMS
        on_error = "surrogateescape" if raw_strings else "strict"
        try:
            value: Any = fastavro.schemaless_reader(
                stream, self._schema, None, handle_unicode_errors=on_error
            )
        except (MemoryError, ImportError):
            raise
        except UnicodeDecodeError:
            raise UnreadableError(
                "an Avro string is not valid UTF-8", place=_locate(stream)
            ) from None
        except UnreadableError as error:
            raise UnreadableError(error.message, place=_locate(stream)) from None
        except Exception as error:
            raise UnreadableError(
                f"the bytes contradict the Avro schema{_explain(error)}", place=_locate(stream)
            ) from None
        return value["value"]

    def build(self, value: Any, *, validate_first: bool = True) -> bytes:
        """Build the bytes of a value.

        Validation takes most of the time. Without it, a float may be truncated to an integer;
        values that were read need none. The value of a union may be a pair of the type's name and
        the value, which saves the search for the branch; only without validation. Raises UsageError
        when the value does not fit the schema, or a record has excess fields.
        """
        import fastavro
        from fastavro.validation import validate

        stream = BytesIO()
        record = {"value": value}
        try:
            # Both checks are needed: the writer alone would truncate a float to an integer, and
            # only the writer detects an excess field.
            if validate_first:
                validate(record, self._schema, raise_errors=True, strict=True)
            fastavro.schemaless_writer(stream, self._schema, record, strict=True)
        except (MemoryError, ImportError):
            raise
        except Exception as error:
            raise UsageError(
                f"{value!r:.60} does not fit its Avro schema ({_shorten(error)})"
            ) from None
        return stream.getvalue()


class _LimitedStream(BytesIO):
    """Stream that limits the number of reads per value; each item takes at least one read."""

    remaining_reads = MAX_ITEMS

    def read(self, size: int | None = -1, /) -> bytes:
        self.remaining_reads -= 1
        if self.remaining_reads < 0:
            raise UnreadableError(f"an Avro value has more than {MAX_ITEMS:,} items")
        return super().read(size)


def open_values(block: bytes) -> BytesIO:
    """Open the stream from which the values of a block are read."""
    if len(block) <= MAX_ITEMS:
        return BytesIO(block)
    return _LimitedStream(block)


def _locate(stream: BytesIO) -> str:
    return f"offset {stream.tell()} of the block"


def _explain(error: Exception) -> str:
    if isinstance(error, EOFError):
        return ": a value is longer than the bytes that remain, or has a negative length"
    if isinstance(error, IndexError):
        return ": an index into a union or enum is out of range"
    return ""


def _shorten(error: Exception) -> str:
    """Shorten a fastavro error to its first words, on one line."""
    return " ".join(f"{type(error).__name__} {error}".split())[:80].strip()
