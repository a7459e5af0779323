"""The size that a new filter gets: for a target FPP, within limits, or fixed before the values are
known."""

from __future__ import annotations

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen


class Sizing(Frozen):
    """The size of a filter for `fpp` and for `ndv` distinct values, or for the number in the data
    if `ndv` is None.

    If `num_bytes` is given, it is the exact size, and the other fields have no effect.
    """

    fpp: float = DEFAULT_FPP
    ndv: int | None = None
    max_bytes: int = sizing.MAX_BYTES
    num_bytes: int | None = None

    def ensure_valid(self) -> None:
        sizing.ensure_fpp(self.fpp)
        for name in ("ndv", "max_bytes", "num_bytes"):
            value = getattr(self, name)
            if value is not None and not hasattr(value, "__index__"):
                raise UsageError(f"{name.replace('_', ' ')} must be an integer, not {value!r}")
        if self.ndv is not None and self.ndv < 1:
            raise UsageError(f"ndv must be at least 1, not {self.ndv}")
        if self.ndv is not None and self.ndv > sizing.MOST_VALUES:
            raise UsageError(f"ndv must be at most {sizing.MOST_VALUES}, not {self.ndv}")
        if self.max_bytes < sizing.MIN_BYTES:
            hint = "some readers fail on smaller filters"
            raise UsageError(
                f"max bytes must be at least {sizing.MIN_BYTES}, not {self.max_bytes}", hint=hint
            )

    @property
    def is_stated(self) -> bool:
        """Whether the size is fixed before the values are read."""
        return self.ndv is not None or self.num_bytes is not None

    def bytes_for(self, values: int, forms: int = 1) -> int:
        """Return the initial bytes for a chunk of `values` values, each inserted in `forms` forms:
        a power of two within the limits."""
        if self.num_bytes is not None:
            return self.num_bytes
        return min(sizing.bytes_for(max(1, self.ndv or values) * forms, self.fpp), self.largest)

    @property
    def worst_fpp(self) -> float:
        """The highest FPP of a filter that deserves to be written."""
        return max(10 * self.fpp, sizing.SATURATED_FPP)

    @property
    def largest(self) -> int:
        """The largest power of two within the limits, in bytes."""
        return 1 << min(self.max_bytes, sizing.MAX_BYTES).bit_length() - 1
