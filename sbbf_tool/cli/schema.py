"""`sbbf schema`: the JSON Schemas of the documents, derived from the dataclasses of the reports and
their documentation."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.render import SCHEMA_VERSION
from sbbf_tool.errors import UsageError
from sbbf_tool.extension import load, named
from sbbf_tool.hints import Fix, suggest
from sbbf_tool.verbs.verb import Verb

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass
class FileWithoutReport:
    """A file without a report: it was skipped, refused or failed."""

    file: str
    status: str
    """`skipped`, `refused` or `failed`."""
    reason: str | None
    exit_code: int


@dataclass
class ColumnCount:
    """A column that the command names, in all files."""

    name: str
    types: dict[str, object]
    """Number of files by type of the column."""
    missing: int
    """Number of files that lack the column."""


@dataclass
class SummaryDocument:
    """The last document of a command on several files: the number of files of each status."""

    command: str
    files: int
    done: int
    skipped: int
    not_applicable: int
    """Number of files that lack the column."""
    refused: int
    failed: int
    links: int
    exit_code: int
    totals: dict[str, object]
    """Sums over all reports; they depend on the command."""
    columns: tuple[ColumnCount, ...] = field(metadata={"optional": True})
    """The columns that the command names, if it names any."""
    unchanged: int = field(metadata={"optional": True})
    """Number of files whose outcome is that of the state, with `--state`."""


_DOCUMENTS = {
    "rules": "sbbf_tool.reports.findings:RulesReport",
    "engines": "sbbf_tool.reports.engines:EnginesReport",
    "size": "sbbf_tool.verbs.size:SizeReport",
    "file": "sbbf_tool.cli.schema:FileWithoutReport",
    "summary": "sbbf_tool.cli.schema:SummaryDocument",
}
"""The class of each document of the core that is not the report of a verb, by the name that follows
`sbbf.`: its module, and its name in it."""


def documents() -> dict[str, str]:
    """Return the class of each document, or the verb that reports it; those of extensions last."""
    reported = {}
    for verb in load("sbbf_tool.verbs:__all__"):
        name = re.sub(r"(?<=.)(?=[A-Z])", "-", verb).lower()
        reported[name] = f"sbbf_tool.verbs:{verb}"
    return reported | _DOCUMENTS | named("documents")


@click.command(cls=Command)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print the JSON Schema of a document, such as sbbf.inspect: all its fields and what they mean.

    \b
    $ sbbf schema inspect
    $ sbbf schema

    Without NAME, list the documents.
    """
    if name is None:
        click.echo("\n".join(f"sbbf.{name}" for name in documents()))
        return
    kind = name.removeprefix("sbbf.")
    if kind not in documents():
        raise UsageError(
            f"there is no document {name!r}",
            hint=suggest(kind, documents(), "sbbf schema lists them"),
        )
    click.echo(json.dumps(build_schema(kind), indent=2))


def build_schema(name: str) -> dict[str, Any]:
    """Build the JSON Schema of the document `sbbf.<name>`."""
    definitions: dict[str, Any] = {}
    kind = load(documents()[name])
    if issubclass(kind, Verb):
        kind = kind.answer if kind.combines else kind.report
    body = _object(kind, definitions)
    head = {"schema": {"const": f"sbbf.{name}"}, "version": {"const": SCHEMA_VERSION}}
    schema = {
        "$schema": _DIALECT,
        "$id": f"urn:sbbf:{name}:{SCHEMA_VERSION}",
        "title": f"sbbf.{name}",
        **body,
        "properties": {**head, **body["properties"]},
        "required": [*head, *body["required"]],
    }
    if definitions:
        schema["$defs"] = dict(sorted(definitions.items()))
    return schema


def _object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    texts = _field_texts(kind)
    properties = {}
    required = []
    for part in fields(kind):
        if part.metadata.get("local"):
            continue
        properties[part.name] = _value(hints[part.name], definitions)
        if part.name in texts:
            properties[part.name]["description"] = texts[part.name]
        if not part.metadata.get("optional"):
            required.append(part.name)
    if kind is Fix:
        properties["command"] = {
            "type": "array",
            "items": {"type": "string"},
            "description": "The command that makes the change.",
        }
        required.append("command")
    schema = {"type": "object", "properties": properties, "required": required}
    # A dataclass without a docstring gets its signature as one.
    if kind.__doc__ is None or kind.__doc__.startswith(f"{kind.__name__}("):
        return schema
    return {"description": _in_json(kind.__doc__), **schema}


def _value(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if get_origin(hint) is UnionType:
        (inner,) = (kind for kind in get_args(hint) if kind is not NoneType)
        value = _value(inner, definitions)
        if "type" in value:
            return {**value, "type": [value["type"], "null"]}
        return {"anyOf": [value, {"type": "null"}]}
    if get_origin(hint) is Sequence or get_args(hint)[1:] == (...,):
        return {"type": "array", "items": _value(get_args(hint)[0], definitions)}
    if get_origin(hint) is tuple:
        items = [_value(item, definitions) for item in get_args(hint)]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    if is_dataclass(hint):
        assert isinstance(hint, type)
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # a type may contain itself
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if get_origin(hint) is dict:
        return {"type": "object"}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[hint]}


@cache
def _field_texts(kind: type) -> dict[str, str]:
    """Return the text below each field in the source of a dataclass."""
    (definition,) = ast.parse(inspect.cleandoc(f"\n{inspect.getsource(kind)}")).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for part, text in pairwise(definition.body):
        if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[part.target.id] = _in_json(str(text.value.value))
    return texts


def _in_json(text: str) -> str:
    """Return a text of the source on one line, with the values as JSON writes them."""
    words = {"None": "null", "True": "true", "False": "false"}
    line = " ".join(text.split())
    return re.sub(r"\b(None|True|False)\b", lambda match: words[match[0]], line)
