"""The list of all pages in `llms.txt`, from the links of the index pages."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
_ENTRY = re.compile(r"^- \[(?P<title>[^\]]*)\]\((?P<path>[^)]+\.md)\): (?P<text>.*)$", re.MULTILINE)


def list_pages(folder: str) -> str:
    """List the pages of a part of the documentation, with what its index says about each."""
    entries = _ENTRY.finditer((DOCS / folder / "index.md").read_text())
    return "".join(f"- [{entry['title']}]({folder}/{entry['path']}): {entry['text']}\n" for entry in entries)
