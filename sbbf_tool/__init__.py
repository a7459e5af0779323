"""Inspect, query, verify and add Bloom filters in existing Parquet files.

    import sbbf_tool

    sbbf_tool.inspect("events.parquet").filters
    sbbf_tool.probe("events.parquet", "user_id", [42]).is_absent
    sbbf_tool.add_filters("events.parquet", ["user_id"], output="with_filters.parquet")
    sbbf_tool.verify("with_filters.parquet").is_sound
    sbbf_tool.check("with_filters.parquet").findings
    sbbf_tool.remove_filters("with_filters.parquet", in_place=True)

Verbs as classes, for `run`, are in `sbbf_tool.verbs`, and the functions of an extension in its
package, such as `sbbf_tool.extensions.index`.
"""

from __future__ import annotations

from sbbf_tool.exports import exports

_find, _names = exports(__name__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("sbbf-tool")
        except PackageNotFoundError:  # a checkout, or a zip
            return "unknown"
    return _find(name)


def __dir__() -> list[str]:
    return ["__version__", *_names()]
