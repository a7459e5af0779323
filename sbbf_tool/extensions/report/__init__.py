"""The HTML report: totals of any number of files in bounded memory, figures from them, and one self-contained page."""
