"""The pictures of the documentation: what the commands print now on a terminal of 100 columns, and
drawings.

`pytest tests/test_pictures.py --bless` draws them again.
"""

from __future__ import annotations

import io
import re
import shutil
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from support.tables import each
from support.terminals import run_on_terminal

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
RICH = "15"
"""The version of rich that draws the pictures."""
COLUMNS = 100
CELL = 12.2
"""Width of a character in the units of the pictures."""
PICTURES = {
    "inspect": ["inspect", "fixtures/pyarrow-filters.parquet"],
    "check": ["check", "fixtures/spark-96-bytes.parquet", "--max-fpp", "0.001"],
    "explain": ["explain", "fixtures/pyarrow-filters.parquet", "id", "4711"],
    "verify": ["verify", "fixtures/duckdb-filters.parquet", "-c", "id", "-c", "tag"],
}
DRAWINGS = {"appending", "blocks", "rates", "skipping"}
"""Pictures that are no output of a command."""
THEME = TerminalTheme(
    (250, 250, 250),
    (0, 0, 0),
    [
        (36, 41, 47),
        (207, 34, 46),
        (17, 99, 41),
        (125, 78, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (87, 96, 106),
    ],
)
"""Dark colours on a light background, to which each has a contrast of at least 4.5."""
# rich's own format loads a font from another server, and has no text for a screen reader.
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" \
xmlns="http://www.w3.org/2000/svg" role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{ \
font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">\
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw(title: str, output: str, name: str) -> str:
    """Return the picture of an output as SVG."""
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(Text.from_ansi(output.rstrip()), soft_wrap=True)
    svg = console.export_svg(
        title=title, theme=THEME, code_format=FORMAT.replace("TITLE", title), unique_id=name
    )
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


def text_of(picture: str) -> list[str]:
    """Return the lines of text in a picture, without empty ones."""
    lines: dict[float, str] = {}
    for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        if "clip-path" in element.attrib:
            at = float(element.get("y", "0"))
            column = round(float(element.get("x", "0")) / CELL)
            lines[at] = lines.get(at, "").ljust(column) + "".join(element.itertext()).replace(
                "\xa0", " "
            )
    return [line.rstrip() for _, line in sorted(lines.items()) if line.strip()]


@each("name", list(PICTURES))
def test_a_picture_shows_what_the_command_prints(name, fixtures, tmp_path, monkeypatch, request):
    shutil.copytree(fixtures, tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    output = run_on_terminal(PICTURES[name], COLUMNS)
    assert output.code in (0, 1)
    picture = draw(f"sbbf {' '.join(PICTURES[name])}", output.out, name)
    assert text_of(picture) == [line.rstrip() for line in output.lines]
    path = FOLDER / f"{name}.svg"
    if request.config.getoption("--bless"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(picture)
    # Other versions of rich write the same picture in other words.
    same_rich = version("rich").split(".")[0] == RICH
    is_current = (
        path.read_text() == picture if same_rich else text_of(path.read_text()) == text_of(picture)
    )
    assert is_current, f"{path.name} is out of date; --bless draws it again"


def test_no_picture_is_left_over():
    assert {path.name for path in FOLDER.iterdir()} == {
        f"{name}.svg" for name in (*PICTURES, *DRAWINGS)
    }


def test_pictures_load_nothing():
    """Fonts and scripts of other servers would report who reads the page."""
    for path in FOLDER.iterdir():
        text = path.read_text()
        assert not re.search(r"https?://(?!www\.w3\.org/)", text)
        assert "<script" not in text


def test_each_picture_has_a_name_and_is_shown():
    pages = "".join(
        path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    )
    for path in FOLDER.iterdir():
        title = ElementTree.fromstring(path.read_text()).find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text
        assert f"pictures/{path.name})" in pages
