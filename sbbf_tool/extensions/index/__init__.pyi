"""The public names of the extension: see `sbbf_tool.exports`."""

from sbbf_tool.extension import Extension
from sbbf_tool.extensions.index.build import build_index as build_index
from sbbf_tool.extensions.index.build import update_index as update_index
from sbbf_tool.extensions.index.lake_index import prune_index as prune_index

EXTENSION: Extension
