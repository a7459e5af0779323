"""Run a query in query engines themselves, with filters and without, each engine in a process of
its own."""

from __future__ import annotations

from sbbf_tool.exports import exports
from sbbf_tool.extension import Extension

EXTENSION = Extension(
    documents={"explain-run": f"{__name__}.reports:EngineRunsReport"},
    options={"explain": f"{__name__}.command:make_options"},
)

__getattr__, __dir__ = exports(__name__)
