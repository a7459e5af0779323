"""The policy of each file, where the configuration has settings for some paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sbbf_tool.errors import SbbfError
from sbbf_tool.rules.check_policy import Policy
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.rules.rule import Limits
from sbbf_tool.storage.globs import matches_any

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
        """Return whether a glob matches the path or one of the folders above it."""
        return matches_any(self.globs, self.folder, path)


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
    """Return the policy with these fields of `Policy` and `Limits`; `require` names columns. Raises UsageError."""
    settings = dict(settings)
    if require := settings.pop("require", ()):
        settings["filters"] = (FilterSpec(require, judge="existence"), *settings.get("filters", ()))
    limits = {name: value for name, value in settings.items() if name in Limits.__dataclass_fields__}
    return Policy(limits=Limits(**limits), **{name: value for name, value in settings.items() if name not in limits})
