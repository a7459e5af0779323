"""The verbs as classes: see `exports`."""

from sbbf_tool.verbs.add_filter import AddFilter as AddFilter
from sbbf_tool.verbs.advise import Advise as Advise
from sbbf_tool.verbs.apply import Apply as Apply
from sbbf_tool.verbs.check import Check as Check
from sbbf_tool.verbs.explain import Explain as Explain
from sbbf_tool.verbs.inspect import Inspect as Inspect
from sbbf_tool.verbs.probe import Probe as Probe
from sbbf_tool.verbs.remove_filter import RemoveFilter as RemoveFilter
from sbbf_tool.verbs.repair import Repair as Repair
from sbbf_tool.verbs.resize import Resize as Resize
from sbbf_tool.verbs.verify import Verify as Verify
