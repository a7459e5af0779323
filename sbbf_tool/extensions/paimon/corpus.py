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
_ITEMS = 100
_FPP = 0.01
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
        extremes = [plain for plain in stored if plain in self.kind.extremes]
        absent = [plain for plain in self.kind.absent(255) if plain not in stored]
        questions = []
        for plain in (*extremes, *stored[:2], *absent[:ABSENT_VALUES]):
            question = Expectation(
                folder,
                _COLUMN,
                (_COLUMN,),
                self.type,
                _text(self.kind, plain),
                plain.hex(),
                plain in stored,
                self.answer(plain),
            )
            questions.append(question)
        return tuple(questions)

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
        # Each of the two row groups has a null, too.
        rows = sum(len(self.kind.stored(number)) + 1 for number in (0, 1))
        entry = self._entry(size, rows)
        manifest = build_file(avro_header(ENTRY_FIELDS), [entry])
        schema = parse_table_schema(self._schema())
        list_entry = build_list_record(
            LIST_FIELDS, "manifest-0", len(manifest), [(ADD, entry)], schema
        )
        header = avro_header(LIST_FIELDS)
        return {
            f"{folder}/manifest/manifest-0": manifest,
            f"{folder}/manifest/manifest-list-0": build_file(header, []),
            f"{folder}/manifest/manifest-list-1": build_file(header, [list_entry]),
            f"{folder}/snapshot/snapshot-1": _build_snapshot(rows),
        }

    def _entry(self, size: int, rows: int) -> dict[str, object]:
        """Return the manifest entry of the data file, which has so many bytes and rows."""
        file = describe_file(
            _DATA_FILE,
            size,
            rows,
            _EXTRA_FILES=[] if self.is_embedded else [f"{_DATA_FILE}.index"],
            _EMBEDDED_FILE_INDEX=self.index if self.is_embedded else None,
        )
        return {
            "_VERSION": 2,
            "_KIND": 0,
            "_PARTITION": EMPTY_ROW,
            "_BUCKET": 0,
            "_TOTAL_BUCKETS": -1,
            "_FILE": file,
        }


def _build_snapshot(rows: int) -> bytes:
    return _json(
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


def make_paimon() -> Iterator[CorpusFile]:
    for table in _tables():
        yield table.build()


def _tables() -> Iterator[_Table]:
    for name, (type_name, kind_name) in _TYPES.items():
        kind = BY_NAME[kind_name]
        body = _build_body(kind)
        about = f"a column of {type_name} with an index file"
        yield _Table(name, about, type_name, kind, _build_index(body), _answer_with(kind, body))
    kind = BY_NAME["int64"]
    body = _build_body(kind)
    answer = _answer_with(kind, body)
    about = "the index is in the manifest"
    yield _Table("embedded", about, "BIGINT", kind, _build_index(body), answer, is_embedded=True)
    several = build_container(
        {
            "w": {KIND: body},
            _COLUMN: {"bitmap": b"unknown", KIND: body},
        }
    )
    about = "an index of two columns, with a bitmap before the Bloom filter"
    yield _Table("several-indexes", about, "BIGINT", kind, several, answer)
    unknown = build_container({_COLUMN: {"bitmap-of-a-later-version": b"unknown"}})
    about = "an index of an unknown type, which skips nothing"
    yield _Table("unknown-index", about, "BIGINT", kind, unknown, _cannot_say)
    for name, index, problem in _damaged_indexes(body):
        about = f"{problem}; no reader may skip the file"
        yield _Table(name, about, "BIGINT", kind, index, _cannot_say)


def _damaged_indexes(body: bytes) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, bytes and description of damaged indexes with filters as large as this one."""
    no_bits = bytes(len(body) - 4)
    many_hash_functions = _build_index((200).to_bytes(4, "big") + no_bits)
    about = "k = 200, which Paimon reads as -56: it skips nothing"
    yield "many-hash-functions", many_hash_functions, about
    without_bits = _build_index(body[:4] + no_bits)
    yield "wrong-magic", b"\xff" + without_bits[1:], "the magic bytes differ"
    version_2 = without_bits[:8] + b"\0\0\0\2" + without_bits[12:]
    yield "wrong-version", version_2, "version 2 of the container"
    index = _build_index(body)
    yield "truncated", index[: len(index) // 2], "the second half of the index is missing"


def _cannot_say(plain: bytes) -> str:
    return CANNOT_SAY


def _stored(kind: Kind) -> list[bytes]:
    return list(dict.fromkeys((*kind.stored(0), *kind.stored(1))))


def _text(kind: Kind, plain: bytes) -> str:
    text = kind.text(plain)
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def _hash(kind: Kind, plain: bytes) -> int:
    """Compute Paimon's hash (FastHash.java): XXH64 of bytes, Wang's mix of other values.

    Integers, and the bits of floating-point numbers, are sign-extended.
    """
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
    bits = body[4:]

    def answer(plain: bytes) -> str:
        may_hold = bloom64_spec.contains(bits, k, _hash(kind, plain))
        return MAYBE if may_hold else ABSENT

    return answer


def _json(**fields: object) -> bytes:
    return to_json(fields, indent=1).encode()


def nullable(kind: object) -> list[object]:
    return ["null", kind]


def record(name: str, fields: Mapping[str, object]) -> dict[str, object]:
    declarations = []
    for field, kind in fields.items():
        declaration = {"name": field, "type": kind}
        if isinstance(kind, list):
            declaration["default"] = None
        declarations.append(declaration)
    return {"type": "record", "name": name, "fields": declarations}


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
    """Return the `_FILE` of a manifest entry, for a file without keys.

    `fields` are those with other values than 0 or null.
    """
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
