"""Run a query in query engines themselves, with filters and without, each engine in a process of its own."""
