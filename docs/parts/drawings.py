"""The shapes of the drawings: `docs/pictures/*.svg` has their frames and markers."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import log10

from sbbf_tool.bloom.sizing import fpp_of_bits
from sbbf_tool.bloom.spec import block_index, mask, xxh64

ABSENT, MAYBE = "absent", "maybe"


def _text(x: float, y: float, text: str, kind: str = "t") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    shape = f'class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f"<rect {shape}><title>{escape(title)}</title></rect>" if title else f"<rect {shape}/>"


def draw_blocks() -> str:
    """Draw a filter of four blocks after the INT64 42 was inserted: the hash selects a block, and one bit in each of its words."""
    num_blocks, bit, word_gap, margin, top, row = 4, 5.0, 8.0, 78.0, 120.0, 40.0
    value = xxh64((42).to_bytes(8, "little"))
    selected, words = block_index(value, num_blocks), mask(value & 0xFFFFFFFF)
    lines = [
        _text(20, 36, "42 as INT64: 2a 00 00 00 00 00 00 00", "m"),
        _text(20, 64, f"XXH64: {value >> 32:08x} {value & 0xFFFFFFFF:08x}", "m"),
        _text(250, 64, f"the upper half selects block {selected}, the lower half one bit in each of its words"),
        _text(margin, top - 12, "eight words of 32 bits in each block: 32 bytes"),
    ]
    for block in range(num_blocks):
        y = top + block * row
        lines.append(_text(20, y + 17, f"block {block}"))
        for word in range(8):
            x = margin + word * (32 * bit / 2 + word_gap)
            is_set = block == selected
            lines.append(_box(x, y, 32 * bit / 2, 24, "word chosen" if is_set else "word"))
            if is_set:
                number = words[word].bit_length() - 1
                lines.append(_box(x + number * bit / 2, y, bit / 2 + 1, 24, "bit", f"block {block}, word {word}, bit {number}"))
    lines.append(
        _text(
            20,
            top + num_blocks * row + 20,
            "A query for 42 reads these eight bits. If one of them is not set, 42 was never inserted: absent.",
        )
    )
    return _join(lines)


def draw_skipping() -> str:
    """Draw what a query for one value reads of four row groups, without filters and with them."""
    ranges = ["3 to 9,981", "7 to 9,990", "1 to 9,973", "5 to 9,998"]
    answers = [ABSENT, ABSENT, MAYBE, ABSENT]
    lines = [
        _text(20, 34, "SELECT * FROM events WHERE user_id = 42", "m"),
        *(
            _text(x, 66, head, "h")
            for x, head in ((20, "row group"), (110, "min and max"), (230, "without filters"), (430, "filter"), (510, "with filters"))
        ),
    ]
    for number, (limits, answer) in enumerate(zip(ranges, answers, strict=True)):
        y = 80 + number * 34
        is_read = answer == MAYBE
        lines += [
            _text(20, y + 17, str(number)),
            _text(110, y + 17, limits),
            _box(230, y, 170, 24, "read", f"row group {number}: read"),
            _text(240, y + 17, "read", "on"),
            _text(430, y + 17, answer, "t" if is_read else "h"),
            _box(510, y, 170, 24, "read" if is_read else "skipped", f"row group {number}: {'read' if is_read else 'skipped'}"),
            _text(520, y + 17, "read" if is_read else "skipped", "on" if is_read else "t"),
        ]
    return _join(lines)


def draw_file() -> str:
    """Draw a file before and after filters are appended."""
    old = [("PAR1", 46), ("row group 0", 100), ("row group 1", 100), ("row group 2", 100), ("footer", 60), ("PAR1", 46)]
    new = [("filters", 70), ("new footer", 84), ("PAR1", 46)]
    lines = [_text(20, 34, "before"), _text(20, 116, "after")]
    x = 80.0
    for name, width in old:
        for y, kind in ((16, "data"), (98, "data")):
            lines += [_box(x, y, width, 28, kind), _text(x + 6, y + 19, name)]
        x += width
    lines.append(_text(80, 150, "the old file: no byte of it changes", "h"))
    start = x
    for name, width in new:
        lines += [_box(x, 98, width, 28, "added"), _text(x + 6, 117, name)]
        x += width
    lines.append(_text(start, 150, "what sbbf appends", "h"))
    return _join(lines)


def draw_rates() -> str:
    """Draw the false-positive rate of a filter by its bits per value."""
    margin, top, width, height, most_bits = 70.0, 30.0, 560.0, 240.0, 24
    least, most = -5.0, 0.0

    def place(bits: float, fpp: float) -> tuple[float, float]:
        return margin + width * bits / most_bits, top + height * (most - log10(fpp)) / (most - least)

    lines: list[str] = []
    for power in range(int(least), 1):
        _, y = place(0, 10.0**power)
        lines += [f'<path class="grid" d="M{margin:g} {y:g}h{width:g}"/>', _text(14, y + 5, f"{10.0 ** (power + 2):g} %")]
    for bits in range(0, most_bits + 1, 4):
        x, _ = place(bits, 1)
        lines.append(_text(x - 6, top + height + 20, str(bits)))
    lines.append(_text(margin + width / 2 - 50, top + height + 42, "bits per distinct value"))
    points = [place(bits / 4, fpp_of_bits(bits / 4)) for bits in range(2, 4 * most_bits + 1)]
    lines.append('<polyline class="curve" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
    for bits, label in ((6.0, "6 bits"), (10.53, "10.53 bits"), (21.06, "21.06 bits")):
        x, y = place(bits, fpp_of_bits(bits))
        name = f"{label}: {fpp_of_bits(bits) * 100:.2g} %"
        lines += [f'<circle class="bit" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{name}</title></circle>']
        is_last = bits > 20
        lines.append(_text(x - 150 if is_last else x + 10, y + 22 if is_last else y - 8, name))
    return _join(lines)


def _join(lines: list[str] | Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
