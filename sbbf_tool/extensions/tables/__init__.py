"""Tables of Delta, Iceberg and DuckLake: their live files, and the commit that replaces files by
copies with other filters."""

from __future__ import annotations

from sbbf_tool.extension import Extension

EXTENSION = Extension(
    documents={"abandoned": f"{__name__}.copies:AbandonedReport"},
    options={"repair": f"{__name__}.abandoned_command:make_options"},
    topics={"tables": f"{__name__}.help_command:TEXT"},
    tables=f"{__name__}.locate",
)

DUCKLAKE = "ducklake:"
"""Prefix of the names of DuckLake tables."""
