"""The parts of Iceberg's metadata, damaged and hostile ones too."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")


from extensions.tables.iceberg.iceberg_tables import (
    ADD,
    delete_by_position,
    edit_metadata,
    make_copies,
    newest_metadata,
    open_table,
    source_of,
    to_hadoop,
)
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader, build_file, iter_values, parse_header
from sbbf_tool.extensions.avro.schema import parse_schema
from sbbf_tool.extensions.tables.iceberg.manifest import (
    ADDITION,
    DELETION,
    EXISTING,
    ManifestFile,
    build_entry,
    build_manifest,
    build_manifest_list,
    parse_manifest,
    parse_manifest_list,
)
from sbbf_tool.extensions.tables.iceberg.metadata import (
    PartitionField,
    build_metadata,
    parse_metadata,
)
from sbbf_tool.extensions.tables.iceberg.schema import PartitionTexts, build_column_names
from sbbf_tool.extensions.tables.iceberg.source import identity, is_below, location_of, open_name
from sbbf_tool.extensions.tables.iceberg.table import open_folder
from support.damage import damage, places_of, with_value
from support.tables import each

NESTED = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "tags", "required": False,
            "type": {"type": "list", "element-id": 3, "element": "string"}},
        {
            "id": 4,
            "name": "m",
            "required": False,
            "type": {"type": "map", "key-id": 5, "key": "string", "value-id": 6, "value": {
                "type": "struct", "fields": [{"id": 7, "name": "x.y", "required": False,
                    "type": "decimal(9, 2)"}],
            }},
        },
    ],
}  # fmt: skip


def test_columns_have_paths_without_scaffolding():
    mapping = [
        {"field-id": 1, "names": ["id", "old_id"]},
        {"field-id": 2, "names": ["t"], "fields": [{"field-id": 3, "names": ["element"]}]},
        {"field-id": 4, "names": ["m"], "fields": [
            {"field-id": 5, "names": ["key"]},
            {"field-id": 6, "names": ["value"], "fields": [{"field-id": 7, "names": ["xy"]}]},
        ]},
        {"names": ["nothing"]},
    ]  # fmt: skip
    names = build_column_names(NESTED, {"schema.name-mapping.default": json.dumps(mapping)})
    assert names.by_id == {1: ("id",), 3: ("tags",), 5: ("m", "key"), 7: ("m", "value", "x.y")}
    assert names.by_path == {
        ("id",): ("id",), ("old_id",): ("id",), ("t",): ("tags",), ("m", "key"): ("m", "key"),
        ("m", "value", "xy"): ("m", "value", "x.y"),
    }  # fmt: skip


def test_a_field_of_a_struct_may_be_called_element():
    struct = {
        "type": "struct",
        "fields": [{"id": 3, "name": "element", "required": False, "type": "long"}],
    }
    schema = {"type": "struct", "fields": [
        {"id": 1, "name": "s", "required": False, "type": struct},
        {"id": 4, "name": "l", "required": False,
            "type": {"type": "list", "element-id": 5, "element-required": False,
                "element": "long"}},
    ]}  # fmt: skip
    mapping = [
        {"field-id": at, "names": [name], "fields": [{"field-id": at + 2, "names": ["element"]}]}
        for at, name in ((1, "s"), (3, "l"))
    ]
    names = build_column_names(schema, {"schema.name-mapping.default": json.dumps(mapping)})
    assert names.by_path == {("s", "element"): ("s", "element"), ("l",): ("l",)}


@each(
    "transform, kind, value, text",
    [
        ("identity", "string", "a", "a"),
        ("identity", "boolean", True, "true"),
        ("identity", "date", 19782, "2024-02-29"),
        ("identity", "timestamp", 1_709_209_800_000_000, "2024-02-29T12:30:00"),
        ("identity", "timestamptz", 1_709_209_800_000_000, "2024-02-29T12:30:00+00:00"),
        ("identity", "timestamp_ns", 1_709_209_800_000_000_001, "2024-02-29T12:30:00.000000001"),
        ("identity", "time", 45_000_000_000, "12:30:00"),
        ("identity", "decimal(9,2)", b"\xff\xff", "-0.01"),
        ("identity", "uuid", bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ("identity", "binary", b"ab", "YWI="),
        ("identity", "uuid", "wrong", "wrong"),
        ("identity", "uuid", "16 characters...", "16 characters..."),
        ("truncate[2]", "string", "ab", "ab"),
        ("year", "date", 54, "2024"),
        ("month", "date", -1, "1969-12"),
        ("day", "timestamp", 19782, "2024-02-29"),
        ("hour", "timestamp", 474780, "2024-02-29-12"),
        ("void", "string", "a", None),
        ("identity", "string", None, None),
        ("new transform", "string", 3, "3"),
    ],
)
def test_partition_values_as_text(transform, kind, value, text):
    field = PartitionField(1000, 1, "f", transform)
    texts = PartitionTexts({1: (("a", "b"), kind)}, {0: [field]})
    assert texts.text_of(field, value) == text
    assert texts.names_of(field) == {"identity": ("f", "a.b"), "void": ()}.get(transform, ("f",))


def test_locations():
    assert (
        open_name("file:/a/b%20 c")
        == open_name("file:///a/b%20 c")
        == open_name("/a/b%20 c")
        == "/a/b%20 c"
    )
    assert identity("s3a://b/k") == identity("s3://b/k")
    assert identity("file:/a//b") == identity("/a/b")
    assert location_of("/a/new", ("file:/x", "file:///a")) == "file:///a/new"
    assert location_of("/c/new", ("file:/x",)) == "/c/new"
    assert is_below("/a/b/c", "file:/a/b/")
    assert not is_below("/a/b/../c", "/a/b")
    assert not is_below("/a/bc", "/a/b")
    for location in ("a/b", "", "file:a", "file://host/a", "file://host"):
        with pytest.raises(UnreadableError):
            open_name(location)


def header_of(name, fields):
    text = json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": n, "field-id": i, "type": t} for n, i, t in fields],
        }
    )
    return AvroHeader(text, parse_schema(text), "deflate", bytes(16), 0)


def test_a_table_of_format_1_that_became_format_2():
    """Manifests of format 1 have other names of fields, and no sequence numbers: those of their
    files are 0."""
    header = header_of(
        "manifest_file",
        [("manifest_path", 500, "string"), ("manifest_length", 501, "long"),
            ("partition_spec_id", 502, "int"),
         ("added_snapshot_id", 503, ["null", "long"]),
         ("added_data_files_count", 504, ["null", "int"]), ("new", 9999, "string")],
    )  # fmt: skip
    records = [
        {
            "manifest_path": "/m", "manifest_length": 5, "partition_spec_id": 0,
            "added_snapshot_id": 7,
            "added_data_files_count": 1, "new": "x",
        },
    ]  # fmt: skip
    header, (file,) = parse_manifest_list(build_file(header, records))
    assert (file.sequence_number, file.snapshot_id, file.record["added_files_count"]) == (0, 7, 1)
    _, (upgrade,) = parse_manifest_list(
        build_manifest_list(header, [file.record], 2, {"snapshot-id": "8"})
    )
    assert (
        upgrade.record["sequence_number"],
        upgrade.record["added_files_count"],
        upgrade.record["new"],
    ) == (0, 1, "x")

    data_file = {
        "type": "record", "name": "r2", "fields": [
            {"name": "file_path", "field-id": 100, "type": "string"},
            {"name": "file_format", "field-id": 101, "type": "string"},
            {"name": "partition", "field-id": 102,
                "type": {"type": "record", "name": "r102", "fields": []}},
            {"name": "record_count", "field-id": 103, "type": "long"},
            {"name": "file_size_in_bytes", "field-id": 104, "type": "long"},
            {"name": "block_size_in_bytes", "field-id": 105, "type": "long"},
            {"name": "split_offsets", "field-id": 132,
                "type": ["null", {"type": "array", "items": "long"}]},
        ],
    }  # fmt: skip
    header = header_of(
        "manifest_entry",
        [("status", 0, "int"), ("snapshot_id", 1, ["null", "long"]), ("data_file", 2, data_file)],
    )
    stored = {
        "file_path": "/f", "file_format": "parquet", "partition": {}, "record_count": 3,
        "file_size_in_bytes": 4,
        "block_size_in_bytes": 64, "split_offsets": [4],
    }  # fmt: skip
    manifest = parse_manifest(
        build_file(header, [{"status": 1, "snapshot_id": None, "data_file": stored}]), file
    )
    (entry,) = manifest.entries()
    assert (entry.sequence_number, entry.file_sequence_number, entry.snapshot_id, entry.format) == (
        0,
        0,
        7,
        "PARQUET",
    )
    records = [
        build_entry(entry, EXISTING, 7, 3),
        build_entry(entry, DELETION, 8, 3),
        build_entry(entry, ADDITION, 8, 3, {"file_path": "/g", "file_size_in_bytes": 9}),
    ]
    data = build_manifest(manifest.header, records, 3)
    existing, deletion, addition = parse_manifest(
        data, ManifestFile("/m2", 0, 0, 2, 8, 100, False, {})
    ).entries()
    assert [(each.status, each.sequence_number, each.file_sequence_number) for each in (existing,
        deletion, addition)] == [
        (0, 0, 0), (2, 0, 0), (1, 0, 2),
    ]  # fmt: skip
    assert [each.first_row_id for each in (existing, deletion, addition)] == [100, None, 103]
    assert addition.file == {
        **stored,
        "file_path": "/g",
        "file_size_in_bytes": 9,
        "content": 0,
        "first_row_id": None,
    }


METADATA = {
    "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
    "last-sequence-number": 3,
    "last-updated-ms": 9_000, "schemas": [{"schema-id": 0, **NESTED}], "current-schema-id": 0,
    "partition-specs": [], "next-row-id": 50,
    "current-snapshot-id": -1, "unknown": [1],
}  # fmt: skip


def test_metadata_keeps_what_it_does_not_know():
    before = parse_metadata(gzip.compress(json.dumps(METADATA).encode()))
    assert before.current is None
    snapshot = {
        "snapshot-id": 5,
        "sequence-number": 4,
        "timestamp-ms": 9_001,
        "manifest-list": "/l",
        "first-row-id": 50,
        "added-rows": 7,
    }
    after = json.loads(build_metadata(before, "/t/metadata/v1.metadata.json", snapshot, {"a": "b"}))
    changes = {name: value for name, value in after.items() if METADATA.get(name) != value}
    assert changes == {
        "last-sequence-number": 4,
        "last-updated-ms": 9_001,
        "next-row-id": 57,
        "current-snapshot-id": 5,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": 5, "type": "branch"}},
        "snapshot-log": [{"timestamp-ms": 9_001, "snapshot-id": 5}],
        "metadata-log": [{"timestamp-ms": 9_000, "metadata-file": "/t/metadata/v1.metadata.json"}],
        "properties": {"a": "b"},
    }


def test_a_small_file_cannot_take_much_memory(monkeypatch):
    from sbbf_tool.extensions.tables.iceberg import metadata

    monkeypatch.setattr(metadata, "MAX_METADATA", 1000)
    with pytest.raises(UnreadableError, match="decompresses to more than"):
        parse_metadata(gzip.compress(b" " * 2000))
    with pytest.raises(UnreadableError, match="not complete"):
        parse_metadata(gzip.compress(b"{}")[:-3])


pytestmark = pytest.mark.slow

WRONG = (None, True, -5, 1 << 70, 1.5, "x", [], {}, [1], {"a": 1}, "../../x", "\0")


@pytest.fixture
def folder(catalog, table, tmp_path) -> Path:
    file = next(iter(open_table(catalog).live_files()))
    delete_by_position(source_of(catalog), tmp_path, {f"file://{file.path}": [0]}, bounds=False)
    table.refresh()
    with table.transaction() as transaction:
        transaction.set_properties(
            {"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'}
        )
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


def test_wrong_values_in_the_metadata(folder):
    path = newest_metadata(folder)
    text = path.read_text()
    outcomes = set()
    before = json.loads(text)
    documents = [*WRONG]
    for number, place in enumerate(places_of(before)):
        documents += [with_value(before, place, value) for value in WRONG[number % 3 :: 3]]
    for tree in documents:
        try:
            parse_metadata(json.dumps(tree).encode())
        except UnreadableError:
            outcomes.add("unreadable")
            continue
        path.write_text(json.dumps(tree))
        outcomes.add(outcome(folder))
    assert outcomes >= {"unreadable", "read"}


@each(
    "pattern",
    [
        "v1.metadata.json",
        "snap-*.avro",
        "*-m0.avro",
        "????????????????.avro",
        "../../../../deletes-*.parquet",
    ],
)
def test_damaged_bytes(folder, pattern):
    paths = sorted(folder.glob(f"metadata/{pattern}"))
    chance = random.Random(pattern)
    for path in paths:
        data = path.read_bytes()
        for _ in range(40):
            path.write_bytes(
                damage(
                    data[: chance.randrange(len(data))] if chance.random() < 0.3 else data, chance
                )
            )
            outcome(folder)
        path.write_bytes(b"")
        assert outcome(folder) in ("unreadable", "read")
        path.unlink()
        assert outcome(folder) in ("unreadable", "read")
        path.write_bytes(data)
    assert outcome(folder) == "read"


def test_a_small_manifest_cannot_hold_many_entries(folder, monkeypatch):
    from sbbf_tool.extensions.tables.iceberg import manifest

    data = next(folder.glob("metadata/snap-*.avro")).read_bytes()
    _, (file, *_) = parse_manifest_list(data)
    entries = parse_manifest(Path(file.path.removeprefix("file://")).read_bytes(), file).entries
    assert list(entries())
    monkeypatch.setattr(manifest, "MAX_MANIFEST", 60)
    for parse in (entries, lambda: parse_manifest_list(data)):
        with pytest.raises(UnreadableError, match="decompress to more than"):
            list(parse())


def test_a_manifest_list_is_read_until_a_manifest_is_named_twice(folder):
    path = next(folder.glob("metadata/snap-*.avro"))
    header = parse_header(path.read_bytes())
    (record, *_) = iter_values(path.read_bytes(), header)
    data = build_file(header, [record, record]) + b"damaged"
    with pytest.raises(UnreadableError, match="names a manifest twice"):
        parse_manifest_list(data)


def test_wrong_values_in_manifests(folder):
    for path in [*folder.glob("metadata/snap-*.avro"), *folder.glob("metadata/*-m0.avro")]:
        data = path.read_bytes()
        header = parse_header(data)
        records = list(iter_values(data, header))
        for number, place in enumerate(places_of(records)):
            for value in (
                -1,
                7,
                (1 << 63) - 1,
                "",
                "x",
                "file:x",
                "file://host/x",
                "s3://b/x",
                None,
                b"",
                [],
            )[number % 4 :: 4]:
                try:
                    path.write_bytes(build_file(header, with_value(records, place, value)))
                except SbbfError:
                    continue  # the schema does not permit the value
                outcome(folder)
        path.write_bytes(data)


def test_schemas_of_manifests_that_lie(folder):
    """The places of partition values come from the text of the schema, the values from what was
    parsed."""
    field = {"name": "a", "type": "int", "field-id": 1000}
    path = next(folder.glob("metadata/*-m0.avro"))
    header = parse_header(path.read_bytes())
    values = list(iter_values(path.read_bytes(), header))
    for kind, message in [
        (
            {"type": {"type": "record", "name": "p", "fields": []}, "fields": [field, field]},
            "not records of Iceberg",
        ),
        ({"type": "map", "values": "int", "fields": [field]}, "not records of Iceberg"),
        ({"type": "record", "name": "p", "fields": [field, field]}, "two fields of one name"),
        (
            {"type": "record", "name": "p", "fields": [{**field, "field-id": [1000]}]},
            "the bytes contradict|remain after the last value",
        ),
    ]:
        tree = json.loads(header.schema_text)
        file = next(each for each in tree["fields"] if each["name"] == "data_file")["type"]
        next(each for each in file["fields"] if each["name"] == "partition")["type"] = kind
        path.write_bytes(build_file(replace(header, schema_text=json.dumps(tree)), values))
        with pytest.raises(UnreadableError, match=message):
            use(folder)


@each(
    "fields, message",
    [
        ({"snapshot_log": 5}, "snapshot-log must be of type list, not 5"),
        ({"metadata_log": [5]}, "metadata-log is not a list of objects"),
        ({"format_version": ...}, "format-version must be a positive number"),
        ({"current_snapshot_id": 5}, "current-snapshot-id is 5, but the branch main is at"),
        ({"location": ...}, "location is missing"),
        ({"schemas": ...}, "schema is missing"),
        ({"snapshots": []}, "is not among the snapshots"),
        ({"table_uuid": "x"}, "table-uuid 'x' is not a UUID"),
        (
            {"properties": {"schema.name-mapping.default": "{}"}},
            "name-mapping.default is not a JSON list",
        ),
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
        (
            {"format-version": 4},
            "lake:n.t: the table has format version 4; versions 1, 2 and 3 are supported",
        ),
        (
            {"location": ...},
            "lake:n.t: the metadata of the table contradicts the format: location: Field required",
        ),
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
    path.write_text(
        "{no"
        if fields is None
        else json.dumps({name: value for name, value in tree.items() if value is not ...})
    )
    with pytest.raises(RefusedError if "version 4" in message else UnreadableError) as caught:
        open_table(catalog)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_nesting_is_limited(folder):
    deep = {"type": "list", "element-id": 1, "element": "long", "element-required": False}
    for number in range(2, 200):
        deep = {"type": "list", "element-id": number, "element": deep, "element-required": False}
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 500, "name": "x", "required": False, "type": deep}],
    }
    edit_metadata(folder, schemas=[schema])
    with pytest.raises(UnreadableError, match="nested more than 100 deep"):
        use(folder)
    edit_metadata(folder, format_version=4)
    with pytest.raises(
        RefusedError, match="the table has format version 4; versions 1, 2 and 3 are supported"
    ):
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


def test_a_version_that_java_is_about_to_commit_makes_no_table_of_a_catalog(catalog, table):
    folder = to_hadoop(table)
    (folder / "metadata" / "12345678-90ab-4cde-8f01-234567890abc.metadata.json").write_bytes(b"{")
    iceberg = open_folder(str(folder))
    assert iceberg.commit(make_copies(iceberg), ADD).num_files > 0
