"""One module per thing the tool does; each answers with a report and prints nothing."""
