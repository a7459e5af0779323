"""Options of `spark.read.format("sbbf")`, parsed once.

As in Spark, option names are case-insensitive; underscores in them are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sbbf_tool.errors import UsageError
from sbbf_tool.extension import load, named
from sbbf_tool.hints import suggest
from sbbf_tool.numbers import parse_ratio
from sbbf_tool.spark.outcomes import FILES_PER_TASK
from sbbf_tool.spark.views import Chunks, Findings, RowView

Number = TypeVar("Number", int, float)

_OF_CHUNKS = ("columns", "all", "bitsets")
OF_RULES = ("select", "ignore", "quick", "require", "maxFpp", "maxBytesShare", "minNdv", "minChunkBytes", "maxPageBytes")
_OF_CATALOG = "owner"
"""Property that Spark sets for each table of a catalog, and passes as an option."""
VIEW = "use CREATE TEMPORARY VIEW name USING sbbf OPTIONS (path '/lake')"
NAMES = ("path", "paths", *_OF_CHUNKS, "rules", *OF_RULES, "where", "errors", "filesPerTask")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The request of one `load`."""

    names: tuple[str, ...]
    """Files, folders, globs."""
    view: RowView
    where: str | None
    """A predicate on partition folders."""
    fails: bool
    """Whether a file that cannot be read fails the query instead of becoming a row."""
    files_per_task: int


def parse_options(options: Mapping[str, str]) -> ReadRequest:
    """Parse the options. Raises UsageError for an option that does not exist, does not apply to this view, or has a wrong value."""
    if _OF_CATALOG in options:
        raise UsageError("a table of a catalog cannot use sbbf: Spark passes no options to it", hint=VIEW)
    parsed_options = Options(options)
    names = parsed_options.names()
    brought = next((make for name, make in named("views").items() if parsed_options.flag(name)), None)
    if brought is not None:
        view: RowView = load(brought)(parsed_options)
    elif parsed_options.flag("rules"):
        parsed_options.refuse(_OF_CHUNKS, "rules")
        view = _findings(parsed_options)
    else:
        parsed_options.refuse(OF_RULES, "filters; it applies only with option 'rules'")
        view = Chunks(parsed_options.list("columns"), parsed_options.flag("all"), parsed_options.flag("bitsets", default=True))
    errors = parsed_options.text("errors") or "row"
    if errors not in ("row", "fail"):
        raise UsageError(f"option 'errors' must be 'row' or 'fail', not {errors!r}")
    return ReadRequest(
        names, view, parsed_options.text("where"), errors == "fail", parsed_options.number("filesPerTask", int) or FILES_PER_TASK
    )


def _findings(options: Options) -> Findings:
    from sbbf_tool.rules.check_policy import make_policy

    settings: dict[str, object] = {name: options.list(name) for name in ("require", "select", "ignore")}
    settings |= {"max_fpp": options.number("maxFpp", _ratio), "max_bytes_share": options.number("maxBytesShare", _ratio)}
    settings |= {"min_ndv": options.number("minNdv", int), "min_chunk_bytes": options.number("minChunkBytes", int)}
    policy = make_policy(settings | {"quick": options.flag("quick")})
    return Findings(policy, options.number("maxPageBytes", int))


class Options:
    def __init__(self, options: Mapping[str, str]) -> None:
        known = (*NAMES, *named("views"))
        names = {_key(name): name for name in known}
        self._values: dict[str, str] = {}
        for name, value in options.items():
            if _key(name) not in names:
                raise UsageError(f"unknown option {name!r}", hint=suggest(name, known, f"the options are {', '.join(known)}"))
            self._values[names[_key(name)]] = str(value)

    def names(self) -> tuple[str, ...]:
        names = (*self.list("paths"), *([self._values["path"]] if "path" in self._values else []))
        if not names:
            raise UsageError("no path was given", hint=f"load a file, a folder or a glob; in SQL, {VIEW}")
        return names

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def flag(self, name: str, *, default: bool = False) -> bool:
        text = self._values.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise UsageError(f"option {name!r} must be true or false, not {text!r}")
        return text == "true"

    def list(self, name: str) -> tuple[str, ...]:
        """Parse `a,b`, or `["a", "b,c"]` if a name contains a comma."""
        text = self._values.get(name, "").strip()
        if not text.startswith("["):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        try:
            parts = json.loads(text)
        except ValueError:
            parts = None
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise UsageError(f"option {name!r} must be a JSON list of strings, not {text:.80}")
        return tuple(parts)

    def number(self, name: str, kind: Callable[[str], Number]) -> Number | None:
        if name not in self._values:
            return None
        try:
            number = kind(self._values[name])
        except ValueError:
            number = kind("0")
        if not number > 0:
            raise UsageError(f"option {name!r} must be a number above 0, not {self._values[name]!r}")
        return number

    def refuse(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if name in self._values:
                raise UsageError(f"option {name!r} does not apply to {why}")


def _ratio(text: str) -> float:
    return parse_ratio(text) or 0.0


def _key(name: str) -> str:
    return name.replace("_", "").lower()
