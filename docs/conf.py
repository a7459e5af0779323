"""The documentation as a site: `python -m sphinx -W docs OUT`.

The pages are plain Markdown that also reads well on a code host. So this module adds what the site
needs: the navigation, which follows the links of each `index.md`, a place for links to files
outside this folder, and what the package itself says of its commands, rules, functions and
documents (`parts`).
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))
OUTSIDE = {name.lower(): f"{name.upper()}.md" for name in ("changelog", "contributing", "security")}
"""The pages of the site that show a file above this folder."""
LINK = re.compile(
    r"(?P<label>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!https?:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
)
ENTRY = re.compile(r"^(?:- |\| )\[[^\]]*\]\((?P<path>(?!https?:|\.\./)[^)#]+)\.md\)", re.MULTILINE)
BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)

project = "sbbf"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
html_title = f"{project} {release}"
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True
smartquotes = False  # they would make one dash of the two of an option
exclude_patterns = ["_build"]
suppress_warnings = [
    "misc.highlighting_failure"
]  # SQL and YAML with the templates of other programs
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


def setup(app: Any) -> None:
    app.connect("source-read", prepare_source)
    app.connect("html-page-context", make_blocks_focusable)
    app.connect("build-finished", name_landmarks)
    app.connect("build-finished", write_schemas)


def prepare_source(app: Any, docname: str, source: list[str]) -> None:
    """Change the text of a page for the site."""
    from parts import fill

    origin = ROOT / OUTSIDE[docname] if docname in OUTSIDE else DOCS / f"{docname}.md"
    text = origin.read_text() if docname in OUTSIDE else source[0]
    pieces = BLOCK.split(fill(text))
    pieces[::2] = [
        LINK.sub(lambda link: place_link(link, origin.parent, docname), piece)
        for piece in pieces[::2]
    ]
    source[0] = "".join(pieces) + build_navigation(docname, text)


def place_link(link: re.Match[str], folder: Path, docname: str) -> str:
    """Return a link of a page in `folder` as the site has it; its label alone where the site has no
    page for it."""
    target = (folder / link["path"]).resolve()
    if target.parent == ROOT and target.name in OUTSIDE.values():
        target = DOCS / f"{target.stem.lower()}.md"
    if not target.is_relative_to(DOCS) or target.is_dir():
        return link["label"].lstrip("!").removeprefix("[").removesuffix("]")
    path = relpath(target.relative_to(DOCS).as_posix(), PurePosixPath(docname).parent.as_posix())
    return f"{link['label']}({path}{link['anchor'] or ''})"


def build_navigation(docname: str, text: str) -> str:
    """Build the table of contents of an index page from the links that begin its list items and
    table rows."""
    if PurePosixPath(docname).name != "index":
        return ""
    return "\n".join(
        ["\n\n```{toctree}", ":hidden:", "", *dict.fromkeys(ENTRY.findall(text)), "```", ""]
    )


def make_blocks_focusable(
    app: Any, docname: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Let the keyboard scroll blocks that are wider than the window."""
    context["body"] = context.get("body", "").replace("<pre>", '<pre tabindex="0">')


def name_landmarks(app: Any, error: Exception | None) -> None:
    """Name the two sidebars of the theme for screen readers."""
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text()
            for name, label in (("sidebar-drawer", "All pages"), ("toc-drawer", "This page")):
                text = text.replace(
                    f'<aside class="{name}', f'<aside aria-label="{label}" class="{name}'
                )
            path.write_text(text)


def write_schemas(app: Any, error: Exception | None) -> None:
    """Write the JSON Schemas of the documents, which the page about JSON links."""
    from sbbf_tool.cli.schema import build_schema, documents

    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "reference" / "schemas"
        folder.mkdir(exist_ok=True)
        for name in documents():
            (folder / f"sbbf.{name}.json").write_text(json.dumps(build_schema(name), indent=2))
