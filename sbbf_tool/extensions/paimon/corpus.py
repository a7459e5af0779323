"""Tables of Apache Paimon with Bloom filters in their file indexes: the types that Paimon hashes,
both places of an index, damaged ones.

Each table has one snapshot with one data file of one column. The layout is that of Paimon 1.0; the
Avro files have no compression.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from sbbf_tool.bloom import spec
from sbbf_tool.display import to_json
from sbbf_tool.extensions.avro.file import AvroHeader, build_file
from sbbf_tool.extensions.avro.schema import parse_schema
from sbbf_tool.extensions.conformance.corpus import ABSENT, CANNOT_SAY, MAYBE, Expectation
from sbbf_tool.extensions.conformance.corpus_file import ABSENT_VALUES, CorpusFile, FileMaker
from sbbf_tool.extensions.conformance.kinds import BY_NAME, Kind
from sbbf_tool.extensions.paimon import bloom64_spec
from sbbf_tool.extensions.paimon.bloom64 import KIND
from sbbf_tool.extensions.paimon.bloom64_spec import compute_sizing
from sbbf_tool.extensions.paimon.index_container import build_container
from sbbf_tool.extensions.paimon.manifest import ADD, build_list_record
from sbbf_tool.extensions.paimon.table_schema import parse_table_schema
from sbbf_tool.frozen import Frozen

_COLUMN = "v"
_DATA_FILE = "data-conformance-0.parquet"
_ITEMS, _FPP = 100, 0.01
EMPTY_ROW = bytes(12)
SYNC = bytes(range(16))
NO_STATS = {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": []}
_TYPES = {
    "tinyint": ("TINYINT", "int8"),
    "smallint": ("SMALLINT", "int16"),
    "int": ("INT", "int32"),
    "bigint": ("BIGINT", "int64"),
    "date": ("DATE", "date"),
    "time": ("TIME(3)", "time-millis"),
    "timestamp-3": ("TIMESTAMP(3)", "timestamp-millis-local"),
    "timestamp-6": ("TIMESTAMP(6)", "timestamp-micros-local"),
    "timestamp-ltz-6": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamp-micros"),
    "float": ("FLOAT", "float"),
    "double": ("DOUBLE", "double"),
    "string": ("STRING", "string"),
    "bytes": ("BYTES", "byte-array"),
}


class _Table(Frozen):
    """A table of one column, whose index is in the manifest if `is_embedded` is set."""

    name: str
    about: str
    type: str
    kind: Kind
    index: bytes
    answer: Callable[[bytes], str]
    is_embedded: bool = False

    def build(self) -> CorpusFile:
        folder = f"paimon/{self.name}"
        data = FileMaker(self.kind, filters={}).build()
        extra = {
            f"{folder}/schema/schema-0": self._schema(),
            f"{folder}/bucket-0/{_DATA_FILE}": data,
            **self._manifests(folder, len(data)),
            f"{folder}/snapshot/LATEST": b"1",
        }
        if not self.is_embedded:
            extra[f"{folder}/bucket-0/{_DATA_FILE}.index"] = self.index
        return CorpusFile(
            folder, self.about, b"", self._questions(folder), extra=extra, format="paimon"
        )

    def _questions(self, folder: str) -> tuple[Expectation, ...]:
        stored = _stored(self.kind)
        chosen = [*(plain for plain in stored if plain in self.kind.extremes), *stored[:2]]
        absent = [plain for plain in self.kind.absent(255) if plain not in stored][:ABSENT_VALUES]
        return tuple(
            Expectation(
                folder,
                _COLUMN,
                (_COLUMN,),
                self.type,
                _text(self.kind, plain),
                plain.hex(),
                plain in stored,
                self.answer(plain),
            )
            for plain in (*chosen, *absent)
        )

    def _schema(self) -> bytes:
        return _json(
            version=3,
            id=0,
            fields=[{"id": 0, "name": _COLUMN, "type": self.type}],
            highestFieldId=0,
            partitionKeys=[],
            primaryKeys=[],
            options={"bucket": "-1", "file-index.bloom-filter.columns": _COLUMN},
            timeMillis=0,
        )

    def _manifests(self, folder: str, size: int) -> dict[str, bytes]:
        rows = sum(len(self.kind.stored(number)) + 1 for number in (0, 1))
        embedded, names = (self.index, []) if self.is_embedded else (None, [f"{_DATA_FILE}.index"])
        file = describe_file(
            _DATA_FILE, size, rows, _EXTRA_FILES=names, _EMBEDDED_FILE_INDEX=embedded
        )
        entry = {
            "_VERSION": 2,
            "_KIND": 0,
            "_PARTITION": EMPTY_ROW,
            "_BUCKET": 0,
            "_TOTAL_BUCKETS": -1,
            "_FILE": file,
        }
        manifest = build_file(avro_header(ENTRY_FIELDS), [entry])
        schema = parse_table_schema(self._schema())
        list_entry = build_list_record(
            LIST_FIELDS, "manifest-0", len(manifest), [(ADD, entry)], schema
        )
        snapshot = _json(
            version=3,
            id=1,
            schemaId=0,
            baseManifestList="manifest-list-0",
            deltaManifestList="manifest-list-1",
            changelogManifestList=None,
            commitUser="sbbf-conformance",
            commitIdentifier=1,
            commitKind="APPEND",
            timeMillis=0,
            logOffsets={},
            totalRecordCount=rows,
            deltaRecordCount=rows,
            changelogRecordCount=0,
        )
        header = avro_header(LIST_FIELDS)
        return {
            f"{folder}/manifest/manifest-0": manifest,
            f"{folder}/manifest/manifest-list-0": build_file(header, []),
            f"{folder}/manifest/manifest-list-1": build_file(header, [list_entry]),
            f"{folder}/snapshot/snapshot-1": snapshot,
        }


def make_paimon() -> Iterator[CorpusFile]:
    for name, (type_name, kind_name) in _TYPES.items():
        kind = BY_NAME[kind_name]
        body = _build_body(kind)
        about = f"a column of {type_name} with an index file"
        yield _Table(
            name, about, type_name, kind, _build_index(body), _answer_with(kind, body)
        ).build()
    kind = BY_NAME["int64"]
    body = _build_body(kind)
    index = _build_index(body)
    sound = _answer_with(kind, body)
    yield _Table(
        "embedded", "the index is in the manifest", "BIGINT", kind, index, sound, is_embedded=True
    ).build()
    several = build_container({"w": {KIND: body}, _COLUMN: {"bitmap": b"unknown", KIND: body}})
    about = "an index of two columns, with a bitmap before the Bloom filter"
    yield _Table("several-indexes", about, "BIGINT", kind, several, sound).build()
    unknown_index = build_container({_COLUMN: {"bitmap-of-a-later-version": b"unknown"}})
    about = "an index of an unknown type, which skips nothing"
    yield _Table(
        "unknown-index", about, "BIGINT", kind, unknown_index, lambda plain: CANNOT_SAY
    ).build()
    no_bits = bytes(len(body) - 4)
    for name, data, about in (
        (
            "many-hash-functions",
            _build_index((200).to_bytes(4, "big") + no_bits),
            "k = 200, which Paimon reads as -56: it skips nothing",
        ),
        ("wrong-magic", b"\xff" + _build_index(body[:4] + no_bits)[1:], "the magic bytes differ"),
        (
            "wrong-version",
            index[:8] + b"\0\0\0\2" + _build_index(body[:4] + no_bits)[12:],
            "version 2 of the container",
        ),
        ("truncated", index[: len(index) // 2], "the second half of the index is missing"),
    ):
        yield _Table(
            name,
            f"{about}; no reader may skip the file",
            "BIGINT",
            kind,
            data,
            lambda plain: CANNOT_SAY,
        ).build()


def _stored(kind: Kind) -> list[bytes]:
    return list(dict.fromkeys((*kind.stored(0), *kind.stored(1))))


def _text(kind: Kind, plain: bytes) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(text := kind.text(plain), text)


def _hash(kind: Kind, plain: bytes) -> int:
    """Compute Paimon's hash (FastHash.java): XXH64 of bytes, Wang's mix of the sign-extended
    integer or bits."""
    if kind.physical == "BYTE_ARRAY":
        return spec.xxh64(plain)
    return bloom64_spec.wang_hash(int.from_bytes(plain, "little", signed=True))


def _build_body(kind: Kind) -> bytes:
    """Build the bytes of a filter as Paimon writes it, with its reference in plain integers."""
    num_bits, k = compute_sizing(_ITEMS, _FPP)
    bits = bytearray(num_bits // 8)
    for plain in _stored(kind):
        bloom64_spec.insert(bits, k, _hash(kind, plain))
    return k.to_bytes(4, "big") + bytes(bits)


def _build_index(body: bytes) -> bytes:
    return build_container({_COLUMN: {KIND: body}})


def _answer_with(kind: Kind, body: bytes) -> Callable[[bytes], str]:
    k = int.from_bytes(body[:4], "big")
    return lambda plain: MAYBE if bloom64_spec.contains(body[4:], k, _hash(kind, plain)) else ABSENT


def _json(**fields: object) -> bytes:
    return to_json(fields, indent=1).encode()


def nullable(kind: object) -> list[object]:
    return ["null", kind]


def record(name: str, fields: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": name, "type": kind, **_default(kind)} for name, kind in fields.items()],
    }


def _default(kind: object) -> dict[str, object]:
    return {"default": None} if isinstance(kind, list) else {}


def _stats(name: str) -> dict[str, object]:
    counts = nullable({"type": "array", "items": nullable("long")})
    return record(
        f"record_{name}", {"_MIN_VALUES": "bytes", "_MAX_VALUES": "bytes", "_NULL_COUNTS": counts}
    )


_TEXTS = {"type": "array", "items": "string"}
FILE_FIELDS: dict[str, object] = {
    "_FILE_NAME": "string",
    "_FILE_SIZE": "long",
    "_ROW_COUNT": "long",
    "_MIN_KEY": "bytes",
    "_MAX_KEY": "bytes",
    "_KEY_STATS": _stats("KEY_STATS"),
    "_VALUE_STATS": _stats("VALUE_STATS"),
    "_MIN_SEQUENCE_NUMBER": "long",
    "_MAX_SEQUENCE_NUMBER": "long",
    "_SCHEMA_ID": "long",
    "_LEVEL": "int",
    "_EXTRA_FILES": _TEXTS,
    "_CREATION_TIME": nullable({"type": "long", "logicalType": "timestamp-millis"}),
    "_DELETE_ROW_COUNT": nullable("long"),
    "_EMBEDDED_FILE_INDEX": nullable("bytes"),
    "_FILE_SOURCE": nullable("int"),
    "_VALUE_STATS_COLS": nullable(_TEXTS),
    "_EXTERNAL_PATH": nullable("string"),
}
ENTRY_FIELDS: dict[str, object] = {
    "_VERSION": "int",
    "_KIND": "int",
    "_PARTITION": "bytes",
    "_BUCKET": "int",
    "_TOTAL_BUCKETS": "int",
    "_FILE": record("record__FILE", FILE_FIELDS),
}
LIST_FIELDS: dict[str, object] = {
    "_VERSION": "int",
    "_FILE_NAME": "string",
    "_FILE_SIZE": "long",
    "_NUM_ADDED_FILES": "long",
    "_NUM_DELETED_FILES": "long",
    "_PARTITION_STATS": _stats("PARTITION_STATS"),
    "_SCHEMA_ID": "long",
}


def avro_header(fields: Mapping[str, object], codec: str = "null") -> AvroHeader:
    """Return the header of an Avro file whose records have these fields."""
    text = json.dumps(nullable(record("record", fields)))
    return AvroHeader(text, parse_schema(text), codec, SYNC, 0)


def describe_file(name: str, size: int, rows: int, **fields: object) -> dict[str, object]:
    """Return the `_FILE` of a manifest entry, for a file without keys; `fields` are those with
    other values than 0 or null."""
    numbers = ("_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID", "_LEVEL")
    return {
        **dict.fromkeys(FILE_FIELDS),
        **dict.fromkeys((*numbers, "_CREATION_TIME", "_DELETE_ROW_COUNT", "_FILE_SOURCE"), 0),
        **dict.fromkeys(("_MIN_KEY", "_MAX_KEY"), EMPTY_ROW),
        **dict.fromkeys(("_KEY_STATS", "_VALUE_STATS"), NO_STATS),
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_ROW_COUNT": rows,
        **fields,
    }
