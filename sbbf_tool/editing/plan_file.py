"""The plan that `advise` makes and `add-filter` executes, as a JSON file.

    {"sbbf_plan": 1, "files": ["events/"], "fpp": 0.01, "replace": false, "columns": {"user_id": {"max_bytes": 1048576}}}

`max_bytes` is the largest bitset per row group; a row group with fewer distinct values gets a smaller one. Unknown keys are errors instead
of being ignored silently.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.display import redact, to_json
from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.hints import Fix
from sbbf_tool.storage.temporary import USUAL
from sbbf_tool.storage.whole import write_whole

VERSION = 1
_VERSION_KEY = "sbbf_plan"


@dataclass(frozen=True, slots=True)
class Plan:
    files: tuple[str, ...]
    """Names of files, folders and globs, as the user gave them."""
    fpp: float
    replace: bool
    """Whether to rebuild existing filters."""
    columns: Mapping[str, int]
    """Largest bitset per row group, in bytes, by column."""

    def fix(self, keys: str | None) -> Fix:
        """Return the change that adds the plan's filters without its size limits: only the values determine sizes. `keys` is a path."""
        fpp = None if self.fpp == DEFAULT_FPP else self.fpp
        return Fix("add_filters", self.files, tuple(self.columns), rebuild="all" if self.replace else None, fpp=fpp, keys=keys)

    def as_json(self) -> dict[str, Any]:
        columns = {name: {"max_bytes": size} for name, size in self.columns.items()}
        return {_VERSION_KEY: VERSION, "files": list(self.files), "fpp": self.fpp, "replace": self.replace, "columns": columns}


_PRIVATE = 0o600
_MOST_BYTES = 64 << 20


def write_plan(path: str | os.PathLike[str], document: Mapping[str, Any]) -> list[str]:
    """Write a plan in one step: an existing plan stays until the new one is whole. Return warnings as text.

    If the file names of a plan contain signatures or passwords, only its owner can read it (mode 0600). Raises RefusedError and WriteError.
    """
    has_secrets = any(redact(name) != name for name in document.get("files", ()))
    with write_whole(path, overwrite=True, mode=_PRIVATE if has_secrets else USUAL) as stream:
        stream.write(f"{to_json(document, indent=2)}\n".encode())
    if not has_secrets:
        return []
    private = ": only its owner can read it (mode 0600)" if os.path.isfile(path) else ""
    return [f"{os.fsdecode(path)} contains signatures or passwords of URLs{private}"]


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan. Raises UsageError, with the key that is wrong, if the file is not a plan."""
    name = os.fsdecode(path)
    try:
        with open(path, "rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise UsageError(f"the plan has more than {_MOST_BYTES:,} bytes", file=name)
        document = json.loads(text)
    except OSError as error:
        raise UsageError((error.strerror or "unreadable").lower(), file=name) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the plan is not valid JSON: {error}", file=name) from None
    with ErrorPlace(name):
        return plan_of_document(document)


def plan_of_document(document: Any) -> Plan:
    """Convert a JSON document to a plan. Raises UsageError."""
    _expect(document, (_VERSION_KEY, "files", "fpp", "replace", "columns"), "the plan")
    _check(document[_VERSION_KEY] == VERSION, _VERSION_KEY, document[_VERSION_KEY], str(VERSION))
    files, fpp, replace, columns = document["files"], document["fpp"], document["replace"], document["columns"]
    _check(isinstance(files, list) and all(isinstance(file, str) and file for file in files), "files", files, "a list of names")
    _check(_is_number(fpp, float) and 0 < fpp < 1, "fpp", fpp, "a number above 0 and below 1")
    _check(isinstance(replace, bool), "replace", replace, "true or false")
    _check(isinstance(columns, dict) and bool(columns), "columns", columns, "an object with one key per column")
    sizes = {}
    for column, limits in columns.items():
        _expect(limits, ("max_bytes",), f"column {column}")
        size = limits["max_bytes"]
        _check(_is_number(size) and sizing.MIN_BYTES <= size <= sizing.MAX_BYTES, f"column {column}: max_bytes", size, _SIZES)
        sizes[column] = size
    return Plan(tuple(files), float(fpp), replace, sizes)


_SIZES = f"a whole number from {sizing.MIN_BYTES} to {sizing.MAX_BYTES}"


def _is_number(value: object, *also: type) -> bool:
    return isinstance(value, (int, *also)) and not isinstance(value, bool)


def _expect(value: Any, keys: Iterable[str], place: str) -> None:
    """Raise UsageError unless an object has exactly these keys."""
    if not isinstance(value, dict):
        raise UsageError(f"{value!r} is not an object", place=place)
    expected_keys = tuple(keys)
    for key in value:
        if key not in expected_keys:
            raise UsageError(f"unknown key {key!r}", place=place, hint=f"the keys are {', '.join(expected_keys)}")
    for key in expected_keys:
        if key not in value:
            raise UsageError(f"key {key!r} is missing", place=place)


def _check(is_right: bool, key: str, value: object, takes: str) -> None:
    if not is_right:
        raise UsageError(f"{key} must be {takes}, not {value!r}")
