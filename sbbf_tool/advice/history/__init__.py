"""The predicates of real queries, from event logs of Spark and profiles of DuckDB."""
