"""The documents that commands print as JSON, held to the schemas that `sbbf schema` prints."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from sbbf_tool.cli.schema import build_schema


def validate(document: dict[str, Any]) -> None:
    """Raise `jsonschema.ValidationError` unless the document is as its schema says, and has no
    other field."""
    _validator(document["schema"].removeprefix("sbbf.")).validate(document)


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = build_schema(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(_without_other_fields(schema))


def _without_other_fields(schema: Any) -> Any:
    """The schema without room for other fields. For users it leaves some: a later release may add
    fields to a version."""
    if isinstance(schema, list):
        return [_without_other_fields(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _without_other_fields(value) for key, value in schema.items()}
    return (
        {**result, "additionalProperties": False}
        if isinstance(schema.get("properties"), dict)
        else result
    )
