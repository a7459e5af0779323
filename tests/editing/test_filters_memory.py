"""Filters leave memory as they are made: whatever their number, memory holds only those being
built."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import SbbfError, add_filters, remove_filters, repair, resize_filters, verify
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import HashMemory
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.file.context import Context
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.work import Work
from sbbf_tool.storage import spool
from sbbf_tool.storage.spool import Spool
from sbbf_tool.verbs.add_filter import AddFilter
from support.tables import each

pytestmark = pytest.mark.slow

NUM_BYTES = 1 << 20
NDV = 600_000
"""Distinct values, for which a filter has `NUM_BYTES`."""
MANY = 48
JOBS = 2
_ARRAYS = 3 << 18 if os.environ.get("SBBF_KERNEL") == "numpy" else 0
"""Of numpy, through which the kernel of that name works."""
BOUND = (2 * JOBS + 1) * NUM_BYTES + _ARRAYS
"""A filter and its copy, while it is folded, written or compared, for each job; and all else."""
EDIT = Edit(in_place=True, jobs=1)
SPEC = FilterSpec(("v",), ndv=NDV)


def write_row_groups(path: Path, count: int) -> Path:
    with pq.ParquetWriter(path, pa.schema([("v", pa.int64())]), use_dictionary=False) as writer:
        for number in range(count):
            writer.write_table(pa.table({"v": range(number * 50, number * 50 + 50)}))
    return path


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return write_row_groups(tmp_path / "many.parquet", MANY)


@pytest.fixture
def refuse_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every filter goes to the temporary file."""
    monkeypatch.setattr(Spool, "MEMORY_BYTES", 0)
    monkeypatch.setattr(HashMemory, "MOST_BYTES", 0)


def count_bytes_in_memory(work: Callable[[], object]) -> int:
    """The most bytes that were allocated at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def damage(path: Path) -> None:
    """Take every filter's bits away, so that each must be rebuilt."""
    data = bytearray(path.read_bytes())
    metadata = pq.read_metadata(path)
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(0)
        end = chunk.bloom_filter_offset + chunk.bloom_filter_length
        data[end - NUM_BYTES : end] = bytes(NUM_BYTES)
    path.write_bytes(data)


def add(path: Path, **ways: object) -> object:
    return add_filters(
        path,
        ["v"],
        ndv=NDV,
        jobs=JOBS,
        **({"in_place": True} if not ways.get("output") else {}),
        **ways,
    )


