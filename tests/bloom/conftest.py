"""Every test that takes `kernel` runs once on each: spec, numpy, compiled, and compiled as on
machines without AVX-512 and AVX2.

The kernel is also made the active one, so that `BloomFilter` and `hashing` work with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sbbf_tool.bloom import kernels
from sbbf_tool.bloom.interface import Kernel
from sbbf_tool.errors import UsageError


@pytest.fixture(
    scope="module", params=["spec", "numpy", "compiled", "compiled-AVX2", "compiled-plain"]
)
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    name, _, instructions = request.param.partition("-")
    try:
        chosen = kernels.load(name)
    except UsageError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_get_choice", lambda: (chosen, ""))
        if not instructions:
            yield chosen
            return
        from sbbf_tool.bloom import _kernel

        fastest = _kernel.instructions()
        if fastest in (instructions, "plain"):
            pytest.skip(f"this machine has nothing faster than {fastest}")
        _kernel.use(instructions)
        try:
            yield chosen
        finally:
            _kernel.use(fastest)
