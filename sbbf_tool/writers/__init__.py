"""The settings by which writers add filters to the files that they write: one module per writer, which parses and builds them."""
