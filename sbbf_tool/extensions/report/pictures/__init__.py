"""Pictures of filters as SVG text, each with a table of the same numbers: for the HTML report, and
for reports in notebooks."""
