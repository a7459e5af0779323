"""Every JSON document says which schema it has, and follows it; the table in docs/reference/json.md
names each, with fields that it has."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.parquet as pq
import pytest

from parts.commands import read_commands
from sbbf_tool.cli import run
from sbbf_tool.cli.schema import documents as all_documents
from support.every_command import COLUMN, DATA_FILE, FILE, TABLE, WORKING, formats_of
from support.json_schemas import validate

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
_ROW = re.compile(r"^\| `(sbbf\.[a-z-]+)` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
_TEXTS_BESIDE_FIELDS = re.compile(r"\(.*?\)")

OTHER_FILE = "<OTHER>"
OF_SEVERAL = (
    "inspect",
    "add-filter",
    "remove-filter",
    "verify",
    "check",
    "repair",
    "resize",
    "advise",
)
OTHER_WORDS = [
    ["rule"],
    ["add-filter", FILE, "-c", COLUMN, "--in-place"],
    ["probe", FILE, OTHER_FILE, "-c", COLUMN, "--value", "1"],
    ["explain", FILE, OTHER_FILE, "-c", COLUMN, "--value", "1"],
    ["explain", FILE, COLUMN, "1", "--run", "pyarrow"],
    *([name, OTHER_FILE, *WORKING[name]] for name in OF_SEVERAL),
    ["inspect", FILE, "torn.parquet"],
    ["repair", "delta", "--abandoned", "24h"],
]
"""Beside each command as it is."""


@pytest.fixture
def places(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    shutil.copy(fixtures / "pyarrow-filters.parquet", "it.parquet")
    shutil.copy(fixtures / "pyarrow-filters.parquet", "data.parquet")
    shutil.copytree(fixtures / "paimon" / "orders", "table")
    shutil.copy("it.parquet", "other.parquet")
    Path("torn.parquet").write_bytes(b"PAR1")
    deltalake.write_deltalake("delta", pq.read_table("it.parquet", columns=["id"]))
    return {
        FILE: "it.parquet",
        OTHER_FILE: "other.parquet",
        COLUMN: "id",
        TABLE: "table",
        DATA_FILE: "data.parquet",
    }


def documents(
    words: list[str], places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """What a command prints as JSON, the files as they were before."""
    before = {name: Path(places[name]).read_bytes() for name in (FILE, OTHER_FILE)}
    code = run([*(places.get(word, word) for word in words), "--format", "json"])
    for name, content in before.items():
        Path(places[name]).write_bytes(content)
    out, err = capsys.readouterr()
    assert code in (0, 1, 3), (words, err)
    assert out, (words, err)
    printed = [json.loads(line) for line in out.splitlines()]
    for document in printed:
        validate(document)
    return printed


@pytest.mark.slow
def test_the_docs_name_each_document_and_fields_that_it_has(places, capsys):
    fields = {
        name: re.findall(r"`(\w+)`", _TEXTS_BESIDE_FIELDS.sub("", row))
        for name, row in _ROW.findall(PAGE.read_text())
    }
    schemas = set()
    for words in [
        *(
            [*name.split(), *WORKING[name]]
            for name, command in read_commands().items()
            if ["--format", "json"] in formats_of(command)
        ),
        *OTHER_WORDS,
    ]:
        for document in documents(words, places, capsys):
            assert document["version"] == 0, words
            assert set(fields[document["schema"]]) <= document.keys(), words
            schemas.add(document["schema"])
    assert schemas == fields.keys() == {f"sbbf.{name}" for name in all_documents()}


def test_schemas_are_printed_by_their_names(capsys):
    assert run(["schema"]) == 0
    assert capsys.readouterr().out.split() == [f"sbbf.{name}" for name in all_documents()]
    for name in ("inspect", "sbbf.inspect"):
        assert run(["schema", name]) == 0
        assert json.loads(capsys.readouterr().out)["properties"]["schema"] == {
            "const": "sbbf.inspect"
        }
