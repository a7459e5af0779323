"""Which kernel does the work: the compiled one where it was built, else numpy's; `SBBF_KERNEL=spec|numpy|compiled` overrules.

A kernel is a module (`interface.Kernel`). It is imported when the first bulk operation asks for it and not before: numpy alone
costs more than many a question to a filter.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from sbbf_tool.bloom import spec
from sbbf_tool.errors import UsageError

if TYPE_CHECKING:
    from sbbf_tool.bloom.interface import Kernel

VARIABLE = "SBBF_KERNEL"
NAMES = ("compiled", "numpy", "spec")


def load(name: str) -> Kernel:
    """The kernel called "compiled", "numpy" or "spec". UsageError when there is none of that name, or it cannot be had here."""
    try:
        if name == "compiled":
            from sbbf_tool.bloom import compiled_kernel

            return compiled_kernel
        if name == "numpy":
            from sbbf_tool.bloom import numpy_kernel

            return numpy_kernel
    except ImportError as error:
        raise UsageError(f"the {name} kernel is not available: {error}", place=VARIABLE) from error
    if name == "spec":
        return spec
    raise UsageError(f"no kernel is called {name!r}", place=VARIABLE, hint=f"there are {', '.join(NAMES)}")


def active() -> Kernel:
    """The kernel of this process, chosen at the first call and kept. UsageError when `SBBF_KERNEL` asks for what cannot be had."""
    return _choice()[0]


def name() -> str:
    """The active kernel's: "compiled", "numpy" or "spec"."""
    return active().NAME


def describe() -> str:
    """One line on the active kernel for people, with the reason when it is not the compiled one: "kernel: compiled (AVX2)"."""
    kernel, remark = _choice()
    return f"kernel: {kernel.describe()}{remark}"


def _choose() -> tuple[Kernel, str]:
    """A kernel, and the remark that `describe` makes on the choice."""
    if asked := os.environ.get(VARIABLE):
        return load(asked), f" (chosen by {VARIABLE})"
    try:
        return load("compiled"), ""
    except UsageError as error:
        return load("numpy"), f" (no compiled kernel: {error.__cause__})"


_choice = cache(_choose)
