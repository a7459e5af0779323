"""Table of the public names. `__init__` reads it when a name is first used, and type checkers always do."""

from sbbf_tool.bloom.filter import BloomFilter as BloomFilter
from sbbf_tool.encryption.keys import Keys as Keys
from sbbf_tool.errors import AuthenticationError as AuthenticationError
from sbbf_tool.errors import RefusedError as RefusedError
from sbbf_tool.errors import SbbfError as SbbfError
from sbbf_tool.errors import UncertainWriteError as UncertainWriteError
from sbbf_tool.errors import UnreadableError as UnreadableError
from sbbf_tool.errors import UsageError as UsageError
from sbbf_tool.errors import WriteError as WriteError
from sbbf_tool.extensions.conformance.verbs import make_corpus as make_corpus
from sbbf_tool.extensions.conformance.verbs import run_conformance as run_conformance
from sbbf_tool.extensions.engine_runs.run import run_engines as run_engines
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index as add_paimon_index
from sbbf_tool.extensions.paimon.verbs.build import build_paimon_index as build_paimon_index
from sbbf_tool.extensions.paimon.verbs.check import check_paimon as check_paimon
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon as inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon as probe_paimon
from sbbf_tool.extensions.paimon.verbs.remove_index import remove_paimon_index as remove_paimon_index
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon as verify_paimon
from sbbf_tool.extensions.report.write_report import write_report as write_report
from sbbf_tool.extensions.tables.open_table import open_table as open_table
from sbbf_tool.operations.add import add_filters as add_filters
from sbbf_tool.operations.advise import advise as advise
from sbbf_tool.operations.apply import apply as apply
from sbbf_tool.operations.check import check as check
from sbbf_tool.operations.engines import engines as engines
from sbbf_tool.operations.explain import explain as explain
from sbbf_tool.operations.inspect import inspect as inspect
from sbbf_tool.operations.probe import probe as probe
from sbbf_tool.operations.prune import prune as prune
from sbbf_tool.operations.remove import remove_filters as remove_filters
from sbbf_tool.operations.repair import repair as repair
from sbbf_tool.operations.resize import resize_filters as resize_filters
from sbbf_tool.operations.size import size_filter as size_filter
from sbbf_tool.operations.verify import verify as verify
from sbbf_tool.rules.check_policy import Policy as Policy
from sbbf_tool.rules.filter_spec import FilterSpec as FilterSpec
from sbbf_tool.rules.filter_spec import read_specs as read_specs
from sbbf_tool.rules.rule import Limits as Limits
from sbbf_tool.runner.open_files import open_files as open_files

__version__: str
