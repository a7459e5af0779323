"""Where bytes live: ranged reads, and the one function that replaces a user's file."""
