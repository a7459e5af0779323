"""The settings of `sbbf check` in a file: `[tool.sbbf.check]` in a pyproject.toml, `[check]` in any other TOML file.

Keys are the long options without their dashes. An unknown setting, or a setting of the wrong type, is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

from sbbf_tool.errors import UsageError


class _Kind(NamedTuple):
    description: str
    fits: Callable[[object], bool]


_MOST_BYTES = 16 << 20
_NAMES = _Kind("a list of strings", lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value))
_RATIO = _Kind("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))
_COUNT = _Kind("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool))
_SETTINGS = {
    "require": _NAMES,
    "max-fpp": _RATIO,
    "max-bytes-share": _RATIO,
    "min-ndv": _COUNT,
    "min-chunk-bytes": _COUNT,
    "select": _NAMES,
    "ignore": _NAMES,
    "quick": _Kind("true or false", lambda value: isinstance(value, bool)),
    "fail-on": _Kind("a string", lambda value: isinstance(value, str)),
}


def read_config(path: str) -> dict[str, Any]:
    """Read the settings in the file, by Python name, with lists as tuples. Raises UsageError."""
    document = _read_toml(path)
    table: Any = document
    if os.path.basename(path) == "pyproject.toml":
        name, table = "[tool.sbbf.check]", document.get("tool", {}).get("sbbf", {})
        _among(table, ("check",), path, "[tool.sbbf]")
    else:
        name = "[check]"
    settings = table.get("check")
    if not isinstance(settings, dict):
        raise UsageError(f"the file has no table {name}", file=path)
    _among(settings, _SETTINGS, path, name)
    for key, value in settings.items():
        if not _SETTINGS[key].fits(value):
            raise UsageError(f"{key} must be {_SETTINGS[key].description}, not {value!r}", file=path, place=name)
    return {key.replace("-", "_"): tuple(value) if isinstance(value, list) else value for key, value in settings.items()}


def _read_toml(path: str) -> dict[str, Any]:
    import tomllib

    try:
        with open(path, "rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise UsageError(f"a configuration file must have at most {_MOST_BYTES:,} bytes", file=path)
        return tomllib.loads(text.decode())
    except OSError as error:
        raise UsageError((error.strerror or "unreadable").lower(), file=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not TOML: {error}", file=path) from None


def _among(keys: Iterable[str], choices: Iterable[str], path: str, table: str) -> None:
    for key in keys:
        if key not in choices:
            near = get_close_matches(key, list(choices), n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(choices)}"
            raise UsageError(f"unknown setting {key!r}", file=path, place=table, hint=hint)
