"""Changes to files: filter spec, sizing, build, target, plan file, publish."""
