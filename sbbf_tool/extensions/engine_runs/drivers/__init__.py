"""One module per query engine that can be run. Each runs in a process of its own, and is imported
only there."""
