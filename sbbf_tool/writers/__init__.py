"""The settings by which writers add filters to the files that they write."""
