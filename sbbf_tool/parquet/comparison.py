"""Stored values compared with plain bytes, many of both at once: hashes only select what to
compare.

The work grows with the number of pairs, however many keys a page holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray


class Pairs(NamedTuple):
    """Values of a page or of a run of values, by their places, each with plain bytes that it may
    have."""

    places: NDArray[np.int64]
    """The place of the value of each pair."""
    forms: Sequence[bytes]
    """Plain bytes."""
    numbers: NDArray[np.int64]
    """The number of the form of each pair."""

    @classmethod
    def of_all(cls, count: int, form: bytes) -> Pairs:
        """Pair each of `count` values with the same bytes."""
        numbers = np.zeros(count, np.int64)
        return cls(np.arange(count), [form], numbers)

    def are_equal_fixed(self, plain: memoryview, width: int) -> NDArray[np.bool_]:
        """Compare values of `width` bytes each, stored back to back."""
        joined_forms = b"".join(self.forms)
        values = np.frombuffer(plain, np.uint8).reshape(-1, width)
        forms = np.frombuffer(joined_forms, np.uint8).reshape(-1, width)
        are_equal = values[self.places] == forms[self.numbers]
        return cast("NDArray[np.bool_]", are_equal.all(axis=1))

    def are_equal_spans(
        self, data: memoryview | bytes, starts: NDArray[np.integer], ends: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Compare values of any length. Take the span in `data` of the value of each pair."""
        forms = self.forms
        spans = zip(starts.tolist(), ends.tolist(), self.numbers.tolist(), strict=True)
        # Comparing two objects of bytes is one call of memcmp, unlike comparing views.
        answers = (bytes(data[start:end]) == forms[number] for start, end, number in spans)
        return np.fromiter(answers, np.bool_, len(self.places))
