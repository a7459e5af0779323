"""The choice of the kernel: the compiled one if it was built, otherwise numpy's;
`SBBF_KERNEL=spec|numpy|compiled` overrides it.

A kernel is a module (`interface.Kernel`). It is imported only at the first bulk operation:
importing numpy alone can cost more than querying a filter.
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
    """Import the kernel called "compiled", "numpy" or "spec". Raises UsageError for another name,
    or if the kernel is not available."""
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
    raise UsageError(
        f"there is no kernel {name!r}", place=VARIABLE, hint=f"the kernels are {', '.join(NAMES)}"
    )


def active() -> Kernel:
    """Return the kernel of this process, chosen at the first call and kept. Raises UsageError if
    `SBBF_KERNEL` names an unavailable one."""
    return _get_choice()[0]


def name() -> str:
    """Return the active kernel's name: "compiled", "numpy" or "spec"."""
    return active().NAME


def describe() -> str:
    """Describe the active kernel in one line, such as "kernel: compiled (AVX2)", with the reason if
    it is not the compiled one."""
    kernel, remark = _get_choice()
    return f"kernel: {kernel.describe()}{remark}"


def _choose() -> tuple[Kernel, str]:
    """Choose a kernel; return it and the remark that `describe` adds."""
    if name := os.environ.get(VARIABLE):
        return load(name), f" (chosen by {VARIABLE})"
    try:
        return load("compiled"), ""
    except UsageError as error:
        return load("numpy"), f" (no compiled kernel: {error.__cause__})"


_get_choice = cache(_choose)
