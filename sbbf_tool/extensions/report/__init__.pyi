"""The public names of the extension: see `sbbf_tool.exports`."""

from sbbf_tool.extension import Extension
from sbbf_tool.extensions.report.page import write_report as write_report

EXTENSION: Extension