WORKS: dict[str, tuple[Callable[[Path], object] | None, Callable[[Path], object]]] = {
    "add in place": (None, add),
    "add elsewhere": (None, lambda path: add(path, output=path.with_suffix(".out"))),
    "append": (None, lambda path: add(path, append=True)),
    "add, dry run": (None, lambda path: add(path, dry_run=True)),
    "fold": (add, lambda path: resize_filters(path, max_bytes=NUM_BYTES // 2, in_place=True)),
    "rebuild": (
        lambda path: (add(path), damage(path)),
        lambda path: repair(path, in_place=True, jobs=JOBS),
    ),
    "one file of a lake": (
        None,
        lambda path: Work(AddFilter(SPEC), Context(), EDIT)(str(path), JOBS),
    ),
}


@pytest.mark.usefixtures("refuse_to_hold")
@each("before, work", WORKS)
def test_bytes_held_are_those_of_the_filters_under_way(many, before, work):
    if before is not None:
        before(many)
    peak = count_bytes_in_memory(lambda: work(many))
    assert peak < BOUND < MANY * NUM_BYTES / 8


@pytest.mark.usefixtures("refuse_to_hold")
@each("ways", [{}, {"append": True}, {"output": "out.parquet"}])
def test_the_file_is_the_same_however_its_filters_wait(tmp_path, many, monkeypatch, ways):
    """In memory, in a temporary file of the kind without a name, or of one that had a name for a
    moment."""

    def write() -> bytes:
        path = Path(shutil.copy(many, tmp_path / "copy.parquet"))
        arguments = {
            **ways,
            **({"output": tmp_path / "out.parquet"} if "output" in ways else {"in_place": True}),
        }
        add_filters(path, ["v"], ndv=1000, jobs=JOBS, **arguments)
        result = Path(arguments.get("output", path))
        data = result.read_bytes()
        result.unlink()
        return data

    content = write()
    monkeypatch.delattr(os, "O_TMPFILE")
    assert write() == content
    monkeypatch.setattr(Spool, "MEMORY_BYTES", 1 << 30)
    assert write() == content
    assert {file.name for file in tmp_path.iterdir()} <= {"many.parquet", "copy.parquet"}


@pytest.mark.usefixtures("refuse_to_hold")
def test_spooled_filters_are_private(many, monkeypatch):
    modes = []
    open_spool = Spool._open

    def looking(self: Spool) -> int:
        fd = open_spool(self)
        status = os.fstat(fd)
        modes.append((status.st_mode & 0o777, status.st_nlink))
        return fd

    monkeypatch.setattr(Spool, "_open", looking)
    add(many)
    monkeypatch.delattr(os, "O_TMPFILE")
    add(many, rebuild="all")
    assert modes == [(0o600, 0)] * 2


@pytest.mark.usefixtures("refuse_to_hold")
def test_a_bitset_of_an_encrypted_column_is_never_on_disk_in_the_clear(
    fixtures, tmp_path, monkeypatch
):
    path = Path(
        shutil.copy(
            fixtures / "encrypted" / "java-columns.parquet.encrypted", tmp_path / "file.parquet"
        )
    )
    secret = {"keys": json.loads((fixtures / "encrypted" / "keys.json").read_text())["keys"]}
    remove_filters(path, keys=secret, in_place=True)
    waited = []
    append = Spool.append
    monkeypatch.setattr(
        Spool, "append", lambda self, data: (waited.append(bytes(data)), append(self, data))[1]
    )
    bitsets = []
    fold = BloomFilter.fold_to_fpp
    monkeypatch.setattr(
        BloomFilter,
        "fold_to_fpp",
        lambda self, fpp: (bitsets.append(bytes((folded := fold(self, fpp)).bitset)), folded)[1],
    )
    add_filters(path, ["name"], keys=secret, in_place=True)
    assert bitsets
    assert waited
    assert not any(bitset in data for bitset in bitsets for data in waited)
    assert verify(path, keys=secret).is_sound


# What the disk cannot hold


class Disk:
    """A file system with so many bytes free."""

    f_frsize = 4096
    f_blocks = 1 << 30

    def __init__(self, free: int) -> None:
        self.f_bavail = free // self.f_frsize


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool.os, "statvfs", lambda folder: Disk(MANY * NUM_BYTES))


def refuse_to_read(*arguments: object) -> None:
    raise AssertionError("a chunk was read")


REFUSED = {
    "add": lambda path: add(path),
    "append": lambda path: add(path, append=True),
    "dry run": lambda path: add(path, dry_run=True),
    "elsewhere": lambda path: add(path, output=path.with_suffix(".out")),
}


@pytest.mark.usefixtures("small_disk")
@each("work", REFUSED)
def test_what_the_disk_cannot_hold_is_refused_before_the_work(many, monkeypatch, work):
    monkeypatch.setattr("sbbf_tool.editing.build._build", refuse_to_read)
    before = many.read_bytes()
    message = (
        rf"filters take {MANY * NUM_BYTES:,} bytes, .* has only {MANY * NUM_BYTES:,} bytes free"
    )
    with pytest.raises(RefusedError, match=message) as caught:
        work(many)
    assert caught.value.exit_code == 4
    assert caught.value.file == str(many)
    assert many.read_bytes() == before


@pytest.mark.usefixtures("refuse_to_hold")
@each("append", [False, True])
def test_a_disk_that_is_full_after_all_is_an_error_of_writing(many, monkeypatch, append):
    write = os.pwrite

    def full(fd: int, data: memoryview, position: int) -> int:
        if position + len(data) > 3 * NUM_BYTES:
            raise OSError(28, "No space left on device")
        return write(fd, data, position)

    monkeypatch.setattr(spool.os, "pwrite", full)
    before = many.read_bytes()
    with pytest.raises(WriteError, match="no space left") as caught:
        add(many, append=append)
    assert caught.value.exit_code == 5
    assert many.read_bytes() == before
    assert [file.name for file in many.parent.iterdir()] == [many.name]


@pytest.mark.usefixtures("refuse_to_hold")
def test_a_temporary_file_with_other_bytes_is_detected(many, monkeypatch):
    read = Spool.read
    monkeypatch.setattr(
        Spool, "read", lambda self, offset, length: bytes(len(read(self, offset, length)))
    )
    before = many.read_bytes()
    for work in (
        add,
        lambda path: require_success(Work(AddFilter(SPEC), Context(), EDIT)(str(path))),
    ):
        with pytest.raises(SbbfError, match="nothing was changed"):
            work(many)
    assert many.read_bytes() == before


def require_success(row: object) -> None:
    assert row.status == "failed"
    raise SbbfError(row.reason)
