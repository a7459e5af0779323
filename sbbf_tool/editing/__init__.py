"""How a file changes: filter spec, sizing, build, target, plan file, publish."""
