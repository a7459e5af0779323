"""The pages on which commands print: Markdown that shows text exactly, commands that can be copied,
and bars."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sbbf_tool.cli.page import MarkdownPage
from sbbf_tool.cli.spelling import quote_command
from sbbf_tool.cli.tables import COUNT, NAME, Heading
from sbbf_tool.display import escape

HOSTILE = [
    "a|b",
    "`code`",
    "*bold* _em_ __x__ ~~no~~",
    "[link](http://x)",
    "<b>html</b><!-- -->",
    "&amp; &lt; &#65;",
    "# heading",
    "- list",
    "1. list",
    "---",
    "\x1b[31m",
    "two\nlines",
    "[x]: http://x",
    "snake_case_name _private_ a_",
    "漢字 e\u0301 \u202e",
    "    four spaces",
    "http://user:no@example.com/a_b_c?x=1&y=2",
]
TEXTS = st.text(alphabet="ab1 \\`*_~[]()<>&#!+-=.:|$\"'/@^{}\t\n\x1b\u202e漢\u0301", max_size=30)
TEXTS |= st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3).map(" ".join)
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def render(fill: Callable[[MarkdownPage], None]) -> list[Token]:
    parts: list[str] = []
    fill(MarkdownPage(parts.append))
    return PARSER.parse("".join(parts))


def text_of(token: Token) -> str:
    """Return the text of a paragraph or a cell, which has nothing but text."""
    children = token.children or []
    assert {child.type for child in children} <= {"text"}
    return "".join(child.content for child in children)


def plain(text: str) -> str:
    """Return what Markdown shows of a text: lines and cells have no spaces at their ends."""
    return escape(text).strip(" ")


@given(TEXTS, TEXTS)
def test_a_cell_shows_its_text(name, cell):
    tokens = render(
        lambda page: page.table(
            [Heading(name, NAME), Heading("n", COUNT)], [(cell, 1), ("end", 22)]
        )
    )
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    shown_text = [text_of(token) for token in tokens if token.type == "inline"]
    assert shown_text == [plain(name), "n", plain(cell), "1", "end", "22"]


@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=4))
def test_a_command_is_a_block_of_code(words):
    (block,) = render(lambda page: page.command(words))
    assert block.type == "fence"
    assert block.content == f"{escape(quote_command(words))}\n"
