"""Fuzz one target with coverage guidance: `python -m faults.fuzz_guided TARGET [CORPUS...]
[libFuzzer options]`, in the folder of the tests.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["sbbf_tool", "support", "faults"]):
    from faults.fuzz_parsers import TARGETS, feed

if __name__ == "__main__":
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], lambda data: feed(target, bytes(data)))
    atheris.Fuzz()
