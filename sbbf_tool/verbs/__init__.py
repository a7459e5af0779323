"""The verbs: what `sbbf` can do with a file, one module each, and what they have in common. Their
classes can be imported from here."""

from sbbf_tool.exports import exports

__getattr__, __dir__ = exports(__name__)
