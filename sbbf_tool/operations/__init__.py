"""One module per verb; each returns a report and prints nothing."""
