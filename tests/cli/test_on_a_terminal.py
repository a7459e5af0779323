"""Every command on a real terminal of 60 to 120 columns: nothing is wider, no number or word is
broken, and colours change no word."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from wcwidth import wcswidth

from parts.commands import read_commands
from support.every_command import COLUMN, DATA_FILE, FILE, TABLE, WORKING
from support.tables import each
from support.terminals import Output, run_on_terminal, show

VIEWS = {
    "inspect by row group": ["inspect", FILE, "--row-groups"],
    "inspect files": ["inspect", FILE, DATA_FILE],
    "inspect a missing file": [
        "inspect",
        "no/such/folder/anywhere/and/therefore/no/such/file/2026-01-01.parquet",
    ],
    "probe files": ["probe", FILE, DATA_FILE, "-c", COLUMN, "--value", "1"],
    "probe another column": ["probe", FILE, f"{COLUMN}x", "1"],
    "verify files": ["verify", FILE, DATA_FILE],
    "check files": ["check", FILE, DATA_FILE, "--max-fpp", "1e-9"],
    "list rules": ["rule"],
    "advise on a query": ["advise", FILE, "--query", f"`{COLUMN}` = 1"],
    "explain for an engine": ["explain", FILE, COLUMN, "1", "--engines", "DuckDB"],
    "explain files": ["explain", FILE, DATA_FILE, "-c", COLUMN, "--value", "1"],
    "engines by type": ["engines", "--type", "decimal"],
    "engines by type, all": ["engines", "--type", "INT"],
    "one engine": ["engines", "DuckDB"],
    "engines as a matrix": ["engines", "all"],
}
MORE = re.compile(r"and [\d,]+ more ")
CASES = {
    name: [*name.split(), *arguments] for name, arguments in WORKING.items() if name != "schema"
} | VIEWS
# The other commands print the same for any file.
CASES_OF_FILES = [
    name for name, arguments in CASES.items() if any(FILE in word for word in arguments)
]
LONG = "a-name-that-is-much-longer-than-any-table-on-a-terminal-has-room-for-it-0123456789"
NAMES = ("数量と価格", "e\u0301te\u0301", LONG, "한국어 열 이름")


PLAIN, FOREIGN = "plain", "foreign"
WIDTHS = {PLAIN: (60, 120), FOREIGN: (80,)}
NARROWER = {PLAIN: 20, FOREIGN: 40}


@pytest.fixture(scope="module")
def sources(
    fixtures: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, str]]:
    """Files with filters, each with the name of one of its columns."""
    path = tmp_path_factory.mktemp("source") / "foreign.parquet"
    columns: dict[str, object] = {
        name: [f"{name} {number}" for number in range(3000)] for name in NAMES
    }
    columns["id"] = range(10**15, 10**15 + 3000)
    options = {name: {"ndv": 1000} for name in columns}
    pq.write_table(pa.table(columns), path, row_group_size=1000, bloom_filter_options=options)
    return {PLAIN: (fixtures / "pyarrow-filters.parquet", "id"), FOREIGN: (path, NAMES[0])}


@pytest.fixture
def run_case(
    sources: dict[str, tuple[Path, str]],
    fixtures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Output]:
    """Run a command on fresh copies of the files."""
    monkeypatch.chdir(tmp_path)

    def run_words(source: str, arguments: list[str], columns: int, **environment: str) -> Output:
        path, column = sources[source]
        words = {FILE: "file.parquet", DATA_FILE: "data.parquet", TABLE: "orders", COLUMN: column}
        shutil.rmtree("orders", ignore_errors=True)
        Path("data.parquet.index").unlink(missing_ok=True)
        shutil.copy(path, words[FILE])
        shutil.copy(
            fixtures / "pyarrow-plain.parquet" if source == PLAIN else path, words[DATA_FILE]
        )
        shutil.copytree(fixtures / "paimon" / "orders", words[TABLE])
        words_of_case = [
            re.sub("<[A-Z_]+>", lambda match: words[match[0]], word) for word in arguments
        ]
        return run_on_terminal([*words_of_case], columns, **environment)

    return run_words


def words_of(lines: list[str]) -> Iterator[str]:
    """Yield the words of an output, but not those that list hidden columns, count hidden rows or
    continue a command."""
    is_hidden = False
    for line in lines:
        is_hidden = is_hidden or line.startswith("hidden: ") or MORE.match(line) is not None
        if not is_hidden:
            yield from (word for word in line.split() if word != "\\")
        is_hidden = is_hidden and not line.endswith("shows them")


def is_piece(piece: str, word: str) -> bool:
    """Return whether a part of a word is one that a line is too narrow for, and no number is
    cut."""
    at = word.find(piece)
    ends = (at, at + len(piece))
    return (
        at >= 0
        and wcswidth(word) > 28
        and not any(0 < end < len(word) and word[end - 1 : end + 1].isdigit() for end in ends)
    )


def join_commands(lines: list[str]) -> list[str]:
    """Join the words of commands that were broken in the way that a shell joins them."""
    return re.sub(r"(?<=\S)\\\n(?=\S)", "", "\n".join(lines)).replace("''", "").split("\n")


def assert_whole_words(output: Output, whole: Output) -> None:
    """Check the words of an output against those of the same output on a terminal of any width."""
    whole_words, text = set(words_of(whole.all_lines)), " ".join(" ".join(whole.all_lines).split())
    for word in set(words_of(join_commands(output.all_lines))) - whole_words:
        start, ellipsis, end = word.partition("…")
        if ellipsis:
            assert start in text, word
            assert end in text, word
            continue
        # Below its narrowest form, a table becomes paragraphs with the names of columns as labels.
        assert word.removesuffix(":") in whole_words or any(
            is_piece(word, whole_word) for whole_word in whole_words
        ), word
    if missing := whole_words - set(words_of(join_commands(output.all_lines))):
        assert any(
            "--all shows them" in line or "…" in line or wcswidth(line) > 50
            for line in output.all_lines
        ), missing


def assert_fits(output: Output) -> None:
    assert [line for line in output.all_lines if wcswidth(line) > output.columns] == []
    screen = show(output.out, output.columns)
    assert screen == [unicodedata.normalize("NFC", line.rstrip()) for line in output.lines]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.heavy] if name.startswith(("conformance", "report")) else []
        )
        for name in CASES
    ],
)
def test_every_command_fits(name, run_case):
    for source in (PLAIN, FOREIGN) if name in CASES_OF_FILES else (PLAIN,):
        # Each run of `conformance` writes files or starts programs.
        for columns in WIDTHS[source][: 1 if name.startswith("conformance") else None]:
            plain = run_case(source, CASES[name], columns, NO_COLOR="1")
            painted = run_case(source, CASES[name], columns)
            assert_fits(plain)
            assert_fits(painted)
            assert painted.all_lines == plain.all_lines
            assert painted.code == plain.code
            assert not plain.has_codes
            assert_whole_words(plain, run_case(source, CASES[name], 1000, NO_COLOR="1"))
        narrow = run_case(source, CASES[name], NARROWER[source])
        assert narrow.code in (0, 1, 2, 3)
        assert_fits(narrow)


@pytest.mark.slow
@each("name", ["", *read_commands()])
def test_help_fits(name):
    output = run_on_terminal([*name.split(), "--help"], 80)
    whole = run_on_terminal([*name.split(), "--help"], 100)
    assert output.code == 0
    assert_fits(output)
    # click breaks lines after hyphens too.
    text = "".join(words_of(whole.lines))
    assert [word for word in words_of(output.lines) if word not in text] == []


class TestColour:
    ARGUMENTS: ClassVar = ["verify", FILE]

    @each(
        "environment, expected",
        [
            ({}, True),
            ({"NO_COLOR": "1"}, False),
            ({"NO_COLOR": ""}, True),
            ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
            ({"FORCE_COLOR": "1"}, True),
            ({"TERM": "dumb"}, False),
            ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ],
    )
    def test_of_a_terminal(self, environment, expected, run_case):
        assert run_case(PLAIN, self.ARGUMENTS, 80, **environment).has_codes is expected


NEXT = {
    "inspect": (
        ["inspect", DATA_FILE],
        "next: to see which columns deserve a filter: sbbf advise data.parquet",
    ),
    "advise": (["advise", DATA_FILE], "next: sbbf add-filter data.parquet -c "),
    "add-filter": (
        ["add-filter", DATA_FILE, "-c", COLUMN, "--in-place"],
        "next: to see which engines use the filters: sbbf explain data.parquet id VALUE",
    ),
    "check": (["check", FILE, "--max-fpp", "1e-9"], "    fix: sbbf "),
}


@each("name", list(NEXT))
def test_a_terminal_shows_what_to_do_next(name, run_case):
    arguments, line = NEXT[name]
    assert [each for each in run_case(PLAIN, arguments, 120).lines if each.startswith(line)]
    assert run_case(PLAIN, [*arguments, "--quiet"], 120).lines == []


def test_a_pipe_gets_plain_text_without_rich(fixtures, tmp_path):
    path = shutil.copy(fixtures / "pyarrow-plain.parquet", tmp_path)
    words = {FILE: str(path), COLUMN: "id"}
    names = (
        "inspect",
        "advise",
        "add-filter",
        "check",
        "explain",
        "verify",
        "probe",
        "engines",
        "size",
        "remove-filter",
    )
    calls = [[name, *(words.get(word, word) for word in WORKING[name])] for name in names]
    program = f"""
import sys
from sbbf_tool.cli import run
for call in {calls}:
    assert run(call) in (0, 1), call
assert "rich" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "next: " not in done.stdout


def test_the_column_that_matters_most_is_never_hidden(fixtures):
    for columns in (40, 60, 80):
        lines = run_on_terminal(["verify", str(fixtures / "spark-boolean.parquet")], columns).lines
        assert any("false negatives" in line and not line.startswith("hidden") for line in lines)
        assert not any(line.startswith("hidden") and "false negatives" in line for line in lines)


@pytest.mark.parametrize(
    "words",
    ["rule", "engines", "engines --type string", "engines --type decimal", "size --ndv 1000000"],
)
def test_reference_works_fit_a_screen(words):
    assert len(run_on_terminal(words.split(), 80).lines) < 24
