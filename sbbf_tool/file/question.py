"""A query of a column's filters: values as the column would hold them, and their hashes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.literals import Literal

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Hasher


class HashRow(NamedTuple):
    """A question's hashes in one row, each with the position of its value; and the values that need no filter, or that none can judge."""

    hashes: array[int]
    owners: array[int]
    unknowable: list[int]


@dataclass(frozen=True, eq=False)
class Question:
    """Values as a column would hold them, and the hashes of each one's forms."""

    column: Column
    values: tuple[object, ...]
    literals: list[Literal]
    hashes: list[list[int]]

    def rehash(self, hasher: Hasher) -> Question:
        """Return the same question for filters of another hash function."""
        return replace(self, hashes=[[hasher.hash_value(form) for form in literal.forms] for literal in self.literals])

    @cached_property
    def row(self) -> HashRow:
        """The hashes in one row. It belongs to this question alone, so that threads with other questions cannot mix them up."""
        hashes, owners, unknowable = array("Q"), array("Q"), []
        for at, (literal, forms) in enumerate(zip(self.literals, self.hashes, strict=True)):
            if literal.verdict is None:
                hashes.extend(forms)
                owners.extend([at] * len(forms))
            elif literal.verdict != literals.ABSENT:
                unknowable.append(at)
        return HashRow(hashes, owners, unknowable)


def question_of(column: Column, values: tuple[object, ...]) -> Question:
    """Build the question to a column for these values: see `probe`."""
    query_literals = [literals.parse_object(column, value) for value in values]
    return Question(column, values, query_literals, [[hash_value(form) for form in literal.forms] for literal in query_literals])
