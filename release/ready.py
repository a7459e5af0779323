"""Refuse a release that is not ready: python release/ready.py v0.1.0

Authors and addresses are in pyproject.toml, the version's date in CHANGELOG.md, and the tag is the
version.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ADDRESSES = ("Changelog", "Documentation", "Issues", "Source")


def find_obstacles(root: Path, tag: str) -> Iterator[str]:
    """Yield a sentence for each thing that must be done before a release with this tag."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if not any(author.get("name") for author in project.get("authors", [])):
        yield "pyproject.toml: `authors` is empty; name a person or a group"
    urls = project.get("urls", {})
    for label in ADDRESSES:
        if not re.match(r"https://[^/]+\.[^/]+", urls.get(label, "")):
            yield f"pyproject.toml: [project.urls] has no address https://... for {label}"
    version = project["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, but the version in pyproject.toml is {version}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$", changelog, re.MULTILINE
    ):
        yield f"CHANGELOG.md: there is no title `## {version} (YEAR-MONTH-DAY)`"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    obstacles = list(find_obstacles(ROOT, sys.argv[1]))
    for obstacle in obstacles:
        print(f"not ready: {obstacle}", file=sys.stderr)
    return 1 if obstacles else 0


if __name__ == "__main__":
    sys.exit(main())
