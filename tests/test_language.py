"""The words that people read, and the names in the package and its tests: plain technical English, and one term for one thing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from sbbf_tool.cli import cli

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sbbf_tool"
GENERATED = PACKAGE / "parquet" / "idl"

LISTS = tomllib.loads((Path(__file__).parent / "language.toml").read_text())


def compile_phrases(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(phrases)})(?![\w-])")


BANNED_PHRASE = compile_phrases(*LISTS["banned_phrases"])
BANNED_IN_TESTS = compile_phrases(*LISTS["banned_phrases"], *LISTS["tests"]["banned_phrases"])
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


def prose_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield every comment, docstring and assertion message of a module with its line; other strings of a test are its data."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        parts = (node.msg,) if isinstance(node, ast.Assert) else (node.value,) if isinstance(node, ast.Expr) else ()
        for part in parts:
            for constant in (part,) if isinstance(node, ast.Expr) else ast.walk(part) if part else ():
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    yield constant.lineno, constant.value


def sentences_of_tests(text: str) -> Iterator[tuple[int, str]]:
    """Yield the name of every test of a module as a sentence, with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")


def banned_in(texts: Iterable[tuple[int, str]], banned: re.Pattern[str] = BANNED_PHRASE) -> list[str]:
    """Return the line and surroundings of each banned phrase."""
    return [
        f"{line + text[: match.start()].count(chr(10))}: {text[max(0, match.start() - 40) : match.end() + 40]!r}"
        for line, text in texts
        for match in banned.finditer(text)
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


def is_sentence(name: str) -> bool:
    """Whether a name is a sentence, which may end with a participle: `test_no_row_is_lost`, `assert_nothing_is_published`."""
    return name.startswith(("test_", "assert_"))


def bad_names(text: str) -> list[str]:
    tree = ast.parse(text)
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and [arg.arg for arg in node.args.args[:1]] == ["self"]]
    allowed = ALLOWED_NAMES | ({"other"} if any(arg.arg == "other" for method in methods for arg in method.args.args) else set())
    return [f"{line}: {name}" for line, name in names_of(tree) if is_bad(name) and name not in allowed and not is_sentence(name)]


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command, **cli.context_settings) as context:
            for name in command.list_commands(context):
                subcommand = command.get_command(context, name)
                assert subcommand is not None
                yield from commands(subcommand, (*path, name))


# Everything that people read outside the package: pages, forms, and the files of tools with their comments.
PATTERNS = ("*.md", "*.yml", ".*.yaml", "docs/**/*.md", "docs/*.txt", "fixtures/*.md", "skills/**/*.md", "thrift/*.md", "release/**/*.*")
FILES = (".github/**/*.yml", "justfile", "Dockerfile", "MANIFEST.in", "pyproject.toml", "setup.py", ".ci/run")
PAGES = sorted(
    path for pattern in PATTERNS + FILES for path in ROOT.glob(pattern) if not {"_build", "__pycache__"}.intersection(path.parts)
)


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
    with click.Context(command, info_name=" ".join(("sbbf", *path)), **cli.context_settings) as context:
        text = command.get_help(context)
    assert text.startswith("Usage:")
    assert banned_in(enumerate(text.splitlines(), 1)) == []


def test_help_opens_with_what_the_tool_does():
    assert cli.help is not None
    assert cli.help.startswith("Inspect, query, verify and add Bloom filters in existing Parquet files.")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_names_are_nouns_and_verbs(path):
    assert bad_names(path.read_text()) == []


TESTS = sorted([*Path(__file__).parent.rglob("*.py"), *(ROOT / "docs").rglob("*.py")])


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tests_are_in_plain_words(path):
    text = path.read_text()
    assert banned_in((*prose_of(text), *sentences_of_tests(text)), BANNED_IN_TESTS) == []


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_in_tests_are_nouns_and_verbs(path):
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
    ("text", "count"),
    [
        ("def test_what_is_told(): pass", 1),
        ('def f():\n    """What is said."""\n    assert x, f"{y} is anew"', 2),
        ("x = 'nobody'  # data may be anything", 0),
    ],
)
def test_banned_words_of_tests_are_found(text, count):
    assert len(banned_in((*prose_of(text + "\n"), *sentences_of_tests(text)), BANNED_IN_TESTS)) == count


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
        ("def test_no_row_is_lost(): pass", []),
    ],
)
def test_bad_names_are_found(text, names):
    assert [line.partition(": ")[2] for line in bad_names(text)] == names
