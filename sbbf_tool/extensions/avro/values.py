"""Avro's binary encoding of values (Avro 1.11 specification, "Binary Encoding"), read and written by fastavro within limits.

In Python, a record is a dict, a union is the value itself, bytes and fixed are bytes, an enum is its symbol, an array is a list, and a map
is a dict. Values of logical types are the stored numbers and bytes. One value has at most MAX_ITEMS array and map items: each item takes at
least one byte (`parse_schema` refuses others), and the reads are counted if a block has more than MAX_ITEMS bytes.

fastavro is laxer than the specification: a negative index of a symbol or branch counts from the end, any byte but 0 is true, an int
may have 64 bits, and a longer number is truncated to its low 64 bits.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.avro.schema import Schema

MAX_ITEMS = 4_000_000
"""Maximum number of array and map items in one value."""


class Encoding:
    """Reader and writer of the values of one schema."""

    def __init__(self, schema: Schema) -> None:
        try:
            import fastavro
        except ImportError:
            message = "manifests of Iceberg and Paimon are Avro files, and the package fastavro is not installed"
            raise UsageError(message, hint="pip install 'sbbf-tool[iceberg]' or 'sbbf-tool[paimon]'") from None

        # A record is encoded as its fields, so this one adds no bytes and turns any schema into a record.
        root = {"type": "record", "name": "root", "fields": [{"name": "value", "type": schema}]}
        try:
            self._schema: Any = fastavro.parse_schema(root)
        except Exception as error:
            raise UnreadableError(f"the Avro schema cannot be read ({_shorten(error)})") from None

    def read(self, stream: BytesIO, *, raw_strings: bool = False) -> Any:
        """Read one value. With `raw_strings`, bytes of a string that are not UTF-8 become lone surrogates (`surrogateescape`).

        Raises UnreadableError, with the offset where reading stopped.
        """
        import fastavro

        if isinstance(stream, _LimitedStream):
            stream.remaining_reads = MAX_ITEMS
        try:
            value: Any = fastavro.schemaless_reader(
                stream, self._schema, None, handle_unicode_errors="surrogateescape" if raw_strings else "strict"
            )
        except (MemoryError, ImportError):
            raise
        except UnicodeDecodeError:
            raise UnreadableError("an Avro string is not valid UTF-8", place=_locate(stream)) from None
        except UnreadableError as error:
            raise UnreadableError(error.message, place=_locate(stream)) from None
        except Exception as error:
            raise UnreadableError(f"the bytes contradict the Avro schema{_explain(error)}", place=_locate(stream)) from None
        return value["value"]

    def build(self, value: Any, *, validate_first: bool = True) -> bytes:
        """Build the bytes of a value. Raises UsageError when the value does not fit the schema, or a record has excess fields.

        Validation takes most of the time. Without it, a float may be truncated to an integer; values that were read need none. The value of
        a union may be a pair of the type's name and the value, which saves the search for the branch; only without validation.
        """
        import fastavro
        from fastavro.validation import validate

        stream, record = BytesIO(), {"value": value}
        try:
            # Both checks are needed: the writer alone would truncate a float to an integer, and only the writer detects an excess field.
            if validate_first:
                validate(record, self._schema, raise_errors=True, strict=True)
            fastavro.schemaless_writer(stream, self._schema, record, strict=True)
        except (MemoryError, ImportError):
            raise
        except Exception as error:
            raise UsageError(f"{value!r:.60} does not fit its Avro schema ({_shorten(error)})") from None
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
    return BytesIO(block) if len(block) <= MAX_ITEMS else _LimitedStream(block)


def _locate(stream: BytesIO) -> str:
    return f"offset {stream.tell()} of the block"


def _explain(error: Exception) -> str:
    if isinstance(error, EOFError):
        return ": a value is longer than the bytes that remain, or has a negative length"
    return ": an index into a union or enum is out of range" if isinstance(error, IndexError) else ""


def _shorten(error: Exception) -> str:
    """Shorten a fastavro error to its first words, on one line."""
    return " ".join(f"{type(error).__name__} {error}".split())[:80].strip()
