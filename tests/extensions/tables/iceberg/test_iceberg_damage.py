"""Damaged and hostile metadata of Iceberg tables: one error of this package, and nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError
from sbbf_tool.extensions.avro.file import build_file, iter_values, parse_header
from sbbf_tool.extensions.tables.iceberg.metadata import parse_metadata
from sbbf_tool.extensions.tables.iceberg.table import open_folder
from support.iceberg_tables import ADD, delete_by_position, edit_metadata, make_copies, newest_metadata, open_table, source_of, to_hadoop
from support.tables import each

pytestmark = pytest.mark.slow
WRONG = (None, True, -5, 1 << 70, 1.5, "x", [], {}, [1], {"a": 1}, "../../x", "\0")


@pytest.fixture
def folder(catalog, table, tmp_path) -> Path:
    file = next(iter(open_table(catalog).live_files()))
    delete_by_position(source_of(catalog), tmp_path, {f"file://{file.path}": [0]}, bounds=False)
    table.refresh()
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'})
    return to_hadoop(table)


def use(folder):
    table = open_folder(str(folder))
    table.live_files()
    table.ensure_changeable()
    table.referenced({"/x"})


def outcome(folder):
    try:
        use(folder)
    except RefusedError:
        return "refused"
    except UnreadableError as error:
        problem = error
    else:
        return "read"
    assert problem.file, problem
    assert "\n" not in str(problem)
    assert len(str(problem)) < 1500
    return "unreadable"


def values_of(tree, path=()):
    yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from values_of(value, (*path, key))


def test_wrong_values_in_the_metadata(folder):
    path = newest_metadata(folder)
    text = path.read_text()
    outcomes = set()
    for number, place in enumerate(values_of(json.loads(text))):
        for value in WRONG[number % 3 :: 3]:
            tree = json.loads(text)
            if not place:
                tree = value
            else:
                target = tree
                for key in place[:-1]:
                    target = target[key]
                target[place[-1]] = value
            try:
                parse_metadata(json.dumps(tree).encode())
            except UnreadableError:
                outcomes.add("unreadable")
                continue
            path.write_text(json.dumps(tree))
            outcomes.add(outcome(folder))
    assert outcomes >= {"unreadable", "read"}


@each("pattern", ["v1.metadata.json", "snap-*.avro", "*-m0.avro", "????????????????.avro", "../../../../deletes-*.parquet"])
def test_damaged_bytes(folder, pattern):
    paths = sorted(folder.glob(f"metadata/{pattern}"))
    chance = random.Random(pattern)
    for path in paths:
        data = path.read_bytes()
        for _ in range(40):
            damage = bytearray(data)
            for _ in range(chance.choice((1, 1, 4))):
                damage[chance.randrange(len(data))] = chance.randrange(256)
            path.write_bytes(bytes(damage[: chance.randrange(len(data))] if chance.random() < 0.3 else damage))
            outcome(folder)
        path.write_bytes(b"")
        assert outcome(folder) in ("unreadable", "read")
        path.unlink()
        assert outcome(folder) in ("unreadable", "read")
        path.write_bytes(data)
    assert outcome(folder) == "read"


def test_wrong_values_in_manifests(folder):
    for path in [*folder.glob("metadata/snap-*.avro"), *folder.glob("metadata/*-m0.avro")]:
        data = path.read_bytes()
        header = parse_header(data)
        records = list(iter_values(data, header))
        for number, place in enumerate(values_of(records)):
            for value in (-1, 7, (1 << 63) - 1, "", "x", "file:x", "file://host/x", "s3://b/x", None, b"", [])[number % 4 :: 4]:
                changes = list(iter_values(data, header))
                target = changes
                for key in place[:-1]:
                    target = target[key]
                if not place:
                    continue
                target[place[-1]] = value
                try:
                    path.write_bytes(build_file(header, changes))
                except SbbfError:
                    continue  # the schema does not permit the value
                outcome(folder)
        path.write_bytes(data)


@each(
    "fields, message",
    [
        ({"format_version": ...}, "format-version must be a positive number"),
        ({"current_snapshot_id": 5}, "current-snapshot-id is 5, but the branch main is at"),
        ({"location": ...}, "location is missing"),
        ({"schemas": ...}, "schema is missing"),
        ({"snapshots": []}, "is not among the snapshots"),
        ({"table_uuid": "x"}, "table-uuid 'x' is not a UUID"),
        ({"properties": {"schema.name-mapping.default": "{}"}}, "name-mapping.default is not a JSON list"),
        ({"location": "relative/x"}, "the location is relative"),
    ],
)
def test_errors_name_the_file_and_the_field(folder, fields, message):
    edit_metadata(folder, **fields)
    with pytest.raises(UnreadableError, match=message) as caught:
        use(folder)
    assert caught.value.file == str(newest_metadata(folder))


@each(
    "fields, message",
    [
        ({"format-version": 4}, "lake:n.t: the table has format version 4; versions 1, 2 and 3 are supported"),
        ({"location": ...}, "lake:n.t: the metadata of the table contradicts the format: location: Field required"),
        (None, "lake:n.t: the metadata of the table contradicts the format: Invalid JSON"),
    ],
)
def test_damaged_metadata_of_a_catalog_is_one_line(catalog, table, fields, message):
    path = Path(table.metadata_location.removeprefix("file://"))
    tree = {**json.loads(path.read_text()), **(fields or {})}
    newest = path.parent / f"{path.name[:6]}00000000-0000-0000-0000-000000000000.metadata.json"
    newest.write_bytes(path.read_bytes())
    with pytest.raises(UnreadableError, match="2 metadata files have the largest number"):
        open_folder(str(path.parent.parent))
    newest.unlink()
    path.write_text("{no" if fields is None else json.dumps({name: value for name, value in tree.items() if value is not ...}))
    with pytest.raises(RefusedError if "version 4" in message else UnreadableError) as caught:
        open_table(catalog)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_nesting_is_limited(folder):
    deep = {"type": "list", "element-id": 1, "element": "long", "element-required": False}
    for number in range(2, 200):
        deep = {"type": "list", "element-id": number, "element": deep, "element-required": False}
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 500, "name": "x", "required": False, "type": deep}]}
    edit_metadata(folder, schemas=[schema])
    with pytest.raises(UnreadableError, match="nested more than 100 deep"):
        use(folder)
    edit_metadata(folder, format_version=4)
    with pytest.raises(RefusedError, match="the table has format version 4; versions 1, 2 and 3 are supported"):
        use(folder)
    newest_metadata(folder).write_text("[" * 100_000)
    with pytest.raises(UnreadableError, match="not valid JSON"):
        use(folder)


@each(
    "fields, message",
    [
        ({"properties": {"encryption.key-id": "k"}}, "encrypted with table encryption"),
        ({"location": "file:///elsewhere"}, "the table was moved or copied"),
    ],
)
def test_what_is_refused(folder, fields, message):
    copies = make_copies(open_folder(str(folder)))
    edit_metadata(folder, **fields)
    table = open_folder(str(folder))
    with pytest.raises(RefusedError, match=message):
        table.ensure_changeable()
    names = set(folder.rglob("*"))
    with pytest.raises(RefusedError, match=message):
        table.commit(copies, ADD)
    assert set(folder.rglob("*")) == names


def test_a_folder_without_metadata(tmp_path):
    with pytest.raises(UnreadableError, match="not an Iceberg table"):
        open_folder(str(tmp_path))
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "version-hint.text").write_text("7")
    with pytest.raises(UnreadableError, match="not an Iceberg table"):
        open_folder(str(tmp_path))


def test_a_version_that_java_is_about_to_commit_makes_no_table_of_a_catalog(catalog, table):
    folder = to_hadoop(table)
    (folder / "metadata" / "12345678-90ab-4cde-8f01-234567890abc.metadata.json").write_bytes(b"{")
    iceberg = open_folder(str(folder))
    assert iceberg.commit(make_copies(iceberg), ADD).num_files > 0
