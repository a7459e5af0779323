"""The JSON Schemas in docs/reference/schemas: they follow the reports, and the documents of every command follow them.

`pytest tests/cli/test_json_schemas.py --bless` writes them as they are now. `test_json_documents` validates what the commands print.
"""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator, ValidationError

from sbbf_tool.cli import run
from support.json_schemas import DOCUMENTS, FOLDER, build_schema, path_of, validate


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_files_follow_the_reports(name: str, request: pytest.FixtureRequest) -> None:
    schema = build_schema(name)
    Draft202012Validator.check_schema(schema)
    text = f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n"
    if request.config.getoption("--bless"):
        FOLDER.mkdir(exist_ok=True)
        path_of(name).write_text(text)
    assert path_of(name).read_text() == text


def test_there_are_no_other_files() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {path_of(name).name for name in DOCUMENTS}


def test_wrong_documents_are_found(fixtures, capsys) -> None:
    assert run(["inspect", str(fixtures / "events.parquet"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document)
    for wrong in ({"version": 1}, {"rows": "7"}, {"rows": None}, {"filters": [{}]}, {"no_such_field": 1}, {"columns": {}}):
        with pytest.raises(ValidationError):
            validate({**document, **wrong})
    with pytest.raises(ValidationError):
        validate({name: value for name, value in document.items() if name != "rows"})
