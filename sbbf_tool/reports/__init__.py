"""What reports have in common, and parts of several: immutable classes of plain values, which
`dataclasses.asdict` prepares for JSON.

Sizes are bytes, offsets are bytes from the start of the file, ratios and false-positive rates are
fractions from 0 to 1. `None` means "unknown" or "missing", never zero. Row groups count from 0.
Column names join their parts with dots; a part that has a dot is in backticks.

The classes have no slots, because slots double the time to pass objects between processes.
"""
