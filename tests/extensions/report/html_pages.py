"""The HTML report as a parser sees it: elements, ids, marks and their titles, tables with exact
numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}
MARKS = {"rect", "circle"}


@dataclass
class TableOfPage:
    figure: str | None
    caption: str = ""
    head: list[str] = field(default_factory=list)
    rows: list[list[float | str]] = field(default_factory=list)

    def column(self, name: str) -> list[float | str]:
        at = self.head.index(name)
        return [row[at] for row in self.rows]


class ParsedPage(HTMLParser):
    """Parses strictly: every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[TableOfPage] = []
        self.texts: list[str] = []
        self.titles_of_marks: list[str] = []
        self.marks = 0
        self._open: list[str] = []
        self._figure: str | None = None
        self._value: str | None = None
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        assert len(attributes) == len(attrs), f"{tag}: an attribute twice"
        self.elements.append((tag, attributes))
        if tag == "figure":
            self._figure = attributes["id"]
        elif tag == "table":
            self.tables.append(TableOfPage(self._figure))
        elif tag == "tr" and "tbody" in self._open:
            self.tables[-1].rows.append([])
        elif tag == "td" and "tbody" in self._open:
            value = attributes.get("data-v")
            self._value = value
            self.tables[-1].rows[-1].append("" if value is None else float(value))
        elif tag in MARKS:
            self.marks += 1
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert tag not in MARKS, "a mark without a title"

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, tag
        if tag == "figure":
            self._figure = None

    def handle_data(self, data: str) -> None:
        tag = self._open[-1] if self._open else ""
        if tag not in ("style", "script"):
            self.texts.append(data)
        if tag == "title" and len(self._open) > 1 and self._open[-2] in MARKS:
            self.titles_of_marks.append(data)
        if tag == "caption":
            self.tables[-1].caption += data
        elif tag == "th":
            self.tables[-1].head.append(data)
        elif tag == "td" and "tbody" in self._open and self._value is None:
            self.tables[-1].rows[-1][-1] = data

    @property
    def ids(self) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get("id"))]

    @property
    def figures(self) -> list[str]:
        return [str(attributes["id"]) for tag, attributes in self.elements if tag == "figure"]

    def table(self, caption: str) -> TableOfPage:
        (match,) = [table for table in self.tables if table.caption == caption]
        return match


def parse_page(text: str) -> ParsedPage:
    """Parse the page, and assert what holds for each: unique ids, marks with titles, references
    that exist, nothing foreign."""
    page = ParsedPage(text)
    assert len(set(page.ids)) == len(page.ids)
    assert len(page.titles_of_marks) == page.marks
    assert all(page.titles_of_marks)
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "style", "srcset", "xlink:href"), (tag, name)
            if name == "href":
                assert value is not None
                assert value.startswith("#"), value
                assert value[1:] in page.ids, value
            if name == "aria-labelledby":
                assert value is not None
                assert set(value.split()) <= set(page.ids), value
    (policy,) = [
        attributes["content"]
        for tag, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    return page
