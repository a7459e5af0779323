"""The rules for the filters of a file, each with a name, a severity, a message and a fix. One
module per group."""
