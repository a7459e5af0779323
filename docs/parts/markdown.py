"""Tables, code and plain text in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")
_OPTION = re.compile(r"(?<![\w`-])--[a-z0-9][\w-]*")
_SPECIAL = re.compile(r"([*<\[\]])")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Build a table of cells that are Markdown already."""
    lines = [
        " | ".join(header),
        "|".join("---" for _ in header),
        *(" | ".join(row) for row in rows),
    ]
    return "".join(f"|{line}|\n" if line.startswith("---") else f"| {line} |\n" for line in lines)


def code(text: str) -> str:
    """Format text as code, also inside a table."""
    text = text.replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def plain(text: str) -> str:
    """Escape text outside its backticks, and put its options into some."""
    parts = _CODE.split(text)
    parts[::2] = [_OPTION.sub(r"`\g<0>`", part) for part in parts[::2]]
    parts = _CODE.split("".join(parts))
    parts[::2] = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts).replace("|", "\\|")


def block(kind: str, text: str) -> str:
    return f"```{kind}\n{text.rstrip()}\n```\n"


def paragraphs(*texts: str) -> str:
    """Join parts with an empty line between them."""
    return "\n".join(f"{text.rstrip()}\n" for text in texts if text)
