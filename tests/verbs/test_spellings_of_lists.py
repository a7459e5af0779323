"""A lake whose writers name the elements of lists and the entries of maps differently: to readers
they are one column, and so any of the names means it in each file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import FilterSpec, add_filters, check, probe
from sbbf_tool.cli import run
from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import find_column, leaf_columns
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    FieldRepetitionType,
    FileMetaData,
    SchemaElement,
    Type,
)
from support.corpus_edits import edit_footer
from support.tables import each

SPELLINGS = {
    "new": ("list", "element", "key_value"),
    "item": ("list", "item", "entries"),
    "hive": ("bag", "array_element", "map"),
}
NAMES = [f"tags.{group}.{element}" for group, element, _ in SPELLINGS.values()]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("lake").mkdir()
    for name, (group, element, entries) in SPELLINGS.items():
        tags = [[f"{name}{number}"] for number in range(1000)]
        people = [[{"id": number, "array": [number]}] for number in range(1000)]
        pairs = pa.array([[(f"{name}k", f"{name}v")]] * 1000, pa.map_(pa.string(), pa.string()))
        path = Path("lake", f"{name}.parquet")
        pq.write_table(
            pa.table({"tags": tags, "people": people, "m": pairs}), path, use_dictionary=False
        )
        words = {"list": group, "element": element, "key_value": entries}

        def rename(metadata: FileMetaData, words: dict[str, str] = words) -> None:
            metadata.key_value_metadata = None
            for part in metadata.schema:
                part.name = words.get(part.name, part.name)
            for row_group in metadata.row_groups:
                for chunk in row_group.columns:
                    path = chunk.meta_data.path_in_schema
                    chunk.meta_data.path_in_schema = [words.get(part, part) for part in path]

        edit_footer(path, rename)
    return tmp_path


@each("name", [*NAMES, "tags"])
def test_a_gate_and_what_satisfies_it_mean_the_same_files(lake, name):
    gate = ["check", "lake", "--require", name, "--select", "missing-filter", "-q"]
    assert run(gate) == 1
    assert run(["add-filter", "lake", "-c", name, "--in-place", "-q"]) == 0
    for other in (*NAMES, "tags"):
        gate[3] = other
        assert run(gate) == 0
    for stored in SPELLINGS:
        for value, code in ((f"{stored}5", 0), ("none", 1)):
            assert run(["probe", "lake", name, value, "-q"]) == code
    for path in Path("lake").iterdir():
        assert run(["remove-filter", str(path), "-c", "tags", "--in-place", "-q"]) == 0


@each("name", NAMES)
def test_declared_filters_and_the_index(lake, name, capfd):
    spec = FilterSpec([name], 0.001)
    for path in Path("lake").iterdir():
        assert check(path, filters=spec).failed
        add_filters(path, [name], fpp=0.001, in_place=True)
        assert not check(path, filters=spec, ignore=["efficiency"]).failed
    assert run(["index", "lake", "-c", name, "-o", "lake.sbbfx", "-q"]) == 0
    capfd.readouterr()
    assert run(["probe", "lake.sbbfx", name, "hive7", "--format", "names"]) == 0
    assert capfd.readouterr().out == "lake/hive.parquet\n"
    assert run(["probe", "lake.sbbfx", name, "none", "-q"]) == 1
    shutil.rmtree("lake.sbbfx")
    for path in Path("lake").iterdir():
        assert run(["remove-filter", str(path), "-c", "tags", "--in-place", "-q"]) == 0


def test_structs_in_lists_and_maps(lake, capfd):
    for name, column in {
        "people.bag.array_element.id": "people.list.element.id",
        "people.list.item.array.bag.array_element": "people.list.element.array.list.element",
        "m.entries.value": "m.key_value.value",
        "m.map.key": "m.key_value.key",
    }.items():
        assert probe("lake/new.parquet", name, "5").column == column
    assert run(["probe", "lake", "m.key_value.value", "hivev", "--format", "json"]) == 0
    with pytest.raises(UsageError, match="is a group"):
        probe("lake/new.parquet", "people.list.element.array", 5)
    for line in capfd.readouterr().out.splitlines():
        document = json.loads(line)
        for column in document.get("named_columns", ()):
            assert column["reason"] is None


def test_a_value_of_a_map_is_not_called_by_the_key(lake):
    report = probe("lake/new.parquet", "M.key_value.value", "x", strict=False)
    reasons = [row_groups.reason for row_groups in report.inconclusive]
    assert reasons == [
        "the file does not have the column, but m.key_value.value, which readers may take for it"
    ]


def test_other_lists_are_other_columns(tmp_path):
    path = tmp_path / "a.parquet"
    table = {"nested": [[["x"]]], "plain": ["x"], "s": [{"list": {"element": "x"}}], "t": [["x"]]}
    pq.write_table(pa.table(table), path)
    for name in ("nested.bag.array_element", "plain.list.element", "s.list.item", "t.element"):
        with pytest.raises(UsageError):
            probe(path, name, "x")
    nested = "nested.bag.array_element.bag.array_element"
    assert probe(path, nested, "x").column == "nested.list.element.list.element"
    assert probe(path, "s.list.element", "x").column == "s.list.element"


def test_lists_of_two_levels():
    """As parquet-avro writes them."""
    root = SchemaElement(name="root", num_children=1)
    tags = SchemaElement(
        name="tags",
        num_children=1,
        repetition_type=FieldRepetitionType.OPTIONAL,
        converted_type=ConvertedType.LIST,
    )
    element = SchemaElement(
        name="array", type=Type.BYTE_ARRAY, repetition_type=FieldRepetitionType.REPEATED
    )
    columns = leaf_columns([root, tags, element])
    for name in ("tags", "tags.array", *NAMES):
        assert find_column(columns, name) is columns[0]
