"""The pages on which commands print: Markdown that shows text exactly, commands that can be copied, and bars."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sbbf_tool.cli.page import MarkdownPage, TextPage
from sbbf_tool.cli.spelling import quote_command
from sbbf_tool.cli.tables import COUNT, NAME, Column
from sbbf_tool.display import escape
from support.tables import each

HOSTILE = [
    "a|b",
    "a\\|b",
    "`code`",
    "``",
    "*bold* _em_ __x__ ~~no~~",
    "[link](http://x)",
    "![image](http://x)",
    "<b>html</b><!-- -->",
    "&amp; &lt; &#65;",
    "# heading",
    "- list",
    "+ list",
    "1. list",
    "12) list",
    "> quote",
    "===",
    "---",
    "~~~",
    "\x1b[31m",
    "two\nlines",
    "back\\slash\\",
    "[x]: http://x",
    "snake_case_name _private_ a_",
    "| --- | --- |",
    "$x$ and $$y$$",
    "漢字 e\u0301 \u202e",
    "    four spaces",
    "\ttab",
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
    tokens = render(lambda page: page.table([Column(name, NAME), Column("n", COUNT)], [(cell, 1), ("end", 22)]))
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    shown_text = [text_of(token) for token in tokens if token.type == "inline"]
    assert shown_text == [plain(name), "n", plain(cell), "1", "end", "22"]


@each("text", HOSTILE)
def test_hostile_names_are_shown(text):
    tokens = render(lambda page: page.table([Column(text, NAME)], [(text,)]))
    assert [text_of(token) for token in tokens if token.type == "inline"] == [plain(text)] * 2


@given(TEXTS)
def test_a_line_is_a_paragraph(text):
    tokens = render(lambda page: [page.say("first"), page.say(text), page.say("last")])
    assert {token.type for token in tokens} == {"paragraph_open", "inline", "paragraph_close"}
    middle = [plain(text.strip())] if plain(text.strip()) else []
    assert [text_of(token) for token in tokens if token.type == "inline"] == ["first", *middle, "last"]


@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=4))
def test_a_command_is_a_block_of_code(words):
    (block,) = render(lambda page: page.command(words))
    assert block.type == "fence"
    assert block.content == f"{escape(quote_command(words))}\n"


def test_blocks_are_apart():
    def fill(page: MarkdownPage) -> None:
        page.say("before")
        page.table([Column("a", NAME)], [("x",)])
        page.say("after")

    assert [token.type for token in render(fill) if token.level == 0 and token.nesting == 1] == [
        "paragraph_open",
        "table_open",
        "paragraph_open",
    ]


def test_numbers_are_on_the_right():
    (cell,) = (token for token in render(lambda page: page.table([Column("n", COUNT)], [(1,)])) if token.type == "td_open")
    assert cell.attrGet("style") == "text-align:right"


def test_a_table_without_rows_is_nothing():
    assert render(lambda page: page.table([Column("a", NAME)], [])) == []


class TestBars:
    @pytest.fixture
    def page(self):
        return TextPage(lambda line: None)

    @given(st.floats(0, 1), st.integers(2, 60))
    def test_a_bar_has_its_length_and_shows_each_part(self, share, cells):
        bar = TextPage(lambda line: None).bar(share, cells)
        assert len(bar) == cells
        assert ("█" in bar) == (share > 0)
        assert ("░" in bar) == (share < 1)

    @given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=200), st.integers(1, 20))
    def test_bars_never_exceed_their_number(self, ratios, most):
        bars = TextPage(lambda line: None).bars(ratios, most)
        assert len(bars) == min(len(ratios), most)
        assert set(bars) <= set("·▁▂▃▄▅▆▇█")

    def test_examples(self, page):
        assert page.bars([0, 0.5, 1, None], 16) == "▁▅█·"
        assert page.bars([0.1, 0.9, 0.2, 0.2], 2) == "█▂"
        assert page.bar(0.5, 4) == "██░░"

    def test_without_blocks(self, page):
        page.has_blocks = False
        assert page.bars([0, 0.5, 1, None], 16) == "158."
        assert page.bar(0.5, 4) == "##.."
