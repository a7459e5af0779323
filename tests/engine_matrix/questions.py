"""The questions of the matrix of engines: for each family of columns small files, and conditions on
them with the rows that they have.

A file has the columns `n`, the number of the row, and `v`, of one type of the conformance corpus,
in two row groups. The absent values are between the minimum and maximum of both, so that only
filters prune. Of each file there are four copies: with filters and without, sound and with zeros in
the pages of `v`. An engine that returns no row for an absent value from a file whose pages are
zeros has not read them. That shows the use of filters in all engines and releases alike; few of
them have metrics of it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sbbf_tool.extensions.conformance import kinds
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BOOLEAN, BY_NAME, Kind
from sbbf_tool.extensions.conformance.parquet_writer import (
    REQUIRED,
    Cell,
    CorpusTable,
    StoredBytes,
    build_filter,
    build_parquet,
    build_root,
)
from sbbf_tool.extensions.engine_runs.copies import page_ranges, zero_ranges
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.query_engines.terms import EQUAL, IN, IN_MANY, NULL_SAFE
from sbbf_tool.query_engines.verdicts import find_family
from support.corpus_edits import edit_footer_bytes

ROWS = 24
"""Rows of a row group."""
PREDICATES = {EQUAL: 1, IN: 3, IN_MANY: 30, NULL_SAFE: 1}
"""Each predicate, and the number of its values."""
STORED, ABSENT = "stored", "absent"
WITH, WITHOUT = "with filters", "without filters"
_UNORDERED = ("int96", "interval", "geometry", "geography", "boolean")
"""Types without an order, and so without minimum and maximum."""
NUMBER = Kind("number", "INT64", lambda n: struct.pack("<q", n))


def _decimal(name: str, physical: str, width: int, precision: int, scale: int = 2) -> Kind:
    def value(n: int) -> bytes:
        number = n * 131 - 1000
        return number.to_bytes(width or number.bit_length() // 8 + 1, "big", signed=True)

    return kinds._decimal(name, physical, value, (), precision, scale, width or None)


KINDS = [
    *(kind for name, kind in BY_NAME.items() if not name.endswith("-converted")),
    kinds._time("time-millis-local", "MILLIS", 10**3, None, utc=False),
    kinds._time("time-nanos-local", "NANOS", 10**9, None, utc=False),
    _decimal("decimal-fixed-16-padded", "FIXED_LEN_BYTE_ARRAY", 16, 20),
    _decimal("decimal-fixed-padded", "FIXED_LEN_BYTE_ARRAY", 7, 9),
    # Without a scale: they have the same value as DOUBLE, as which engines read more than 38
    # digits.
    _decimal("decimal-fixed-wide", "FIXED_LEN_BYTE_ARRAY", 17, 40, 0),
    _decimal("decimal-bytes-wide", "BYTE_ARRAY", 0, 40, 0),
    BOOLEAN,
]
"""One or more types of each family but the last, that of all other types."""


@dataclass(frozen=True)
class Question:
    """A condition on `v` in a file; `rows` are those that it has, from 0 on."""

    kind: str
    family: str
    type: str
    predicate: str
    role: str
    """`stored`: some of the values are in the file, which is sound. `absent`: no value is, and the
    pages are zeros."""
    filters: str
    file: str
    sound_file: str
    """The same file with sound pages, for questions about the schema."""
    texts: list[str]
    rows: list[int]

    @property
    def key(self) -> tuple[str, ...]:
        return (self.kind, self.predicate, self.role, self.filters, *self.texts)


def make_questions(folder: Path) -> list[Question]:
    """Write the files into an existing folder, and return all questions about them."""
    return [question for kind in KINDS for question in _make_questions_of_kind(kind, folder)]


def digest_of(questions: Sequence[Question]) -> str:
    """Return a hash of the questions and files, to see whether a result was computed from
    others."""
    state = hashlib.sha256()
    for question in questions:
        fields: dict[str, Any] = asdict(question) | {
            "file": Path(question.file).name,
            "sound_file": "",
        }
        state.update(repr(fields).encode())
        state.update(Path(question.file).read_bytes())
    return state.hexdigest()[:16]


def _make_questions_of_kind(kind: Kind, folder: Path) -> Iterator[Question]:
    groups, absent = _values(kind)
    stored = [plain for group in groups for plain in group]
    files = {}
    for filters in (WITH, WITHOUT):
        data = _build_file(kind, groups, has_filters=filters == WITH)
        for role in (STORED, ABSENT):
            path = folder / f"{kind.name}-{role}-{filters.replace(' ', '-')}.parquet"
            path.write_bytes(data)
            if role == ABSENT:
                _zero_pages(path)
            files[role, filters] = path
    family = find_family(kind.column).id
    for predicate, count in PREDICATES.items():
        distinct = list(dict.fromkeys(stored))
        chosen = {distinct[0], distinct[len(distinct) // 3], distinct[-1]}
        operands = [(STORED, [plain, *absent[: count - 1]]) for plain in sorted(chosen)] + [
            (ABSENT, absent[:count])
        ]
        for role, plains in operands:
            matching = [n for n, plain in enumerate(stored) if plain in plains]
            for filters in (WITH, WITHOUT):
                texts = [format_value(kind, plain) for plain in plains]
                path = str(files[role, filters])
                yield Question(
                    kind.name,
                    family,
                    kind.column.type_name,
                    predicate,
                    role,
                    filters,
                    path,
                    str(files[STORED, filters]),
                    texts,
                    matching,
                )


def _values(kind: Kind) -> tuple[list[list[bytes]], list[bytes]]:
    """Return the values of both row groups, and absent values that are in the range of both."""
    if kind is BOOLEAN:
        return [[kind.value(1)] * ROWS] * 2, [kind.value(0)]
    groups = [[kind.value(n) for n in range(2 * number, 4 * ROWS, 4)] for number in (0, 1)]
    absent = [kind.value(n) for n in range(4 * ROWS - 1, 0, -2)]
    if kind.name in _UNORDERED:
        return groups, absent
    order = partial(order_of_value, kind)
    least, most = (
        max(min(map(order, values)) for values in groups),
        min(max(map(order, values)) for values in groups),
    )
    return groups, [plain for plain in absent if least < order(plain) < most]


def order_of_value(kind: Kind, plain: bytes) -> Any:
    """Return the value as one that compares in the order of the type."""
    if kind.precision is not None and kind.physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return int.from_bytes(plain, "big", signed=True)
    if kind.physical in ("FLOAT", "DOUBLE") or kind.name == "float16":
        return struct.unpack({2: "<e", 4: "<f", 8: "<d"}[len(plain)], plain)[0]
    if kind.physical in ("INT32", "INT64"):
        return int.from_bytes(plain, "little", signed="unsigned" not in kind.column.type_name)
    return plain


def format_value(kind: Kind, plain: bytes) -> str:
    """Return a value as text: bytes as hexadecimal digits, and numbers exactly."""
    if kind is BOOLEAN:
        return ("false", "true")[plain[0]]
    if kind.name == "float16":
        return str(struct.unpack("<e", plain)[0])
    return f"0x{plain.hex()}" if kind.name == "uuid" else kind.text(plain)


def _build_file(kind: Kind, groups: Sequence[Sequence[bytes]], *, has_filters: bool) -> bytes:
    schema = [build_root(2), NUMBER.element("n", REQUIRED), kind.element()]
    row_groups, filters = [], {}
    for number, values in enumerate(groups):
        numbers = [
            Cell(NUMBER.value(number * ROWS + at), definition=0) for at in range(len(values))
        ]
        row_groups.append([numbers, [Cell(plain) for plain in values]])
        # parquet-java writes filters for BOOLEAN columns, and inserts no value.
        filters[number, 1] = StoredBytes(
            build_filter([] if kind is BOOLEAN else values, BITSET_BYTES)
        )
    data = build_parquet(CorpusTable(schema, row_groups, filters if has_filters else {}))
    if kind.name in _UNORDERED:
        return data

    def add_range(metadata: FileMetaData) -> None:
        for group, values in zip(metadata.row_groups, groups, strict=True):
            least, *_, most = sorted(values, key=partial(order_of_value, kind))
            statistics = group.columns[1].meta_data.statistics
            statistics.min_value, statistics.max_value = least, most

    return edit_footer_bytes(data, add_range)


def _zero_pages(path: Path) -> None:
    with ParquetFile.open(path) as file:
        ranges = [
            pages
            for number in range(file.footer.num_row_groups)
            for pages in page_ranges(file, number, [1])
        ]
    zero_ranges(path, ranges)
