"""The policy of each file, where the configuration has settings for some paths."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sbbf_tool.errors import SbbfError
from sbbf_tool.operations.check import Policy
from sbbf_tool.rules.rule import Limits
from sbbf_tool.storage.places import is_url

Settings = Mapping[str, Any]
"""Fields of `Policy` and `Limits` by name."""


class PathEntry(NamedTuple):
    """Settings for the files that one of the globs matches."""

    folder: str
    """Absolute path that relative globs start from."""
    globs: tuple[str, ...]
    settings: Settings
    place: str
    """Where the entry is written, for errors."""

    def matches(self, path: str) -> bool:
        """Return whether a glob matches the path or one of the folders above it. `*` stays within a folder; `**` does not."""
        paths = (path,) if is_url(path) else (os.path.abspath(path), os.path.realpath(path))
        return any(_pattern(self.folder, glob).fullmatch(path) for glob in self.globs for path in paths)


class PathPolicies:
    """The policies of all files: `settings`, changed by each entry that matches the path, in order, and then by `overrides`.

    It has the interface of `Policy` that runs use. Raises UsageError if an entry contradicts itself or the other settings.
    """

    def __init__(self, settings: Settings, entries: Sequence[PathEntry], overrides: Settings) -> None:
        self._settings = settings
        self._entries = tuple(entries)
        self._overrides = overrides
        policies = [self._policy(())]
        for entry in self._entries:
            try:
                policies.append(self._policy((entry,)))
            except SbbfError as error:
                raise error.at(file=entry.place) from None
        self.quick = all(policy.quick for policy in policies)
        self.required = tuple(dict.fromkeys(column for policy in policies for column in policy.required))

    def of(self, path: str) -> Policy:
        """Return the policy of one file. Raises UsageError if the entries that match it contradict each other."""
        return self._policy(tuple(entry for entry in self._entries if entry.matches(path)))

    def _policy(self, entries: tuple[PathEntry, ...]) -> Policy:
        changes = [value for entry in entries for value in entry.settings.items()]
        return make_policy({**self._settings, **dict(changes), **self._overrides})


def make_policy(settings: Settings) -> Policy:
    """Return the policy with these fields of `Policy` and `Limits`. Raises UsageError."""
    limits = {name: value for name, value in settings.items() if name in Limits.__dataclass_fields__}
    return Policy(limits=Limits(**limits), **{name: value for name, value in settings.items() if name not in limits})


@cache
def _pattern(folder: str, glob: str) -> re.Pattern[str]:
    if is_url(glob):
        return re.compile(_translate(glob) + "(?:/.*)?", re.DOTALL)
    while glob.startswith(("./", "../")):
        folder = os.path.dirname(folder) if glob.startswith("../") else folder
        glob = glob.partition("/")[2]
    prefix = "" if glob.startswith("/") else re.escape(folder.rstrip("/")) + "/"
    return re.compile(prefix + _translate(glob.rstrip("/")) + "(?:/.*)?", re.DOTALL)


def _translate(glob: str) -> str:
    """Return the regular expression of a glob. `**/` matches any folders, also none."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\])", glob)
    classes = [fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z") if part.startswith("[") else "" for part in parts]
    return "".join(words.get(part) or name or re.escape(part) for part, name in zip(parts, classes, strict=True))
