"""What each operation answers with: a module for each, frozen dataclasses, plain values inside, ready for JSON by `dataclasses.asdict`.

Sizes are bytes, offsets are bytes from the start of the file, ratios and error rates are fractions from 0 to 1. `None` means
"not known" or "not there", never zero. Row groups count from 0. Columns are named with dots, and backticks where a part has a dot.

Without slots: classes with them take twice as long to make, at every start, and their objects to travel between processes.
"""
