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
    """A question's hashes in one row, the position of each hash's value, and the positions of the values that no filter can judge."""

    hashes: array[int]
    owners: array[int]
    unknowable: list[int]


@dataclass(frozen=True, eq=False)
class Question:
    """Values as a column would hold them, and the hashes of the forms of each value."""

    column: Column
    values: tuple[object, ...]
    literals: list[Literal]
    hashes: list[list[int]]

    def rehash(self, hasher: Hasher) -> Question:
        """Return the same question for filters with another hash function."""
        return replace(self, hashes=[[hasher.hash_value(form) for form in literal.forms] for literal in self.literals])

    @cached_property
    def row(self) -> HashRow:
        """The hashes in one row. Each question has its own row, so that threads with different questions cannot mix them up."""
        hashes, owners, unknowable = array("Q"), array("Q"), []
        for at, (literal, forms) in enumerate(zip(self.literals, self.hashes, strict=True)):
            if literal.verdict is None:
                hashes.extend(forms)
                owners.extend([at] * len(forms))
            elif literal.verdict != literals.ABSENT:
                unknowable.append(at)
        return HashRow(hashes, owners, unknowable)


def question_of(column: Column, values: tuple[object, ...]) -> Question:
    """Build the question for these values of a column: see `probe`."""
    query_literals = [literals.parse_object(column, value) for value in values]
    return Question(column, values, query_literals, [[hash_value(form) for form in literal.forms] for literal in query_literals])
