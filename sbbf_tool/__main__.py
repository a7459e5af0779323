"""`python -m sbbf_tool` is `sbbf`."""

from sbbf_tool.cli import main

main()
