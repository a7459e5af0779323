"""Changes of a file: filter spec, sizing, build, target, plan file, publish."""
