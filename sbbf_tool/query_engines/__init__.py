"""Which query engines use Bloom filters: the table, and the verdicts that follow from it."""
