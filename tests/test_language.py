"""The words that users read, and the names of the package: plain technical English, and one term for one thing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sbbf_tool.cli import cli

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sbbf_tool"
GENERATED = PACKAGE / "parquet" / "idl"

LISTS = tomllib.loads((Path(__file__).parent / "language.toml").read_text())
BANNED_PHRASE = re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(LISTS['banned_phrases'])})(?![\w-])")
BANNED_NAMES = set(LISTS["banned_names"])
ALLOWED_NAMES = set(LISTS["allowed_names"])


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if GENERATED not in path.parents]


def strings_of(text: str) -> Iterator[tuple[int, str]]:
    """Every comment and text of a module with its line: docstrings and f-strings too, but not bytes."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_text = token.type == tokenize.STRING and not token.string.lower().startswith(("b", "rb"))
        if is_text or token.type == tokenize.COMMENT or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield token.start[0], token.string


def banned_in(texts: Iterator[tuple[int, str]]) -> list[str]:
    """Line and surroundings of each banned word."""
    return [
        f"{line + text[: match.start()].count(chr(10))}: {text[max(0, match.start() - 40) : match.end() + 40]!r}"
        for line, text in texts
        for match in BANNED_PHRASE.finditer(text)
    ]


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a module gives: classes, functions, parameters, variables, fields and attributes, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def is_bad(name: str) -> bool:
    """Whether a name is, or ends with, a participle or pronoun; `is_named` and its like are questions, and fine."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]
    return bool(words) and words[0] not in ("is", "are", "has", "was", "can", "needs", "keeps") and words[-1] in BANNED_NAMES


def bad_names(text: str) -> list[str]:
    tree = ast.parse(text)
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and [arg.arg for arg in node.args.args[:1]] == ["self"]]
    allowed = ALLOWED_NAMES | ({"other"} if any(arg.arg == "other" for method in methods for arg in method.args.args) else set())
    return [f"{line}: {name}" for line, name in names_of(tree) if is_bad(name) and name not in allowed]


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from commands(found, (*path, name))


PAGES = [path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_are_in_plain_words(path):
    assert banned_in(enumerate(path.read_text().splitlines(), 1)) == []


FORMER_SPELLINGS = PACKAGE / "cli" / "removed.py"


@pytest.mark.parametrize("path", [path for path in modules() if path != FORMER_SPELLINGS], ids=lambda path: str(path.relative_to(PACKAGE)))
def test_messages_docstrings_and_comments_are_in_plain_words(path):
    assert banned_in(strings_of(path.read_text())) == []


def test_the_table_of_engines_is_in_plain_words():
    path = PACKAGE / "query_engines" / "engines.toml"
    assert banned_in(enumerate(path.read_text().splitlines(), 1)) == []


@pytest.mark.parametrize(("path", "command"), list(commands(cli)), ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_help_is_in_plain_words(path, command):
    with click.Context(command, info_name=" ".join(("sbbf", *path))) as context:
        text = command.get_help(context)
    assert text.startswith("Usage:")
    assert banned_in(enumerate(text.splitlines(), 1)) == []


def test_help_opens_with_what_the_tool_does():
    assert cli.help is not None
    assert cli.help.startswith("Inspect, query, verify and add Bloom filters in existing Parquet files.")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_names_are_nouns_and_verbs(path):
    assert bad_names(path.read_text()) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""Say what a user is told."""', 1),
        ("x = 1  # left alone, and built anew", 2),
        ('raise ValueError(f"{x} is odd: nobody knows")', 2),
        ('"""Unproven proofs of an error rate."""', 3),
        ('"""Return the number of false negatives."""', 0),
        ("mask = 1  # a task in a basket", 0),
    ],
)
def test_banned_words_are_found(text, count):
    assert len(banned_in(strings_of(text + "\n"))) == count


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def told(): pass", ["told"]),
        ("class Unproven: pass", ["Unproven"]),
        ("def f(columns_named): pass", ["columns_named"]),
        ("for one in (): pass", ["one"]),
        ("self._asked = 1", ["_asked"]),
        ("stored_filter = planned_fingerprint = 1", []),
        ("def is_named(): pass", []),
        ("class A:\n def __eq__(self, other): pass", []),
    ],
)
def test_bad_names_are_found(text, names):
    assert [found.partition(": ")[2] for found in bad_names(text)] == names
