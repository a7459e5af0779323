"""Building an index for a data file, and verifying that an index has no false negatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon.build_index import DistinctHashes, build
from sbbf_tool.extensions.paimon.data_types import parse_type_text
from sbbf_tool.extensions.paimon.index_container import build_container, lay_out, parse_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon, verify_pair
from sbbf_tool.storage.folders import LocalFolders
from support.paimon_tables import NewFile, NewTable

COLUMNS = {"id": pa.array(range(100)), "s": pa.array([f"value {at % 20}" if at % 3 else None for at in range(100)])}


@pytest.fixture
def data_file(tmp_path: Path) -> str:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    return str(path)


def test_types_come_from_the_table_around(files: LocalFolders, new_table: NewTable) -> None:
    """A TIMESTAMP(9) that a writer stored in milliseconds, and ORC, which does not state the precision."""
    columns = {"t": pa.array([1_700_000_000_123], pa.timestamp("ms"))}
    maker = new_table([("t", "TIMESTAMP(9)")])
    new = NewFile(columns)
    maker.commit(new)
    (column,) = build(files, str(new.path), [IndexRequest("t")]).columns
    assert column.type == "TIMESTAMP(9)"
    loose = maker.root.parent / "loose.orc"
    orc.write_table(pa.table(columns), loose)
    with pytest.raises(UsageError, match="does not determine the Paimon type"):
        build(files, str(loose), [IndexRequest("t")])
    (column,) = build(files, str(loose), [IndexRequest("t", type=parse_type_text("TIMESTAMP(3)"))]).columns
    assert column.type == "TIMESTAMP(3)"


def test_distinct_hashes_of_many_batches() -> None:
    distinct = DistinctHashes()
    for at in range(40):
        distinct.add(np.arange(at * 50_000, at * 50_000 + 100_000).astype(np.uint64), 100_000, 0)
    assert len(distinct.hashes) == 39 * 50_000 + 100_000
    assert distinct.rows == 4_000_000


def test_values_that_are_hard_to_format(files: LocalFolders, tmp_path: Path) -> None:
    index, data = tmp_path / "x.index", tmp_path / "x.parquet"
    broken_text = pa.array([b"\xff\xfe"]).view(pa.string())
    far = pa.array([2**62], pa.int64()).view(pa.timestamp("us"))
    pq.write_table(pa.table({"b": pa.array([b"\xff"]), "s": broken_text, "t": far}), data)
    index.write_bytes(build_container(lay_out({name: {"bloom-filter": bytes(3) + b"\1\0"} for name in "bst"})))
    columns = verify_pair(files, str(index), str(data)).files[0].columns
    assert [column.examples for column in columns] == [("0xff",), ("0xfffe",), ("a value that cannot be formatted",)]


def test_a_column_that_cannot_be_verified_does_not_hide_the_others(files: LocalFolders, new_table: NewTable, tmp_path: Path) -> None:
    index = tmp_path / "x.index"
    maker = new_table([("id", "BIGINT"), ("s", "INT"), ("broken", "BIGINT")])
    new = NewFile(COLUMNS | {"broken": COLUMNS["id"]})
    maker.commit(new)
    data_file = str(new.path)
    good = parse_container(build(files, data_file, [IndexRequest("id")]).container)
    body = good.body_of(good.indexes["id"]["bloom-filter"])
    index.write_bytes(
        build_container(lay_out({name: {"bloom-filter": body} for name in ("nope", "id", "s")} | {"broken": {"bloom-filter": b""}}))
    )
    report = verify_pair(files, str(index), data_file)
    problems = {column.column: column.problem for column in report.files[0].columns}
    assert problems["id"] is None
    assert problems["nope"] == "there is no column 'nope'; the columns of the file are id, s, broken"
    assert problems["s"] == "column s: the column is stored as string, which contradicts its type INT"
    assert problems["broken"] == "the bloom-filter index has 0 bytes; expected at least 5: 4 for k and 1 for the bits"
    assert report.problems
    assert not report.has_false_negatives


def test_a_table_is_verified_file_by_file(files: LocalFolders, new_table: NewTable, data_file: str) -> None:
    container = build(files, data_file, [IndexRequest("id"), IndexRequest("s")]).container
    maker = new_table()
    lies = {"id": pa.array([5000]), "s": pa.array(["nowhere"])}
    maker.commit(NewFile(COLUMNS, name="good.parquet", embedded=container), NewFile(lies, name="lies.parquet", embedded=container))
    maker.commit(NewFile(COLUMNS, name="none.parquet"), NewFile(COLUMNS, name="broken.parquet", embedded=b"noise"))
    report = verify_paimon(str(maker.root))
    assert [(file.data_file, sum(column.false_negatives for column in file.columns), file.problem is None) for file in report.files] == [
        ("good.parquet", 0, True),
        ("lies.parquet", 2, True),
        ("none.parquet", 0, True),
        ("broken.parquet", 0, False),
    ]
    assert report.has_false_negatives
    assert report.problems
    (maker.root / "bucket-0" / "good.parquet").unlink()
    assert "no such file" in (verify_paimon(str(maker.root)).files[0].problem or "")
