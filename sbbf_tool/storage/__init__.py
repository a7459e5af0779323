"""Storage of bytes: ranged reads, and the one function that replaces a user's file."""
