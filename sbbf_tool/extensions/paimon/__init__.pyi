"""The public names of the extension: see `sbbf_tool.exports`."""

from sbbf_tool.extension import Extension
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index as add_paimon_index
from sbbf_tool.extensions.paimon.verbs.build import build_paimon_index as build_paimon_index
from sbbf_tool.extensions.paimon.verbs.check import check_paimon as check_paimon
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon as inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon as probe_paimon
from sbbf_tool.extensions.paimon.verbs.remove_index import (
    remove_paimon_index as remove_paimon_index,
)
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon as verify_paimon

EXTENSION: Extension
