"""What query engines do with Bloom filters: the table, and the verdicts that follow from it."""
