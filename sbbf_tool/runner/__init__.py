"""Many files: discovery, partitions, plan, schedule, rows; processes of this machine."""
