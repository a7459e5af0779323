"""The HTML report: totals of any number of files in bounded memory, figures from them, and one
self-contained page."""

from __future__ import annotations

from sbbf_tool.exports import exports
from sbbf_tool.extension import Extension

EXTENSION = Extension(
    commands={
        "report": (f"{__name__}.command", "Write an HTML page with pictures of the filters.")
    },
    documents={"report": f"{__name__}.contents:PageReport"},
    figures={
        "sbbf_tool.verbs.inspect:InspectReport": f"{__name__}.filter_figures:render_inspect",
        "sbbf_tool.verbs.explain:ExplainReport": f"{__name__}.filter_figures:render_explain",
        "sbbf_tool.verbs.advise:AdviceReport": f"{__name__}.filter_figures:render_advice",
    },
)

__getattr__, __dir__ = exports(__name__)
