"""The page of the Python functions and classes, from their signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import sbbf_tool
from parts.markdown import block, code, paragraphs, plain, table

_LONGEST = 120


def describe(kind: str) -> str:
    """Describe the public names of a kind: `functions`, `classes` or `errors`."""
    names = sorted(public_names().items(), key=lambda item: item[0].lower())
    return paragraphs(*(part for name, home in names for part in _describe_name(name, home, kind)))


def public_names() -> dict[str, str]:
    """Map each public name to the package that has it."""
    root = Path(sbbf_tool.__file__).parent
    packages = (
        ".".join(stub.parent.relative_to(root.parent).parts)
        for stub in sorted(root.rglob("__init__.pyi"))
    )
    return {name: package for package in packages for name in import_module(package).__all__}


def _describe_name(name: str, home: str, kind: str) -> Iterator[str]:
    value = getattr(import_module(home), name)
    if kind_of(value) == kind:
        yield f"### {name}"
        if kind != "errors":
            yield block("pyi", f"from {home} import {name}\n\n{_format_signature(name, value)}")
        yield from _format_docstring(value)
        if kind == "classes":
            yield _list_members(value)


def kind_of(value: Any) -> str:
    if not isinstance(value, type):
        return "functions"
    return "errors" if issubclass(value, BaseException) else "classes"


def _list_members(value: type) -> str:
    """Build the table of the public methods and properties of a class."""
    rows = []
    for name, member in vars(value).items():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        text = inspect.getdoc(function)
        if not name.startswith("_") and inspect.isfunction(function) and text:
            call = (
                name
                if isinstance(member, property)
                else _format_signature(name, getattr(value, name)).removeprefix("def ")
            )
            rows.append(
                [code(" ".join(call.split())), plain(" ".join(text.split("\n\n")[0].split()))]
            )
    return table(["member", "does"], rows) if rows else ""


def _format_signature(name: str, value: Any) -> str:
    """Format a signature in one line, or with one line for each parameter."""
    signature = inspect.signature(value)
    parameters, had_star = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not had_star:
            parameters.append("*")
        had_star = had_star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        annotation = (
            f": {parameter.annotation}" if parameter.annotation is not parameter.empty else ""
        )
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(
            parameter.kind, ""
        )
        parameters.append(f"{prefix}{parameter.name}{annotation}{_format_default(parameter)}")
    is_class = isinstance(value, type)
    result = (
        ""
        if is_class or signature.return_annotation is signature.empty
        else f" -> {signature.return_annotation}"
    )
    start = f"{'class' if is_class else 'def'} {name}"
    line = f"{start}({', '.join(parameters)}){result}"
    return (
        line
        if len(line) <= _LONGEST
        else f"{start}(\n" + "".join(f"    {text},\n" for text in parameters) + f"){result}"
    )


def _format_default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    text = repr(parameter.default)
    return f" = {'...' if text.startswith('<') else text}"


def _format_docstring(value: Any) -> Iterator[str]:
    for text in (inspect.getdoc(value) or "").split("\n\n"):
        is_listing = re.match(r" {4}", text) is not None
        yield text if is_listing else plain(" ".join(text.split()))
