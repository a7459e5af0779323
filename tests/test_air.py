"""Air: how much a reader unpacks in a line of code. Each room keeps what it has reached."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from test_architecture import PACKAGE, modules, room_of

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SLACK = 1.02


class Air(NamedTuple):
    """Tokens in a line of code; the other three for each 1,000 tokens."""

    tokens: float
    conditional_expressions: float
    comprehensions: float
    assignments_of_several: float


CEILINGS = {
    "advice": Air(7.8, 2.2, 2.8, 0.00),
    "avro": Air(8.1, 2.0, 1.7, 0.00),
    "bloom": Air(8.8, 1.0, 2.8, 0.00),
    "cli": Air(8.0, 2.8, 3.6, 0.00),
    "conformance": Air(8.1, 1.3, 3.8, 0.00),
    "editing": Air(8.0, 1.4, 3.2, 0.00),
    "encryption": Air(7.8, 1.8, 0.6, 0.00),
    "engine_runs": Air(7.9, 1.8, 3.3, 0.00),
    "file": Air(8.5, 1.5, 2.5, 0.00),
    "index": Air(8.3, 1.4, 2.5, 0.00),
    "paimon": Air(7.7, 2.0, 2.9, 0.00),
    "parquet": Air(8.2, 2.0, 1.9, 0.00),
    "query_engines": Air(7.4, 1.5, 2.0, 0.00),
    "report": Air(7.9, 2.0, 2.8, 0.00),
    "reports": Air(7.5, 2.4, 2.9, 0.00),
    "root": Air(8.3, 3.2, 3.0, 0.00),
    "rules": Air(7.3, 1.7, 3.7, 0.00),
    "running": Air(8.4, 3.2, 2.6, 0.06),
    "spark": Air(8.2, 1.6, 3.1, 0.00),
    "storage": Air(7.7, 1.9, 1.9, 0.00),
    "tables": Air(8.1, 1.9, 3.1, 0.00),
    "verbs": Air(7.8, 1.2, 2.5, 0.00),
    "writers": Air(7.0, 2.0, 3.3, 0.00),
}
"""What each room has reached. Lower a figure when its room has more air; raise none."""


def measure(source: str) -> Counter[str]:
    """Count tokens and lines of code without comments and docstrings, and what packs a line."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    texts = set(_lines_of_texts(nodes))
    lines = set()
    count = Counter[str]()
    for token in tokenize.tokenize(iter(source.encode().splitlines(True)).__next__):
        if token.type not in LAYOUT and token.start[0] not in texts:
            count["tokens"] += 1
            lines.update(range(token.start[0], token.end[0] + 1))
    count["lines"] = len(lines)
    count["conditional_expressions"] = sum(isinstance(node, ast.IfExp) for node in nodes)
    count["comprehensions"] = sum(isinstance(node, COMPREHENSIONS) for node in nodes)
    count["assignments_of_several"] = sum(_assigns_several(node) for node in nodes)
    return count


def _lines_of_texts(nodes: list[ast.AST]) -> Iterator[int]:
    """Yield the lines of docstrings, and of the texts below constants."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            assert node.end_lineno is not None
            yield from range(node.lineno, node.end_lineno + 1)


def _assigns_several(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    return any(isinstance(target, ast.Tuple) for target in node.targets)


def air_of(count: Counter[str]) -> Air:
    thousands = count["tokens"] / 1000
    return Air(
        count["tokens"] / count["lines"],
        count["conditional_expressions"] / thousands,
        count["comprehensions"] / thousands,
        count["assignments_of_several"] / thousands,
    )


def test_measures():
    source = '"""A module."""\n\na, b = 1, 2  # both\nc = a if b else [d for d in b]\n'
    assert measure(source) == {
        "tokens": 20,
        "lines": 2,
        "conditional_expressions": 1,
        "comprehensions": 1,
        "assignments_of_several": 1,
    }


def test_each_room_keeps_its_air():
    counts: dict[str, Counter[str]] = {}
    for path in modules():
        room = room_of(path)
        if path.parent == PACKAGE:
            room = "root"
        counts.setdefault(room, Counter()).update(measure(Path(path).read_text()))
    reached = {room: air_of(count) for room, count in counts.items() if count["lines"]}
    assert reached.keys() == CEILINGS.keys()
    packed = []
    for room, air in reached.items():
        for name, value, ceiling in zip(Air._fields, air, CEILINGS[room], strict=True):
            if value > ceiling * SLACK:
                packed.append(f"{room}: {name} {value:.2f}, at most {ceiling}")
    assert packed == []


def test_each_exception_from_a_rule_of_ruff_has_a_reason():
    exceptions = []
    for path in modules():
        exceptions += re.findall(r"# noqa: (.*)", path.read_text())
    assert len(exceptions) <= 12
    assert [text for text in exceptions if not re.fullmatch(r"\w+  \S.*", text)] == []
