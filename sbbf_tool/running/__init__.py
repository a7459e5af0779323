"""Runs over many files: discovery, partitions, plan, schedule, rows, and processes on this
machine."""
