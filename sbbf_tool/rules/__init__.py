"""The rules: what can be wrong with the filters of a file, each with a name, a severity, a sentence and a fix. One module a theme."""
