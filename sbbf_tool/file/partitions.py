"""Conditions on partitions, such as `dt >= '2026-01-01' and region in ('eu', 'us')`, on files in
Hive-style folders such as `dt=2026-01-31`.

`partition_order` says how values compare. A key that occurs twice in a path, with different values,
may have any of them: some readers take the first folder, others the last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Protocol
from urllib.parse import unquote

from sbbf_tool.condition_parser import HINT, parse_condition
from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.file.partition_order import judge_stated
from sbbf_tool.hints import suggest
from sbbf_tool.parquet.columns import unquote as split_name
from sbbf_tool.predicates import (
    ANYTHING,
    Other,
    Part,
    Truth,
    columns_of,
    ensure_answered,
    judge,
)

_NULL = "__HIVE_DEFAULT_PARTITION__"
_FOLDERS_REMEMBERED = 10_000


Values = Mapping[str, str | None]
Types = Mapping[str, str]
"""Types of partition columns, by name and in the words of the table format. A column without a type
is compared as the literal is."""


def partition_values(path: str) -> dict[str, str | None]:
    """Return the partition values in the folders of a path, such as `{"dt": "2026-01-31"}`; None
    for Hive's NULL."""
    return dict(_folder_values(path))


def doubtful_keys(path: str) -> set[str]:
    """Return the names of partition columns to which folders of a path give different values, apart
    from case: `k=1/k=2`, `K=1/k=2`."""
    values: dict[str, set[str | None]] = {}
    for name, value in _folder_values(path):
        values.setdefault(name.casefold(), set()).add(value)
    return {name for name, _ in _folder_values(path) if len(values[name.casefold()]) > 1}


def _folder_values(path: str) -> Iterator[tuple[str, str | None]]:
    for folder in re.split(r"[\\/]", path)[:-1]:
        name, sign, value = folder.partition("=")
        if sign and name:
            yield unquote(name), None if value == _NULL else unquote(value)


_UNTYPED: Types = {}


class PathPredicate(Protocol):
    """The condition on which a file in a listing is part of a run."""

    @property
    def is_choice(self) -> bool:
        """Whether the user chose it for one run, so that another run of the same request may
        include the other files."""

    def accepts(self, path: str) -> bool:
        """Return whether the file is part of the run."""

    def accepts_values(
        self, values: Values, unknown: AbstractSet[str] = frozenset(), types: Types = _UNTYPED
    ) -> bool:
        """Return whether files of a table with these partition values, and any of the columns
        `unknown`, are part of the run."""


class Predicate:
    """A parsed predicate. It is pickled as its text, and parsed again in other processes. Raises
    UsageError with the part that is wrong."""

    is_choice = True

    def __init__(self, text: str) -> None:
        self.text = text
        self._condition = parse_condition(text)
        ensure_answered(self._condition, "no value of a partition shows it", HINT)
        names = columns_of(self._condition)
        self._keys = {name: ".".join(split_name(name)) for name in names}
        self._results: dict[str, bool] = {}

    def __reduce__(self) -> tuple[type[Predicate], tuple[str]]:
        return Predicate, (self.text,)

    def accepts(self, path: str) -> bool:
        """Return whether the predicate is true for a path. Raises UsageError if the path lacks a
        partition column of the predicate."""
        folder = os.path.dirname(path)
        result = self._results.get(folder)
        if result is not None:
            return result
        if len(self._results) >= _FOLDERS_REMEMBERED:
            # Other threads may read the dictionary.
            self._results = {}
        with ErrorPlace(path):
            result = self._may_be_true(partition_values(path), doubtful_keys(path), _UNTYPED)
        self._results[folder] = result
        return result

    def accepts_values(
        self, values: Values, unknown: AbstractSet[str] = frozenset(), types: Types = _UNTYPED
    ) -> bool:
        """Return whether the predicate can be true for these partition values; the columns
        `unknown` may have any value.

        Raises UsageError if a column of the predicate is in neither, or if a literal is no value of
        its column's type.
        """
        try:
            return self._may_be_true(values, unknown - values.keys(), types)
        except UsageError as error:
            if values or unknown:
                raise error from None
            raise UsageError(error.message, hint="the table has no partitions") from None

    def _may_be_true(self, values: Values, unknown: AbstractSet[str], types: Types) -> bool:
        judge_part = partial(self._judge_part, values, unknown, types)
        return bool(judge(self._condition, judge_part).may_be_true)

    def _judge_part(
        self, values: Values, unknown: AbstractSet[str], types: Types, part: Part
    ) -> Truth:
        assert not isinstance(part, Other), "nothing answers the part"
        key = self._keys[part.column]
        if key not in unknown and key not in values:
            there = "the path has no column=value folder"
            if values:
                there = f"there are {', '.join(values)}"
            hint = suggest(key, values, there)
            raise UsageError(f"no partition column {key!r}", hint=hint)
        truth = judge_stated(part, values.get(key), types.get(key))
        return ANYTHING if key in unknown else truth
