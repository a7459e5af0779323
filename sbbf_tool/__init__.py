"""Inspect, query, verify and add Bloom filters in existing Parquet files.

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

import os
from functools import cache
from importlib import import_module


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("sbbf-tool")
        except PackageNotFoundError:  # a checkout, or a zip
            return "unknown"
    homes = _homes()
    if name == "__all__":
        return _installed()
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(homes[name]), name)
    except ModuleNotFoundError as error:
        from sbbf_tool.errors import UsageError, describe_unexpected, missing_extension

        if missing_extension(error):
            raise UsageError(describe_unexpected(error)) from None
        raise


def __dir__() -> list[str]:
    return sorted([*globals(), "__version__", *_installed()])


@cache
def _homes() -> dict[str, str]:
    """Map each public name to its module, from the stub beside this file. The loader reads the stub, since the package may be in a zip."""
    import re  # not at the top: the command line uses nothing from here, and should not load `re`

    stub = __loader__.get_data(os.path.join(os.path.dirname(__file__), "__init__.pyi")).decode()
    return {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \2$", stub, re.MULTILINE)}


def _installed() -> list[str]:
    """Return the public names without those of extensions that are not installed."""
    from importlib.util import find_spec

    own = f"{__name__}.extensions."
    return [name for name, home in _homes().items() if not home.startswith(own) or find_spec(".".join(home.split(".")[:3]))]
