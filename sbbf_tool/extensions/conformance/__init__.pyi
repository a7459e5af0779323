"""The public names of the extension: see `sbbf_tool.exports`."""

from sbbf_tool.extension import Extension
from sbbf_tool.extensions.conformance.corpus_writer import make_corpus as make_corpus
from sbbf_tool.extensions.conformance.run import run_conformance as run_conformance

EXTENSION: Extension
