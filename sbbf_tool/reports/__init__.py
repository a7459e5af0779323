"""Results of the operations, one module per operation: frozen dataclasses of plain values, ready for JSON by `dataclasses.asdict`.

Sizes are bytes, offsets are bytes from the start of the file, ratios and false-positive rates are fractions from 0 to 1. `None` means
"unknown" or "missing", never zero. Row groups count from 0. Columns are named with dots, and backticks where a part has a dot.

The classes have no slots: slots double the time to create the classes, at every start, and to pass objects between processes.
"""
