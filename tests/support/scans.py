"""Answers of a scan beside those of opening each file: a scan may decline a file, and may never
answer differently."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.context import Context
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.footer import MAGIC
from sbbf_tool.parquet.idl.ttypes import FileMetaData, KeyValue
from sbbf_tool.parquet.structs import build_struct, parse_struct
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.rules.catalog import Policy, make_policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.verbs.add_filter import AddFilter
from sbbf_tool.verbs.check import Check
from sbbf_tool.verbs.probe import Probe
from sbbf_tool.verbs.verb import Scanner
from support.damage import damage

QUICK_POLICIES = (
    Policy(quick=True),
    make_policy({"quick": True, "require": ["v"], "max_fpp": 0.02}),
    make_policy({"quick": True, "engines": ["trino"], "ignore": ["efficiency"]}),
)
SPECS = (
    FilterSpec("v", fpp=0.05),
    FilterSpec(("id", "v"), fpp=0.3),
    FilterSpec("id", max_bytes=1024),
    FilterSpec("v", ndv=400),
)
ROWS = 60
ROW_GROUP_ROWS = 20


class Compared(NamedTuple):
    """How many files a scan answered, how many of these hold none of the values, and how many it
    declined."""

    answered: int = 0
    without: int = 0
    declined: int = 0

    def __add__(self, other: tuple[int, ...]) -> Compared:  # type: ignore[override]
        return Compared(*map(sum, zip(self, other, strict=True)))


def compare(
    verb: Probe | Check | AddFilter,
    paths: Sequence[str],
    *,
    strict: bool = False,
    edit: Edit | None = None,
) -> Compared:
    """Answer for these files in both ways; fail where the answers differ."""
    context = Context(strict=strict)
    scan: Scanner[Any] | None = verb.scanner(context, None, edit)
    assert scan is not None
    reports = scan(paths)
    answered = without = 0
    for path, report in zip(paths, reports, strict=True):
        if report is None:
            continue
        answered += 1
        without += isinstance(report, ProbeReport) and report.is_absent
        try:
            opened: Any = verb.carry(path, context, edit)
        except SbbfError as error:
            raise AssertionError(f"{path}: {verb}: {report!r}, but opening it fails") from error
        if not isinstance(verb, Probe):
            assert report == opened, f"{path}: {verb}: {report!r} is not {opened!r}"
            continue
        expected = replace(opened, bytes_read=report.bytes_read, requests=report.requests)
        assert report == expected, f"{path}: {verb}: {report!r} is not {expected!r}"
        assert tuple(report.hits) == tuple(expected.hits)
    return Compared(answered, without, len(paths) - answered)


# --- Files of many types ---


def _numbers(kind: pa.DataType) -> Callable[[random.Random], Any]:
    bits = kind.bit_width
    low = 0
    high = (1 << bits) - 1
    if pa.types.is_signed_integer(kind):
        low = -(1 << bits - 1)
        high = (1 << bits - 1) - 1
    usual = (low, high, 0, 7, 50)
    return lambda choose: choose.choice(
        (*usual, choose.randrange(100), choose.randrange(low, high))
    )


def _float(choose: random.Random) -> float:
    usual = (0.0, -0.0, float("inf"), 7.0)
    return choose.choice((*usual, choose.uniform(-1, 1), float(choose.randrange(50))))


def _with_nan(choose: random.Random) -> float:
    return float("nan") if choose.random() < 0.2 else _float(choose)


def _text(choose: random.Random) -> str:
    return choose.choice(("", "a", "é", f"name {choose.randrange(80)}", "x" * choose.randrange(90)))


_FIRST_DAY = date(1960, 1, 1)
TYPES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "int8": (pa.int8(), _numbers(pa.int8())),
    "uint16": (pa.uint16(), _numbers(pa.uint16())),
    "int32": (pa.int32(), _numbers(pa.int32())),
    "uint32": (pa.uint32(), _numbers(pa.uint32())),
    "int64": (pa.int64(), _numbers(pa.int64())),
    "uint64": (pa.uint64(), _numbers(pa.uint64())),
    "float16": (pa.float16(), lambda choose: float(choose.randrange(-9, 9)) / 4),
    "float": (pa.float32(), lambda choose: float(choose.randrange(-99, 99)) / 8),
    "double": (pa.float64(), _with_nan),
    "string": (pa.string(), _text),
    "binary": (pa.binary(), lambda choose: choose.randbytes(choose.randrange(5))),
    "fixed": (pa.binary(4), lambda choose: choose.randbytes(4)),
    "decimal": (
        pa.decimal128(22, 2),
        lambda choose: Decimal(choose.randrange(-(10 ** choose.randrange(1, 20)), 10**9)).scaleb(
            -2
        ),
    ),
    "date": (pa.date32(), lambda choose: _FIRST_DAY + timedelta(choose.randrange(30_000))),
    "time": (pa.time64("us"), lambda choose: time(choose.randrange(24), choose.randrange(60))),
    "timestamp": (
        pa.timestamp("us"),
        lambda choose: datetime(2020, 1, 1) + timedelta(seconds=choose.randrange(10**6)),
    ),
}


class SampleFile(NamedTuple):
    """A file, its column, and values of its type, of which some are stored."""

    data: bytes
    type_name: str
    values: tuple[Any, ...]


def sample(folder: Path, type_name: str, choose: random.Random) -> SampleFile:
    """Write a file of one of the types with random options of pyarrow."""
    kind, value_of = TYPES[type_name]
    stored = [None if choose.random() < 0.1 else value_of(choose) for _ in range(ROWS)]
    if choose.random() < 0.2:
        stored[:ROW_GROUP_ROWS] = [None] * ROW_GROUP_ROWS
    others = pa.array(range(ROWS), pa.int64())
    columns = {"first": others, "v": pa.array(stored, kind), "last": others}
    options: dict[str, Any] = {"row_group_size": choose.choice((ROW_GROUP_ROWS, ROWS))}
    filters = {}
    for name in columns:
        if choose.random() < (0.85 if name == "v" else 0.3):
            filters[name] = {"ndv": ROWS, "fpp": choose.choice((0.5, 0.05, 0.0001))}
    path = folder / "sample.parquet"
    pq.write_table(
        pa.table(columns),
        path,
        write_page_index=choose.random() < 0.5,
        write_statistics=choose.choice((True, True, False, ["v"])),
        use_dictionary=choose.random() < 0.5,
        store_schema=choose.random() < 0.5,
        version=choose.choice(("1.0", "2.6")),
        bloom_filter_options=filters or None,
        **options,
    )
    known = [value for value in stored if value is not None and value == value]
    values = [value_of(choose) for _ in range(3)]
    values += [choose.choice(known) for _ in range(2) if known]
    return SampleFile(path.read_bytes(), type_name, tuple(v for v in values if v == v))


# --- Damage ---


def split(data: bytes) -> tuple[bytes, FileMetaData]:
    """Return what is before the footer of a file, and the footer."""
    length = int.from_bytes(data[-8:-4], "little")
    return data[: -8 - length], parse_struct(FileMetaData, data[-8 - length : -8])


def join(start: bytes, metadata: FileMetaData) -> bytes:
    """Return the file with this footer."""
    raw = build_struct(metadata)
    return start + raw + len(raw).to_bytes(4, "little") + MAGIC


def change_kind(metadata: FileMetaData, choose: random.Random) -> None:
    """Change what decides the kind of a file."""
    match choose.randrange(6):
        case 0:
            metadata.created_by = choose.choice(
                (None, "parquet-mr", "parquet-mr version 1.6.0", "DuckDB v1.4", "impala version 4")
            )
        case 1:
            metadata.column_orders = choose.choice((None, (metadata.column_orders or [])[:1]))
        case 2:
            key = choose.choice(("pandas", "other", "drill.version", "org.apache.spark.version"))
            pair = KeyValue(key, choose.choice(("", "2.4", "{}")))
            metadata.key_value_metadata = [*(metadata.key_value_metadata or ()), pair]
        case 3:
            element = choose.choice(metadata.schema[1:])
            element.logicalType = choose.choice((None, metadata.schema[2].logicalType))
            element.converted_type = choose.choice((None, element.converted_type, 15, 18))
        case 4:
            element = choose.choice(metadata.schema[1:])
            element.repetition_type = choose.choice((0, 1, 2))
        case 5:
            _make_older(metadata, choose)


def _make_older(metadata: FileMetaData, choose: random.Random) -> None:
    """State bounds as older writers do."""
    metadata.column_orders = choose.choice((None, metadata.column_orders))
    for row_group in metadata.row_groups:
        for chunk in row_group.columns:
            statistics = chunk.meta_data.statistics
            if statistics is not None:
                statistics.min = statistics.min_value
                statistics.max = choose.choice((statistics.min_value, statistics.max_value))
                statistics.min_value = choose.choice((None, statistics.min_value))
                statistics.max_value = choose.choice((None, statistics.max_value))


def change_chunk(metadata: FileMetaData, size: int, choose: random.Random) -> None:
    """Change what a footer states of a column chunk."""
    row_group = choose.choice(metadata.row_groups)
    chunk = row_group.columns[choose.choice((0, 1, 1, 1, 1, 2))]
    other = choose.choice(choose.choice(metadata.row_groups).columns).meta_data
    meta = chunk.meta_data
    numbers = (None, 0, -1, 1, 5, 20, size // 2, size, 1 << 40, -(1 << 63), (1 << 63) - 1)
    match choose.randrange(14):
        case 0 | 1 | 2 | 3:
            statistics = meta.statistics
            if statistics is None:
                meta.statistics = copy.copy(other.statistics)
                return
            name = choose.choice(("min", "max", "min_value", "max_value", "null_count"))
            if name == "null_count":
                statistics.null_count = choose.choice((*numbers[:6], meta.num_values))
                return
            pool = (statistics.min, statistics.max, statistics.min_value, statistics.max_value)
            value = choose.choice((None, b"", *pool, choose.randbytes(len(pool[3] or b"1234"))))
            setattr(statistics, name, value)
        case 4:
            meta.num_values = choose.choice(numbers)
        case 5 | 6:
            offset = meta.bloom_filter_offset
            near = (
                other.bloom_filter_offset,
                max(0, min(offset or 4, size)) + choose.randrange(-40, 40),
            )
            meta.bloom_filter_offset = choose.choice((*numbers, *near))
        case 7:
            length = meta.bloom_filter_length
            near = (None, (length or 47) + choose.randrange(-2, 2))
            meta.bloom_filter_length = choose.choice(near)
        case 8:
            meta.type = choose.choice((None, other.type, 1, 2))
        case 9:
            chunk.file_path = choose.choice(("", "other.parquet", "./scanned.parquet"))
        case 10:
            name = choose.choice(
                (
                    "data_page_offset",
                    "dictionary_page_offset",
                    "index_page_offset",
                    "total_compressed_size",
                )
            )
            near_offset = max(30, meta.bloom_filter_offset or 100)
            setattr(meta, name, choose.choice((*numbers, near_offset, near_offset - 30)))
        case 11:
            for sort in choose.sample(("column_index", "offset_index"), 1):
                offset = choose.choice((*numbers[:6], meta.bloom_filter_offset))
                setattr(chunk, f"{sort}_offset", offset)
                setattr(chunk, f"{sort}_length", choose.choice(numbers[:6]))
        case 12:
            kept = choose.choice(("columns", "row_groups"))
            if kept == "columns":
                row_group.columns = row_group.columns[: choose.randrange(4)]
            else:
                metadata.row_groups = metadata.row_groups[: choose.randrange(3)]
            metadata.num_rows = choose.choice((None, 0, ROWS, -1))
        case _:
            other.bloom_filter_length = choose.choice((None, other.bloom_filter_length))
            if meta.bloom_filter_offset and choose.random() < 0.3:
                # A copy of the header of another filter, whose bitset runs into this one.
                before = min(meta.bloom_filter_offset, size) - choose.randrange(1, 64)
                other.bloom_filter_offset = max(before, 0)
            for each in metadata.row_groups:
                for column in each.columns:
                    if choose.random() < 0.5:
                        column.meta_data.bloom_filter_length = None


def _damage_pages(data: bytes, metadata: FileMetaData, choose: random.Random) -> bytes:
    """Damage the first pages of a chunk; the other bytes of the file stay where they are."""
    meta = choose.choice(metadata.row_groups).columns[1].meta_data
    start = meta.dictionary_page_offset or meta.data_page_offset or 4
    end = start + (meta.total_compressed_size or 0)
    pages = damage(data[start:end], choose)[: end - start]
    return data[:start] + pages.ljust(end - start, b"\0") + data[end:]


def mutants(data: bytes, choose: random.Random, count: int) -> Iterator[bytes]:
    """Yield the file with other facts in its footer, or with damaged bytes."""
    start, metadata = split(data)
    for _ in range(count):
        match choose.randrange(9):
            case 0:
                yield damage(data, choose)
            case 3:
                yield _damage_pages(data, metadata, choose)
            case 1:
                footer = data[len(start) : -8]
                damaged = damage(footer, choose)
                yield start + damaged + len(damaged).to_bytes(4, "little") + MAGIC
            case 2:
                # A filter, its header among them.
                changed = bytearray(start)
                places = [
                    chunk.meta_data.bloom_filter_offset
                    for row_group in metadata.row_groups
                    for chunk in row_group.columns
                    if 0 < (chunk.meta_data.bloom_filter_offset or 0) < len(start) - 40
                ]
                if places:
                    at = choose.choice(places)
                    part = choose.random()
                    if part < 0.3 and at > 64:
                        before = at - choose.randrange(20, 64)
                        changed[before : before + 16] = changed[at : at + 16]
                    elif part < 0.6:
                        changed[at + choose.randrange(20)] ^= 1 << choose.randrange(8)
                    else:
                        changed[at + 15 :] = bytes(len(changed) - at - 15)
                yield bytes(changed) + data[len(start) :]
            case _:
                mutant = copy.deepcopy(metadata)
                for _ in range(choose.choice((1, 1, 2, 4))):
                    if mutant.row_groups and all(
                        len(each.columns or ()) == 3 for each in mutant.row_groups
                    ):
                        change_chunk(mutant, len(data), choose)
                yield join(start, mutant)


def compare_mutants(folder: Path, seed: int, rounds: int, per_round: int = 12) -> Counter[str]:
    """Compare answers for generated and damaged files; return how many a scan gave and declined."""
    choose = random.Random(seed)
    folder.mkdir(exist_ok=True)
    paths = [str(folder / f"{number}" / "scanned.parquet") for number in range(per_round + 1)]
    for path in paths:
        Path(path).parent.mkdir(exist_ok=True)
    total = Compared()
    for _ in range(rounds):
        made = sample(folder, choose.choice(tuple(TYPES)), choose)
        start, metadata = split(made.data)
        change_kind(metadata, choose)
        # The files of one scan have two kinds.
        other = join(start, metadata)
        half = per_round // 2
        files = [made.data, *mutants(made.data, choose, half - 1)]
        files += [other, *mutants(other, choose, per_round - half)]
        if choose.random() < 0.5:
            files.reverse()
        for path, data in zip(paths, files, strict=True):
            Path(path).write_bytes(data)
        values = [choose.choice(made.values) for _ in range(choose.choice((1, 1, 2, 3)))]
        verbs: list[Probe | Check] = [Probe("v", values, filters_only=choose.random() < 0.3)]
        verbs += [Probe("v", [value]) for value in made.values]
        verbs.append(Probe("v", values, confirm=True, rows=choose.random() < 0.5))
        verbs.append(Probe("v", values, also={"last": [choose.randrange(2 * ROWS)]}))
        verbs += [Check(policy) for policy in QUICK_POLICIES]
        for verb in verbs:
            total += compare(verb, paths, strict=choose.random() < 0.3)
    return Counter(total._asdict())


# --- Filters that fit their values ---


def fitting_sample(path: Path, choose: random.Random) -> bytes:
    """Write a file whose filters are about as large as its values need, so that some have nothing
    wrong, and others are a little too small or too large."""
    rows = choose.choice((100, 400, 1500))
    row_group_rows = choose.choice((rows, rows, -(-rows // 2)))
    ids = [choose.randrange(1 << 60) for _ in range(rows)]
    if choose.random() < 0.3:
        ids.sort()
    columns = {
        "id": pa.array(ids),
        "v": pa.array([f"value {number:x}" for number in ids]),
        "few": pa.array([number % 50 for number in ids], pa.int32()),
    }
    filters = {}
    for name in columns:
        if choose.random() < 0.6:
            ndv = 50 if name == "few" else row_group_rows
            share = choose.choice((0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 4.0))
            filters[name] = {
                "ndv": max(1, int(ndv * share)),
                "fpp": choose.choice((0.3, 0.05, 0.01, 0.001)),
            }
    pq.write_table(
        pa.table(columns),
        path,
        row_group_size=row_group_rows,
        write_page_index=choose.random() < 0.3,
        bloom_filter_options=filters or None,
        use_dictionary=choose.random() < 0.3,
        compression=choose.choice(("none", "snappy")),
    )
    return path.read_bytes()


def compare_fitting_files(
    folder: Path, seed: int, rounds: int, *, num_mutants: int = 0
) -> Counter[str]:
    """Compare checks of such files and of damaged ones, and requests for filters; return how many a
    scan answered and declined, and for how many all filters are there (`without`)."""
    choose = random.Random(seed)
    total = Compared()
    for number in range(rounds):
        data = fitting_sample(folder / "sample.parquet", choose)
        paths = []
        for at, each in enumerate((data, *mutants(data, choose, num_mutants))):
            path = folder / f"{number}-{at}.parquet"
            path.write_bytes(each)
            paths.append(str(path))
        for policy in QUICK_POLICIES:
            total += compare(Check(policy), paths)
        for spec in SPECS:
            complete = compare(AddFilter(spec), paths, edit=Edit(in_place=True))
            total += Compared(0, complete.answered, complete.declined)
    return Counter(total._asdict())
