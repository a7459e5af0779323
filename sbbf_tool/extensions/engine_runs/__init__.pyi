"""The public names of the extension: see `sbbf_tool.exports`."""

from sbbf_tool.extension import Extension
from sbbf_tool.extensions.engine_runs.run import run_engines as run_engines

EXTENSION: Extension
