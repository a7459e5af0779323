"""The Bloom filters of Parquet files: seen, asked, proven, and added to files that are already there.

    import sbbf_tool

    sbbf_tool.inspect("events.parquet").filters
    sbbf_tool.probe("events.parquet", "user_id", [42]).is_absent
    sbbf_tool.add_filters("events.parquet", ["user_id"], output="with_filters.parquet")
    sbbf_tool.verify("with_filters.parquet").is_sound
    sbbf_tool.check("with_filters.parquet").findings
    sbbf_tool.remove_filters("with_filters.parquet", in_place=True)

Each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sbbf_tool.bloom.filter import BloomFilter
    from sbbf_tool.errors import AuthenticationError, RefusedError, SbbfError, UnreadableError, UsageError, WriteError
    from sbbf_tool.operations.add import add_filters
    from sbbf_tool.operations.advise import advise
    from sbbf_tool.operations.check import Policy, check
    from sbbf_tool.operations.engines import engines
    from sbbf_tool.operations.explain import explain
    from sbbf_tool.operations.inspect import inspect
    from sbbf_tool.operations.paimon.add_index import add_paimon_index
    from sbbf_tool.operations.paimon.build import build_paimon_index
    from sbbf_tool.operations.paimon.inspect import inspect_paimon
    from sbbf_tool.operations.paimon.probe import probe_paimon
    from sbbf_tool.operations.paimon.verify import verify_paimon
    from sbbf_tool.operations.probe import probe
    from sbbf_tool.operations.prune import prune
    from sbbf_tool.operations.remove import remove_filters
    from sbbf_tool.operations.repair import repair
    from sbbf_tool.operations.resize import resize_filters
    from sbbf_tool.operations.standalone import inspect_bare, probe_bare, verify_bare
    from sbbf_tool.operations.verify import verify
    from sbbf_tool.parquet.encryption.keys import Keys
    from sbbf_tool.rules.rule import Limits

_HOMES = {
    "AuthenticationError": "sbbf_tool.errors",
    "BloomFilter": "sbbf_tool.bloom.filter",
    "Keys": "sbbf_tool.parquet.encryption.keys",
    "Limits": "sbbf_tool.rules.rule",
    "Policy": "sbbf_tool.operations.check",
    "RefusedError": "sbbf_tool.errors",
    "SbbfError": "sbbf_tool.errors",
    "UnreadableError": "sbbf_tool.errors",
    "UsageError": "sbbf_tool.errors",
    "WriteError": "sbbf_tool.errors",
    "add_filters": "sbbf_tool.operations.add",
    "add_paimon_index": "sbbf_tool.operations.paimon.add_index",
    "advise": "sbbf_tool.operations.advise",
    "build_paimon_index": "sbbf_tool.operations.paimon.build",
    "check": "sbbf_tool.operations.check",
    "engines": "sbbf_tool.operations.engines",
    "explain": "sbbf_tool.operations.explain",
    "inspect": "sbbf_tool.operations.inspect",
    "inspect_bare": "sbbf_tool.operations.standalone",
    "inspect_paimon": "sbbf_tool.operations.paimon.inspect",
    "probe": "sbbf_tool.operations.probe",
    "probe_bare": "sbbf_tool.operations.standalone",
    "probe_paimon": "sbbf_tool.operations.paimon.probe",
    "prune": "sbbf_tool.operations.prune",
    "remove_filters": "sbbf_tool.operations.remove",
    "repair": "sbbf_tool.operations.repair",
    "resize_filters": "sbbf_tool.operations.resize",
    "verify": "sbbf_tool.operations.verify",
    "verify_bare": "sbbf_tool.operations.standalone",
    "verify_paimon": "sbbf_tool.operations.paimon.verify",
}

__all__ = [
    "AuthenticationError",
    "BloomFilter",
    "Keys",
    "Limits",
    "Policy",
    "RefusedError",
    "SbbfError",
    "UnreadableError",
    "UsageError",
    "WriteError",
    "add_filters",
    "add_paimon_index",
    "advise",
    "build_paimon_index",
    "check",
    "engines",
    "explain",
    "inspect",
    "inspect_bare",
    "inspect_paimon",
    "probe",
    "probe_bare",
    "probe_paimon",
    "prune",
    "remove_filters",
    "repair",
    "resize_filters",
    "verify",
    "verify_bare",
    "verify_paimon",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
