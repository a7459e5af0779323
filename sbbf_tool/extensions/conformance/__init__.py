"""The conformance corpus: files with Bloom filters, questions about them with the answers that the format requires, and the judgement of
readers and writers by these. docs/reference/conformance.md is its specification.
"""
