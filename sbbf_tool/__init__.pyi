"""The public names. `__init__` reads this table when a name is first used, and type checkers always
do."""

from sbbf_tool.bloom.filter import BloomFilter as BloomFilter
from sbbf_tool.editing.edit import Edit as Edit
from sbbf_tool.encryption.keys import Keys as Keys
from sbbf_tool.errors import AuthenticationError as AuthenticationError
from sbbf_tool.errors import RefusedError as RefusedError
from sbbf_tool.errors import SbbfError as SbbfError
from sbbf_tool.errors import UncertainWriteError as UncertainWriteError
from sbbf_tool.errors import UnreadableError as UnreadableError
from sbbf_tool.errors import UsageError as UsageError
from sbbf_tool.errors import WriteError as WriteError
from sbbf_tool.rules.catalog import Policy as Policy
from sbbf_tool.rules.filter_spec import FilterSpec as FilterSpec
from sbbf_tool.rules.filter_spec import read_specs as read_specs
from sbbf_tool.rules.rule import Limits as Limits
from sbbf_tool.running.outcome import Summary as Summary
from sbbf_tool.running.run import advise as advise
from sbbf_tool.running.run import run as run
from sbbf_tool.verbs.add_filter import add_filters as add_filters
from sbbf_tool.verbs.apply import apply as apply
from sbbf_tool.verbs.check import check as check
from sbbf_tool.verbs.engines import engines as engines
from sbbf_tool.verbs.explain import explain as explain
from sbbf_tool.verbs.inspect import inspect as inspect
from sbbf_tool.verbs.probe import probe as probe
from sbbf_tool.verbs.prune import prune as prune
from sbbf_tool.verbs.remove_filter import remove_filters as remove_filters
from sbbf_tool.verbs.repair import repair as repair
from sbbf_tool.verbs.resize import resize_filters as resize_filters
from sbbf_tool.verbs.size import size_filter as size_filter
from sbbf_tool.verbs.verify import verify as verify

__version__: str
