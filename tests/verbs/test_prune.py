"""`prune`: readers that never query a filter get the same rows and read fewer bytes.

`prune` with values or datasets of other types than the file: it never removes a row that a full
scan finds.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.file import scan
from support.newer_pyarrow import arrow_type
from support.scans import TYPES, mutants, sample
from support.tables import each

ROWS, ROW_GROUP_ROWS, FILES = 40_000, 10_000, 4
DAYS = (1, 2)


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    """Files in folders `day=1` and `day=2`, of a random even `id` spread over everything, with
    filters; `name` has none."""
    folder = tmp_path_factory.mktemp("lake")
    random = np.random.default_rng(3)
    for number in range(FILES):
        path = folder / f"day={DAYS[number % 2]}" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        ids = random.integers(0, 1 << 40, ROWS) * 2
        ids[:2] = 0, 1 << 41
        table = pa.table(
            {
                "id": ids,
                "number": range(number * ROWS, (number + 1) * ROWS),
                "name": [f"n{n}" for n in range(ROWS)],
            }
        )
        pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS)
        sbbf_tool.add_filters(path, ["id"], in_place=True)
    return folder


def some_id(lake: Path, number: int, row: int) -> int:
    (path,) = lake.glob(f"*/{number}.parquet")
    return pq.read_table(path, columns=["id"], partitioning=None)["id"][row].as_py()


def test_a_pruned_dataset_gives_the_same_rows_and_reads_fewer_bytes(lake):
    whole = ds.dataset(str(lake), partitioning="hive", format="parquet")
    for value in (some_id(lake, 1, 25_000), (1 << 40) + 1):
        condition = ds.field("id") == value
        expected = whole.to_table(filter=condition)
        report = sbbf_tool.prune(whole, "id", [value])
        rows = report.dataset().to_table(filter=condition)
        assert rows.equals(expected)
        assert rows.schema.names == ["id", "number", "name", "day"]
        assert report.bytes_to_read < report.total_bytes / 4
        assert report.row_groups <= 2
        assert report.skipped_by_filter == report.total_row_groups - report.row_groups
    assert expected.num_rows == 0


def test_row_groups_outside_the_dataset_stay_outside(lake):
    value = some_id(lake, 0, 5)
    whole = ds.dataset(lake, partitioning="hive")
    with pytest.raises(UsageError, match="prune first, then filter"):
        sbbf_tool.prune(whole.filter(ds.field("day") == 2), "id", [value])
    subsets = [fragment.subset(row_group_ids=[1, 3]) for fragment in whole.get_fragments()]
    half = ds.FileSystemDataset(subsets, whole.schema, whole.format, whole.filesystem)
    report = sbbf_tool.prune(half, "number", [ROWS // 4 * 3 + 1, 1])
    assert report.total_row_groups == FILES * 2
    assert [file.row_groups for file in report.files] == [(3,)]


def test_a_union_of_datasets_is_pruned(lake):
    parts = [ds.dataset(lake / f"day={day}") for day in DAYS]
    value = some_id(lake, 1, 3)
    report = sbbf_tool.prune(ds.dataset(parts), "id", [value])
    assert report.total_files == FILES
    assert report.dataset().to_table(filter=ds.field("id") == value).num_rows == 1


def test_a_file_without_the_column_remains(lake, tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"something": [1, 2]}), path)
    report = sbbf_tool.prune([*sorted(lake.glob("*/*.parquet")), path], "number", [-1])
    assert [file.file for file in report.files] == [str(path)]
    assert report.warnings[0].startswith(f"{path}: not pruned: there is no column 'number'")


def test_a_column_without_values_has_the_type_of_a_later_file(tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, value in zip(paths, (None, 7), strict=True):
        pq.write_table(pa.table({"v": [value]}), path)
    assert sbbf_tool.prune(paths, "v", [7]).dataset().to_table()["v"].to_pylist() == [None, 7]


def test_invalid_requests_are_usage_errors(lake, tmp_path):
    with pytest.raises(UsageError, match="no column 'idd'"):
        sbbf_tool.prune(lake, "idd", [1])
    with pytest.raises(UsageError, match="no value"):
        sbbf_tool.prune(lake, "id", [])
    with pytest.raises(UsageError):
        sbbf_tool.prune(lake, "id", ["not a number"])
    with pytest.raises(UnreadableError):
        sbbf_tool.prune(tmp_path / "none", "id", [1])
    with pytest.raises(UsageError, match="must consist of Parquet files"):
        sbbf_tool.prune(ds.dataset(pa.table({"id": [1]})), "id", [1])


def test_the_root_of_a_table_is_refused_and_its_dataset_is_pruned(fixtures, tmp_path):
    """After `add-filter`, the folder has the files of two versions, and each row twice."""
    deltalake = pytest.importorskip("deltalake")
    shutil.copytree(fixtures / "delta" / "orders", tmp_path / "orders")
    assert run(["add-filter", str(tmp_path / "orders"), "-c", "user_id", "--in-place"]) == 0
    table = deltalake.DeltaTable(tmp_path / "orders").to_pyarrow_dataset()
    user = table.to_table(columns=["user_id"])["user_id"][5].as_py()

    with pytest.raises(
        RefusedError,
        match=r"the folder is the root of a table of Delta, and also has files of its earlier "
        r"versions; give a dataset",
    ):
        sbbf_tool.prune(tmp_path / "orders", "user_id", [user])
    is_user = ds.field("user_id") == user
    rest = sbbf_tool.prune(table, "user_id", [user]).dataset()
    assert rest.to_table(filter=is_user).num_rows == table.to_table(filter=is_user).num_rows > 0


def test_the_root_of_an_iceberg_table_is_refused(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").touch()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    with pytest.raises(RefusedError, match="table of Iceberg, and also has files of its earlier"):
        sbbf_tool.prune(tmp_path, "id", [1])


UTC = dt.UTC
NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 123456)

STORED = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [0, 1, -1, 100]),
    "int16": (pa.int16(), [0, 1, -1, 300]),
    "int32": (pa.int32(), [0, 1, -1, 70_000, 16_777_217]),
    "int64": (pa.int64(), [0, 1, -1, 2**40, 2**53 + 1]),
    "uint8": (pa.uint8(), [0, 1, 255]),
    "uint32": (pa.uint32(), [0, 1, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 1, 2**63]),
    "float": (pa.float32(), [0.0, -0.0, 0.1, 1.0, 2.5, math.inf, math.nan]),
    "double": (pa.float64(), [0.0, -0.0, 0.1, 1.0, 2.5, 1e300, math.inf, math.nan]),
    "decimal32": (pa.decimal128(5, 1), [Decimal("0.1"), Decimal("1.0"), Decimal("2.5")]),
    "decimal": (
        pa.decimal128(9, 2),
        [Decimal("0.10"), Decimal("1.00"), Decimal("2.50"), Decimal("0.25")],
    ),
    "decimal128": (
        pa.decimal128(30, 4),
        [Decimal("0.1000"), Decimal("1.0000"), Decimal("123456789012345678.5")],
    ),
    "date": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2026, 1, 2)]),
    "date64": (pa.date64(), [dt.date(1970, 1, 1), dt.date(2026, 1, 2)]),
    "time ms": (pa.time32("ms"), [dt.time(0), dt.time(1, 2, 3, 4000)]),
    "time us": (pa.time64("us"), [dt.time(0), dt.time(1, 2, 3, 4000)]),
    "ms": (
        pa.timestamp("ms"),
        [dt.datetime(1970, 1, 1), dt.datetime(2026, 1, 2), NOON.replace(microsecond=123000)],
    ),
    "us": (pa.timestamp("us"), [dt.datetime(1970, 1, 1), dt.datetime(2026, 1, 2), NOON]),
    "ns": (pa.timestamp("ns"), [dt.datetime(1970, 1, 1), dt.datetime(2026, 1, 2), NOON]),
    "us UTC": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1970, 1, 1, tzinfo=UTC), NOON.replace(tzinfo=UTC)],
    ),
    "ms Berlin": (pa.timestamp("ms", "Europe/Berlin"), [dt.datetime(2026, 1, 2, 11, tzinfo=UTC)]),
    "string": (pa.string(), ["", "a", "1", "0.1", "null", "2026-01-02", "0x61", "true", "é"]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "1"]),
    "binary": (pa.binary(), [b"", b"a", b"0x61", b"null", b"\xff", b"1"]),
    "fixed": (pa.binary(4), [b"abcd", b"null", b"0x61", b"\0\0\0\1"]),
    "uuid": (pa.binary(16), [UUID(int=1).bytes, UUID(int=2).bytes]),
    "nothing": (pa.null(), [None]),
}
"""A name for each type that a file may have, and values of it: each is the only value of a row
group, and each occurs with null."""

READ = [kind for kind, _ in STORED.values()] + [
    pa.large_string(),
    arrow_type("string_view"),
    pa.large_binary(),
    pa.dictionary(pa.int8(), pa.large_string()),
    pa.decimal256(40, 4),
    pa.decimal128(5, 2),
    pa.timestamp("s"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("us", "America/New_York"),
    pa.duration("us"),
    pa.time64("ns"),
]

VALUES = [value for _, values in STORED.values() for value in values] + [
    None,
    44,
    3,
    0.5,
    0.25,
    float(np.float32(0.1)),
    np.float32(0.1),
    np.int16(1),
    2.0**53,
    Decimal("0.3"),
    Decimal("16777216"),
    dt.datetime(2026, 1, 2, 12, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    np.datetime64("2026-01-02T12:00:00.123456"),
    b"b",
    "b",
]


def write(
    path: Path, name: str, *, int96: bool = False, statistics: bool = True, dictionary: bool = True
) -> Path:
    kind, values = STORED[name]
    rows = [row for value in values for row in (value, None)]
    pq.write_table(
        pa.table({"v": pa.array(rows, kind), "at": range(len(rows))}),
        path,
        row_group_size=2,
        use_deprecated_int96_timestamps=int96,
        write_statistics=statistics,
        use_dictionary=dictionary,
    )
    if name not in ("bool", "nothing"):
        sbbf_tool.add_filters(path, ["v"], in_place=True)
    return path


def rows_of(dataset: ds.Dataset, value: object) -> list[int] | None:
    """The rows that a scan of all of them finds for `v = value`, or `v IS NULL`; None where pyarrow
    does not compare the two."""
    try:
        literal = (
            pa.scalar(value, pa.uint64()) if isinstance(value, int) and value > 2**63 - 1 else value
        )
        condition = ds.field("v").is_null() if value is None else ds.field("v") == literal
        # Without the dataset's own pruning, which by statistics compares in the type of the file.
        return dataset.to_table().filter(condition)["at"].to_pylist()
    except (pa.ArrowException, OSError, TypeError, ValueError, OverflowError):
        return None


def compare(dataset: ds.Dataset, values: list[object]) -> Counter[str]:
    """Prune by each of the values, and hold what is left against a full scan."""
    outcomes: Counter[str] = Counter()
    for value in values:
        expected = rows_of(dataset, value)
        if expected is None:
            outcomes["not compared by pyarrow"] += 1
            continue
        try:
            report = sbbf_tool.prune(dataset, "v", [value])
        except UsageError:
            outcomes["refused"] += 1
            continue
        assert rows_of(report.dataset(), value) == expected, (value, dataset.schema)
        outcomes["found" if expected else "not found"] += 1
        outcomes["row groups taken out"] += report.total_row_groups - report.row_groups
    return outcomes


def values_read(dataset: ds.Dataset) -> list[object]:
    """The values of a dataset as it reads them; an empty list where pyarrow refuses to."""
    try:
        return list(dict.fromkeys(value for value in dataset.to_table()["v"].to_pylist()))
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return []


@pytest.mark.heavy
@pytest.mark.parametrize("name", STORED)
def test_pruning_is_correct_for_every_type_read_as_every_other_type(tmp_path, name):
    outcomes: Counter[str] = Counter()
    variants = [
        {},
        {"statistics": False},
        {"dictionary": False},
        *([{"int96": True}] if name in ("ns", "us", "ms") else []),
    ]
    for number, variant in enumerate(variants):
        path = write(tmp_path / f"{number}.parquet", name, **variant)
        for kind in (None, *READ):
            schema = None if kind is None else pa.schema([("v", kind), ("at", pa.int64())])
            dataset = ds.dataset(path, schema=schema)
            if read := values_read(dataset):
                outcomes += compare(dataset, [*read, *VALUES])
    assert outcomes["found"] >= len(STORED[name][1]) * len(variants)
    if name not in ("nothing", "bool"):
        assert outcomes["row groups taken out"] > 0


NARROWER = [
    # Values of the file, the type that the dataset reads them as, and one of the values that it
    # reads.
    (pa.array([0.1, 7.5]), pa.float32(), float(np.float32(0.1))),
    (pa.array([1, 2], pa.int32()), pa.string(), "1"),
    (pa.array(["01", "2"]), pa.int64(), 1),
    (pa.array([NOON, NOON + dt.timedelta(days=1)], pa.timestamp("us")), pa.date32(), NOON.date()),
    (pa.array([Decimal("0.10"), Decimal("7.00")]), pa.float64(), 0.1),
    (
        pa.array([dt.datetime(2026, 1, 2, 12), dt.datetime(2026, 1, 3)], pa.timestamp("us")),
        pa.timestamp("us", "UTC"),
        NOON.replace(microsecond=0, tzinfo=UTC),
    ),
    # The same type, and a text that means something else in this tool.
    (pa.array([b"0x61", b"b"]), pa.binary(), "0x61"),
    (pa.array([b"null", b"b"]), pa.binary(), "null"),
    (pa.array([b"null", b"0x61"], pa.binary(4)), pa.binary(4), "null"),
]


@pytest.mark.parametrize(
    ("stored", "kind", "value"),
    NARROWER,
    ids=lambda parameter: str(getattr(parameter, "type", parameter)),
)
def test_a_value_that_only_the_dataset_type_holds_keeps_its_rows(tmp_path, stored, kind, value):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"v": stored, "at": [0, 1]}), path, row_group_size=1)
    sbbf_tool.add_filters(path, ["v"], in_place=True)
    dataset = ds.dataset(path, schema=pa.schema([("v", kind), ("at", pa.int64())]))
    assert rows_of(dataset, value) == [0]
    report = sbbf_tool.prune(dataset, "v", [value])
    assert rows_of(report.dataset(), value) == [0]
    assert bool(report.warnings) == (stored.type != kind)


WIDER = [
    (pa.array([1, 2], pa.int8()), pa.int64(), 1),
    (pa.array([0.5, 2.5], pa.float32()), pa.float64(), 0.5),
    (pa.array([Decimal("0.1"), Decimal("7.0")]), pa.decimal128(12, 4), Decimal("0.1")),
    (
        pa.array([NOON.replace(microsecond=0), NOON], pa.timestamp("ms")),
        pa.timestamp("ns"),
        NOON.replace(microsecond=0),
    ),
    (pa.array(["a", "b"]), pa.dictionary(pa.int32(), pa.string()), "a"),
]


@pytest.mark.parametrize(
    ("stored", "kind", "value"),
    WIDER,
    ids=lambda parameter: str(getattr(parameter, "type", parameter)),
)
def test_a_cast_that_keeps_values_does_not_prevent_pruning(tmp_path, stored, kind, value):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"v": stored, "at": [0, 1]}), path, row_group_size=1)
    dataset = ds.dataset(path, schema=pa.schema([("v", kind), ("at", pa.int64())]))
    report = sbbf_tool.prune(dataset, "v", [value])
    assert rows_of(report.dataset(), value) == [0]
    assert (report.row_groups, report.warnings) == (1, ())


def test_a_value_that_the_type_of_one_file_cannot_hold_is_absent_there(tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"v": pa.array([1], pa.int32()), "at": [0]}), path)
    dataset = ds.dataset(path, schema=pa.schema([("v", pa.int64()), ("at", pa.int64())]))
    for values, remaining in (([2**40, 1], 1), ([2**40], 0)):
        report = sbbf_tool.prune(dataset, "v", values)
        assert (len(report.dataset().to_table()), report.warnings) == (remaining, ())
    with pytest.raises(UsageError, match="is not a value of INT32"):
        sbbf_tool.prune(path, "v", [2**40])


@pytest.mark.parametrize("value", [0.1, np.float64(0.1), np.float32(0.1), math.inf, math.nan])
@pytest.mark.parametrize("name", ["decimal32", "decimal", "decimal128"])
def test_a_float_for_a_decimal_is_refused(tmp_path, name, value):
    path = write(tmp_path / "v.parquet", name)
    for ask, argument in (
        (sbbf_tool.prune, [value]),
        (sbbf_tool.probe, [value]),
        (sbbf_tool.explain, value),
    ):
        with pytest.raises(UsageError, match="give a Decimal or text"):
            ask(path, "v", argument)
    for same in (Decimal("0.1"), "0.1", "0.10", 0):
        assert rows_of(sbbf_tool.prune(path, "v", [same]).dataset(), Decimal(str(same))) == rows_of(
            ds.dataset(path), Decimal(str(same))
        )


def test_int96_read_in_a_coarser_unit_keeps_its_rows(tmp_path):
    path = tmp_path / "v.parquet"
    stored = pa.array([NOON, NOON + dt.timedelta(days=1)], pa.timestamp("ns"))
    pq.write_table(
        pa.table({"v": stored, "at": [0, 1]}),
        path,
        use_deprecated_int96_timestamps=True,
        row_group_size=1,
    )
    sbbf_tool.add_filters(path, ["v"], in_place=True)
    value = NOON.replace(microsecond=123000)
    dataset = ds.dataset(path, format=ds.ParquetFileFormat(coerce_int96_timestamp_unit="ms"))
    assert rows_of(dataset, value) == [0]
    assert rows_of(sbbf_tool.prune(dataset, "v", [value]).dataset(), value) == [0]
    exact = sbbf_tool.prune(path, "v", [NOON])
    assert (exact.row_groups, rows_of(exact.dataset(), NOON)) == (1, [0])


@pytest.mark.parametrize("flavor", ["hive", None, "expression"])
def test_a_partition_column_that_the_files_also_hold(tmp_path, flavor):
    folder = tmp_path / ("day=5" if flavor == "hive" else "5")
    folder.mkdir()
    pq.write_table(
        pa.table({"v": pa.array([1, 2], pa.int32()), "at": [0, 1]}),
        folder / "0.parquet",
        row_group_size=1,
    )
    sbbf_tool.add_filters(folder / "0.parquet", ["v"], in_place=True)
    if flavor == "expression":
        format_ = ds.ParquetFileFormat()
        local = pa.fs.LocalFileSystem()
        fragment = format_.make_fragment(
            str(folder / "0.parquet"), local, partition_expression=ds.field("v") == 5
        )
        dataset = ds.FileSystemDataset([fragment], fragment.physical_schema, format_, local)
    else:
        folder.rename(tmp_path / ("v=5" if flavor == "hive" else "5"))
        schema = pa.schema([("v", pa.int32())])
        dataset = ds.dataset(tmp_path, partitioning=ds.partitioning(schema, flavor=flavor))
    assert set(dataset.to_table()["v"].to_pylist()) == {5}
    for value in (5, 1, None):
        assert rows_of(sbbf_tool.prune(dataset, "v", [value]).dataset(), value) == rows_of(
            dataset, value
        )
    (warning,) = sbbf_tool.prune(dataset, "v", [1]).warnings
    assert "from the partition, not from the file" in warning
    if flavor == "hive":
        assert rows_of(sbbf_tool.prune(tmp_path, "v", [5]).dataset(), 5) == [0, 1]


def test_the_first_file_lacks_the_column(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "0.parquet")
    pq.write_table(
        pa.table({"a": [3, 4], "v": [30, 40], "at": [0, 1]}),
        tmp_path / "1.parquet",
        row_group_size=1,
    )
    pq.write_table(
        pa.table({"a": [3, 4], "v": pa.array([50, 60], pa.int32())}),
        tmp_path / "2.parquet",
        row_group_size=1,
    )
    report = sbbf_tool.prune(tmp_path, "v", [40])
    assert report.dataset().schema.names == ["a", "v", "at"]
    assert rows_of(report.dataset(), 40) == [1]
    assert [(row.file[-9:], row.row_groups) for row in report.files] == [
        ("0.parquet", (0,)),
        ("1.parquet", (1,)),
    ]
    assert report.dataset().to_table(filter=ds.field("v").is_null())["a"].to_pylist() == [1, 2]
    with pytest.raises(
        UsageError,
        match=r"the schema of the dataset has no column 'v'.*pass pyarrow.dataset.dataset a schema",
    ):
        sbbf_tool.prune(ds.dataset(tmp_path), "v", [40])
    with pytest.raises(UsageError, match="no column 'w'"):
        sbbf_tool.prune(tmp_path, "w", [40])


def test_a_later_file_that_is_not_parquet(tmp_path):
    pq.write_table(pa.table({"v": [1]}), tmp_path / "0.parquet")
    (tmp_path / "1.parquet").write_bytes(b"PAR1 and nothing more")
    for data in (tmp_path, ds.dataset([tmp_path / "0.parquet", tmp_path / "1.parquet"])):
        with pytest.raises(UnreadableError, match=r"1\.parquet"):
            sbbf_tool.prune(data, "v", [1])


# --- Scans ---


def _write_mutants(folder: Path, data: bytes, choose: random.Random) -> None:
    """Write a file twice, and again with other facts or damaged bytes, where pyarrow finds a
    schema."""
    folder.mkdir()
    for number, each_data in enumerate((data, data, *mutants(data, choose, 6))):
        path = folder / f"{number}.parquet"
        path.write_bytes(each_data)
        try:
            pq.read_schema(path)
        except (OSError, pa.ArrowException):
            path.unlink()


def _outcome_of(folder: Path, values: list[object]) -> dict[str, object]:
    try:
        report = sbbf_tool.prune(str(folder), "v", values)
    except SbbfError as error:
        return {"error": str(error)}
    return {**vars(report), "bytes_read": None, "requests": None, "_dataset": None}


@pytest.mark.skipif(not scan.can_scan(), reason="the extension _scan was not built")
@each("seed", range(3), heavy=range(3, 30))
def test_a_scan_prunes_as_opening_each_file_does(tmp_path, monkeypatch, seed):
    choose = random.Random(seed)
    skipped = 0
    scanned = []
    really_scan = scan.FileScan.__call__

    def scan_files(self, paths):
        answers = really_scan(self, paths)
        scanned.extend(answer for answer in answers if answer is not None)
        return answers

    monkeypatch.setattr(scan.FileScan, "__call__", scan_files)
    for type_name in TYPES:
        made = sample(tmp_path, type_name, choose)
        folder = tmp_path / f"{seed}-{type_name}"
        _write_mutants(folder, made.data, choose)
        values = [choose.choice(made.values), made.values[0]]
        with monkeypatch.context() as without_scan:
            without_scan.setattr(scan, "can_scan", lambda: False)
            expected = _outcome_of(folder, values)
        assert _outcome_of(folder, values) == expected
        skipped += expected.get("skipped_by_filter", 0)
    assert len(scanned) > 20
    assert skipped > 5
