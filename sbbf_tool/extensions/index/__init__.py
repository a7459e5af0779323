"""The index of a lake: which of its files may hold a value of a column, in one read, without
opening any of them."""

from __future__ import annotations

from sbbf_tool.exports import exports
from sbbf_tool.extension import Extension

EXTENSION = Extension(
    commands={
        "index": (
            f"{__name__}.command",
            "Index the files of a lake, so that probe opens only those that may hold a value.",
        )
    },
    documents={"index": f"{__name__}.contents:IndexReport"},
    views={"index": f"{__name__}.view:make_view"},
    indexes={".sbbfx": f"{__name__}.lake_index:LakeIndex"},
)

__getattr__, __dir__ = exports(__name__)
