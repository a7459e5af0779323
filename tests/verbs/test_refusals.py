"""What `add_filters` and `remove_filters` will not do, what they say would help, and that nothing
is written then."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sbbf_tool import (
    Edit,
    FilterSpec,
    RefusedError,
    UsageError,
    add_filters,
    inspect,
    remove_filters,
)
from sbbf_tool.errors import LockedError
from sbbf_tool.parquet.idl.ttypes import AesGcmV1, EncryptionAlgorithm, FileMetaData
from sbbf_tool.verbs import AddFilter
from support.corpus_edits import edit_footer
from support.samples import listing, write_events
from support.tables import each
from verbs.bad_files import assert_refused


@pytest.fixture
def filtered(plain):
    add_filters(plain, ["id"], in_place=True)
    return plain


# Columns


# Pages that are not here, or not in the clear


def test_pages_in_another_file(plain, tmp_path):
    def move_pages(metadata: FileMetaData) -> None:
        for chunk in metadata.row_groups[1].columns:
            chunk.file_path = "part-1.parquet"

    edit_footer(plain, move_pages)
    work = lambda: add_filters(plain, ["id"], in_place=True)  # noqa: E731
    assert_refused(
        work,
        tmp_path,
        message="pages are in another file",
        hint="part-1.parquet",
        place="column id, row group 1",
    )


@each("change", [add_filters, remove_filters])
def test_a_signed_footer(filtered, tmp_path, change):
    def sign(metadata: FileMetaData) -> None:
        metadata.encryption_algorithm = EncryptionAlgorithm(AES_GCM_V1=AesGcmV1())

    edit_footer(filtered, sign)
    work = lambda: change(filtered, ["id"], in_place=True)  # noqa: E731
    assert_refused(
        work,
        tmp_path,
        error=LockedError,
        message="the footer of the file is signed",
        hint="give the file's key",
    )


# Where the result goes


@each("change", [add_filters, remove_filters])
@each("both", [False, True])
def test_neither_or_both_ways_of_writing(filtered, tmp_path, change, both):
    ways = {"output": tmp_path / "out.parquet", "in_place": True} if both else {}
    work = lambda: change(filtered, ["id"], **ways)  # noqa: E731
    assert_refused(
        work,
        tmp_path,
        message="two targets are" if both else "no target is",
        hint="",
        error=UsageError,
    )


@each("change", [add_filters, remove_filters])
@each("kind", ["file", "folder", "dangling link", "the source itself"])
def test_a_target_that_exists(plain, filtered, tmp_path, change, kind):
    out = tmp_path / "out.parquet"
    if kind == "file":
        out.write_bytes(b"precious")
    elif kind == "folder":
        out.mkdir()
    elif kind == "dangling link":
        out.symlink_to("nowhere")
    else:
        out = filtered
    work = lambda: change(filtered, ["id"], output=out)  # noqa: E731
    assert_refused(work, tmp_path, message="the target exists", hint="name another")


# Tables that record the sizes of their files


def delta(table: Path) -> None:
    (table / "_delta_log").mkdir()
    (table / "_delta_log" / "00000000000000000000.json").write_text("{}")


def hudi(table: Path) -> None:
    (table / ".hoodie").mkdir()


def iceberg(table: Path) -> None:
    (table / "metadata").mkdir()
    (table / "metadata" / "00000-1f.metadata.json").write_text("{}")


def iceberg_of_hadoop(table: Path) -> None:
    (table / "metadata").mkdir()
    (table / "metadata" / "version-hint.text").write_text("1")


def paimon(table: Path) -> None:
    for name in ("snapshot", "manifest", "schema"):
        (table / name).mkdir()
    (table / "schema" / "schema-0").write_text("{}")


TABLES = [
    ("Delta", delta),
    ("Hudi", hudi),
    ("Iceberg", iceberg),
    ("Iceberg", iceberg_of_hadoop),
    ("Paimon", paimon),
]


@each("kind, make", TABLES)
def test_a_file_of_a_table(tmp_path, kind, make):
    table = tmp_path / "orders"
    data = table / "data" / "day=1"
    data.mkdir(parents=True)
    make(table)
    path = write_events(data / "part-0.parquet")
    outside = write_events(tmp_path / "loose.parquet")
    refused = {
        "message": f"the file belongs to {'an' if kind == 'Iceberg' else 'a'} {kind} table "
        f"({table})",
        "hint": "or allow changes to files of tables",
    }
    assert_refused(lambda: add_filters(path, ["id"], in_place=True), tmp_path, **refused)
    assert_refused(
        lambda: add_filters(outside, ["id"], output=data / "part-1.parquet"), tmp_path, **refused
    )
    linked = tmp_path / "linked.parquet"
    linked.symlink_to(path)
    assert_refused(lambda: add_filters(linked, ["id"], in_place=True), tmp_path, **refused)
    add_filters(path, ["id"], output=tmp_path / "out.parquet")
    recorded = path.stat().st_size
    (warning,) = add_filters(path, ["id"], in_place=True, allow_table_files=True).warnings
    assert warning.startswith(
        f"the {kind} table {table} records the size of each file: readers that use the recorded "
        "size see the old"
    )
    # As the warning says: such readers see the old file, as it was.
    as_recorded = tmp_path / "recorded.parquet"
    as_recorded.write_bytes(path.read_bytes()[:recorded])
    assert not any(row.has_filter for row in inspect(as_recorded).filters)
    assert_refused(lambda: remove_filters(path, in_place=True), tmp_path, **refused)
    (warning,) = add_filters(
        path, ["id"], ndv=10_000, rebuild="all", in_place=True, allow_table_files=True
    ).warnings
    assert "fail, because the file has no footer there any more" in warning
    (warning,) = remove_filters(path, in_place=True, allow_table_files=True).warnings
    assert "readers that use the recorded size fail" in warning
    (warning,) = add_filters(
        path, ["id"], output=data / "part-1.parquet", allow_table_files=True
    ).warnings
    assert f"the {kind} table {table} does not list the new file" in warning
    assert not add_filters(outside, ["id"], in_place=True, allow_table_files=True).warnings


def test_the_sizes_that_a_file_sink_of_spark_records(tmp_path):
    """Spark opens the files of such a folder at these sizes: it sees the footer that was at the end
    then."""
    folder = tmp_path / "sink" / "day=1"
    folder.mkdir(parents=True)
    path = write_events(folder / "part-0.parquet")
    assert not add_filters(path, ["id"], in_place=True).warnings
    (tmp_path / "sink" / "_spark_metadata").mkdir()
    for change, effect in (
        (lambda: add_filters(path, ["name"], in_place=True), "does not see the new footer"),
        (lambda: remove_filters(path, in_place=True), "fails if the file is shorter now"),
    ):
        (warning,) = change().warnings
        assert warning.startswith(
            f"{tmp_path}/sink/_spark_metadata, the log of Spark's file sink, records the size of "
            "each file"
        )
        assert warning.endswith(effect)
    assert not add_filters(path, ["id"], output=tmp_path / "sink" / "other.parquet").warnings


# A source that changes meanwhile


def append_a_byte(path: Path) -> None:
    with open(path, "ab") as stream:
        stream.write(b"x")


def rewrite(path: Path) -> None:
    stamp = os.stat(path)
    with open(path, "r+b") as stream:
        stream.write(b"PAR1")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))


def put_another_in_its_place(path: Path) -> None:
    other_path = path.with_name("other")
    shutil.copy(path, other_path)
    os.rename(other_path, path)


@each("meddle", [append_a_byte, rewrite, put_another_in_its_place])
@each("moment", ["reading id", "verifying id"])
@each("in_place", [True, False])
def test_a_source_that_changed_meanwhile(plain, tmp_path, meddle, moment, in_place):
    states: list[dict[str, bytes]] = []

    def progress(stage: str, done: int, total: int) -> None:
        if stage == moment and not states:
            meddle(plain)
            states.append(
                {name: data for name, data in listing(tmp_path).items() if not name.startswith(".")}
            )

    target = {"in_place": True} if in_place else {"output": tmp_path / "out.parquet"}
    with pytest.raises(RefusedError) as caught:
        AddFilter(FilterSpec("id"))(plain, Edit(**target), progress=progress)
    assert caught.value.message == "the file changed while it was worked on"
    assert caught.value.hint == "run the command again"
    assert listing(tmp_path) == states[0]


def test_a_target_that_comes_to_exist_meanwhile_is_not_overwritten(plain, tmp_path):
    out = tmp_path / "out.parquet"

    def progress(stage: str, done: int, total: int) -> None:
        out.write_bytes(b"precious")

    with pytest.raises(RefusedError, match="the target exists"):
        AddFilter(FilterSpec("id"))(plain, Edit(out), progress=progress)
    assert listing(tmp_path) == {"events.parquet": plain.read_bytes(), "out.parquet": b"precious"}
