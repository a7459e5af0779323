"""The words of a line of bash, the last of them unfinished, and the text that completes it.

bash gives a completion function no words without quotes, and inserts what it returns as it is, from the last unquoted character of
COMP_WORDBREAKS or from an open quote on.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SPECIAL = re.compile(r"""([\s!"#$&'()*,;<>?\[\\\]^`{|}~])""")


class Line(NamedTuple):
    words: list[str]
    """The finished words, without quotes."""
    current: str
    """The unfinished word, without quotes."""
    quote: str
    """The open quote, or nothing."""
    offset: int
    """Where in `current` the text begins that bash replaces."""

    def insert(self, word: str) -> str | None:
        """Return what bash inserts for a whole word; None if it cannot be written there."""
        rest = word[self.offset :]
        if not rest.isprintable():
            return _in_ansi_quotes(rest) if self.offset == 0 and not self.quote else None
        if not self.quote:
            return _SPECIAL.sub(r"\\\1", rest)
        text = rest.replace("'", "'\\''") if self.quote == "'" else re.sub(r'(["$\\`])', r"\\\1", rest)
        # bash closes the quote, unless it takes the last character for the end of it.
        return text + self.quote if text.endswith(self.quote) else text


def parse_line(line: str, breaks: str) -> Line:
    """Split a line as bash does; the last word is unfinished, and empty after a space."""
    words: list[str] = []
    word: list[str] = []
    is_open = False
    quote, offset = "", 0
    characters = iter(line)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"':
                following = next(characters, "")
                word.append(following if following in '"$\\`' else character + following)
            else:
                word.append(character)
        elif character in " \t\n":
            if is_open:
                words.append("".join(word))
            word, is_open, offset = [], False, 0
            continue
        elif character in "'\"":
            quote, offset = character, len("".join(word))
        elif character == "\\":
            word.append(next(characters, ""))
        else:
            word.append(character)
            if character in breaks:
                offset = len("".join(word))
        is_open = True
    return Line(words, "".join(word), quote, offset)


def _in_ansi_quotes(text: str) -> str:
    escaped = "".join(
        f"\\{character}"
        if character in "'\\"
        else character
        if character.isprintable()
        else "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))
        for character in text
    )
    return f"$'{escaped}'"
