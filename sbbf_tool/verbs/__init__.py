"""The verbs: what `sbbf` can do with a file, one module each, and what they have in common."""
