"""The interface of extensions: an extension declares its commands, documents, rules, tables and
more by the names of their modules.

Those in `sbbf_tool/extensions` are found by their folders, others by entry points of
`sbbf_tool.extensions`: `hudi = "sbbf_hudi:EXTENSION"`. EXTENSION, in the `__init__.py` of the
package, holds names of modules, which are imported when they are used.

    EXTENSION = Extension(
        # sbbf hudi; the module has a click command `command`
        commands={"hudi": ("sbbf_hudi.command", "Look into Hudi's indexes.")},
        # the class of sbbf.hudi, for sbbf schema
        documents={"hudi": "sbbf_hudi.report:HudiReport"},
        # the rules of a document, for sbbf rule
        rules={"hudi-check": "sbbf_hudi.rules:RULES"},
        # options of a command of the core, see below
        options={"explain": "sbbf_hudi.command:options"},
        # the command of a fix's function
        fixes={"rebuild_hudi": ("hudi", "rebuild")},
        # the settings of a writer, for sbbf advise --writer
        writers={"hudi": "sbbf_hudi.writer:HUDI"},
        # pictures of a report in notebooks
        figures={"sbbf_hudi.report:HudiReport": "sbbf_hudi.figures:render"},
        # rows of spark.read.format("sbbf") with this option
        views={"hudi": "sbbf_hudi.view:make_view"},
        # files of the corpus for readers
        corpus={"hudi": "sbbf_hudi.corpus:make"},
        # a text of one screen, for sbbf help
        topics={"hudi": "sbbf_hudi.topic:TEXT"},
        # a kind of paths, see running/table.py
        tables="sbbf_hudi.table",
        # paths with this ending, see running/selection.py
        indexes={".hudx": "sbbf_hudi.index:open_index"},
    )

`options` names a function that returns options (cli/options.py); only commands that say so in the
core's list take any. Such an option is not passed to the command. Its callback may choose another
verb for the command, see `cli.choice`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen, field

GROUP = "sbbf_tool.extensions"


class Extension(Frozen):
    """The names of what an extension brings; see above."""

    commands: Mapping[str, tuple[str, str]] = field(factory=dict)
    documents: Mapping[str, str] = field(factory=dict)
    rules: Mapping[str, str] = field(factory=dict)
    options: Mapping[str, str] = field(factory=dict)
    fixes: Mapping[str, Sequence[str]] = field(factory=dict)
    writers: Mapping[str, str] = field(factory=dict)
    figures: Mapping[str, str] = field(factory=dict)
    views: Mapping[str, str] = field(factory=dict)
    corpus: Mapping[str, str] = field(factory=dict)
    topics: Mapping[str, str] = field(factory=dict)
    tables: str | None = None
    indexes: Mapping[str, str] = field(factory=dict)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return all extensions that are installed, our own first, by name."""
    from pkgutil import iter_modules

    names = sorted(module.name for module in iter_modules(_folders(), f"{GROUP}."))
    own = [getattr(import_module(name), "EXTENSION", Extension()) for name in names]
    return (*own, *_others())


def _others() -> Iterator[Extension]:
    """Yield the extensions of packages in folders. `importlib.metadata` takes 25 ms, so it is only
    imported if there is an entry point."""
    if any(map(_has_entry_points, dict.fromkeys(sys.path))):
        from importlib.metadata import entry_points

        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            yield point.load()


def _has_entry_points(folder: str) -> bool:
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return False
    for name in names:
        if not name.endswith((".dist-info", ".egg-info")):
            continue
        path = os.path.join(folder, name, "entry_points.txt")
        with suppress(OSError), open(path, "rb") as file:
            if GROUP.encode() in file.read():
                return True
    return False


def _folders() -> list[str]:
    return [os.path.join(path, "extensions") for path in import_module("sbbf_tool").__path__]


def named(kind: str) -> dict[str, Any]:
    """Return what all extensions bring of this kind, by name: `commands`, `documents`, `rules` and
    so on."""
    values: dict[str, Any] = {}
    for extension in extensions():
        values.update(getattr(extension, kind))
    return values


def load(name: str) -> Any:
    """Return what `MODULE:NAME` means."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def load_each(kind: str, name: str) -> Iterator[Any]:
    """Yield what the extensions bring of this kind under a name."""
    for extension in extensions():
        targets = getattr(extension, kind)
        if name in targets:
            yield load(targets[name])


def table_kinds() -> list[Any]:
    """Return the modules of the kinds of tables."""
    names = [extension.tables for extension in extensions()]
    return [import_module(name) for name in names if name is not None]


def is_index(name: str) -> bool:
    """Return whether the form of a name is that of an index."""
    kind = os.path.splitext(name.rstrip("/"))[1]
    return kind not in ("", ".parquet") and kind in named("indexes") and not os.path.isfile(name)


def ensure_no_index(name: str) -> None:
    """Raise UsageError if the form of a name is that of an index, where files are needed."""
    if is_index(name):
        raise UsageError(
            "it is an index",
            file=name,
            hint="query it by run(Probe(...), path), or list files by prune_index(path, ...)",
        )


def is_table_name(name: str) -> bool:
    """Return whether the form of a name is that of a table, rather than of a path, glob or URL."""
    return ":" in name and any(kind.is_name(name) for kind in table_kinds())


def absolute_table_name(name: str) -> str:
    """Return the name of a table, as `is_table_name` recognizes it, that means the same table in
    every working folder."""
    for kind in table_kinds():
        if kind.is_name(name) and hasattr(kind, "absolute_name"):
            return str(kind.absolute_name(name))
    return name
