"""The conformance corpus: files with Bloom filters, questions about them with the answers that the
format requires, and the judgement of readers and writers by these. docs/reference/conformance.md is
its specification.
"""

from __future__ import annotations

from sbbf_tool.exports import exports
from sbbf_tool.extension import Extension

EXTENSION = Extension(
    commands={
        "conformance": (
            f"{__name__}.commands",
            "Test any reader or writer of filters with a corpus of files.",
        )
    },
    documents={
        "conformance-make": f"{__name__}.reports:MadeCorpus",
        "conformance-run": f"{__name__}.reports:ConformanceReport",
    },
)

__getattr__, __dir__ = exports(__name__)
