"""Text from files and paths (names, columns, writers, values, options of tables) gives no order to
a terminal or a CI runner.

Formats for programs give it back exactly; in all others its characters are shown by their codes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parts.commands import read_commands
from sbbf_tool.cli import run
from sbbf_tool.display import escape, to_json
from sbbf_tool.parquet.idl.ttypes import FileMetaData, KeyValue
from support.corpus_edits import edit_footer
from support.every_command import COLUMN, DATA_FILE, DECLARATION, FILE, TABLE, WORKING, formats_of
from support.tables import each

_BMP = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000]
OBEYED = [
    character
    for character in _BMP
    if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character != "/"
] + [
    "\U000e0001",
    "\U000e0041",
]
"""Controls (C0, DEL, C1), line ends, and what turns text around, hides it or tags it."""
COMMANDS = [
    "::stop-commands::t",
    " ::add-mask::a",
    "##[stop-commands]t",
    "a##[group]b",
    "##vso[task.complete]",
    "##teamcity[message]",
]
"""What a CI runner obeys in a line."""
TEXTS = {
    "c0": "a" + "".join(character for character in OBEYED if character < " ") + "b",
    "c1": "a" + "".join(character for character in OBEYED if "\x7f" <= character < "\xa0") + "b",
    "bidi": "a" + "".join(character for character in OBEYED if character >= "\xa0") + "b",
    "colour": "\x1b[31mred\x1b[0m\r",
    "title": "\x1b]0;owned\x07\x9d8;;http://x\x9c",
    "line": "one\ntwo\u2028three\x85four\vfive",
    **{f"command-{at}": text for at, text in enumerate(COMMANDS)},
    "command-behind-a-line-end": "a\n::stop-commands::t\r::set-output name=x::y",
    "command-with-no-width": "\u200b:\u034f:stop-commands\u034f::t#\u200d#[group]",
}
PLANTED = (TEXTS["command-behind-a-line-end"] + TEXTS["colour"], "".join(COMMANDS))
"""What every command meets in files; `escape` is tested with all of TEXTS."""
_RUNNER = re.compile(r"\s*::(?!(?:error|warning|notice) file=)|#\W?#\S*\[")


@pytest.fixture(params=PLANTED, ids=["lines and colours", "commands"])
def text(request: pytest.FixtureRequest) -> str:
    param: str = request.param
    return param


@pytest.fixture
def planted(
    text: str, fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """A file, in a folder, and a Paimon table in which the text stands wherever a writer may put
    it."""
    short = text.encode()[:200].decode(errors="ignore").replace("/", "")
    (tmp_path / f"{short}.d").mkdir()
    monkeypatch.chdir(tmp_path / f"{short}.d")
    path = Path(f"{short}.parquet")
    values = [text, f"b{text}", "zz"]
    numbers = pa.array([1, 2, 3])
    pq.write_table(
        pa.table({text: numbers, f"s{text}": values}),
        path,
        bloom_filter_options={text: {"ndv": 3}, f"s{text}": {"ndv": 3}},
    )

    def change(metadata: FileMetaData) -> None:
        metadata.created_by = text
        metadata.key_value_metadata = [KeyValue(text, text)]

    edit_footer(path, change)
    shutil.copy(path, "original")
    table = shutil.copytree(fixtures / "paimon" / "orders", tmp_path / f"{short}.t")
    for name in ("schema-1", "schema-2"):
        schema = json.loads((table / "schema" / name).read_text())
        schema["fields"][1]["name"] = text
        schema["options"] = {"file-index.bloom-filter.columns": f"{text},id", text: text}
        (table / "schema" / name).write_text(json.dumps(schema))
    column = "".join(f"\\U{ord(character):08x}" for character in text)
    Path("declared.toml").write_text(f'[[filters]]\npaths = "."\ncolumns = ["{column}"]\n')
    return {
        FILE: str(path),
        COLUMN: text,
        TABLE: str(table),
        DATA_FILE: str(path),
        DECLARATION: "declared.toml",
    }


def said_by(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """What a command prints on standard output, after it was found to hold nothing that is
    obeyed."""
    code = run(arguments)
    out, err = capfd.readouterr()
    assert_not_obeyed(out + err, arguments)
    assert code != 70, err
    return out


def assert_not_obeyed(printed: str, name: object) -> None:
    for line in printed.split("\n"):
        assert line.isprintable(), (name, line)
        assert not _RUNNER.match(line), (name, line)
        assert not re.search(r"#[^ -~]*#\S*\[", line), (name, line)


def strings_of(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from strings_of(key)
            yield from strings_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from strings_of(value)


ABOUT_NO_FILE = ("engines", "rule", "size", "conformance make", "conformance run")
"""Commands that read no file."""


@pytest.mark.slow
@each("name", [name for name in WORKING if name not in ABOUT_NO_FILE])
def test_no_command_prints_what_is_obeyed(name, planted, text, capfd):
    printed = 0
    for form in formats_of(read_commands()[name]):
        shutil.copy("original", planted[FILE])
        words = [planted.get(word, word) for word in WORKING[name]]
        out = said_by([*name.split(), *form, *words], capfd)
        if not out:
            continue
        printed += 1
        if form == ["--format", "json"]:
            strings = {
                string
                for document in map(json.loads, out.splitlines())
                for string in strings_of(document)
            }
            if name == "report":
                # The document names the page; the heading of a picture names a column.
                assert any(text in string for string in strings), strings
                continue
            assert name in ("schema", "index") or strings & {planted[FILE], planted[TABLE]}, strings
            if name in (
                "inspect",
                "probe",
                "add-filter",
                "verify",
                "check",
                "advise",
                "explain",
                "index",
            ):
                # Backticks distinguish a name with a dot from a path.
                assert strings & {text, f"`{text}`"}, strings
        elif form == ["--format", "sarif"]:
            (results,) = (run["results"] for run in json.loads(out)["runs"])
            places = {
                unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
                for result in results
            }
            if TABLE in WORKING[name]:
                # The findings are those of the data files.
                assert places
                assert all(place.startswith(f"{planted[TABLE]}/") for place in places)
            else:
                assert places == {planted[FILE]}
            assert any(text in string for result in results for string in strings_of(result))
        elif form == ["--format", "junit"]:
            place = planted[TABLE if TABLE in WORKING[name] else FILE]
            assert [suite.get("name") for suite in ElementTree.fromstring(out)] == [escape(place)]
        elif form == ["--format", "github"]:
            assert all(
                line.startswith(("::error file=", "::warning file=", "::notice file="))
                for line in out.splitlines()
            )
    # In a column of `paimon build`, what follows a colon is a setting, and what stands in brackets
    # at its end is the key of a map.
    assert printed or (name == "paimon build" and (":" in text or text.endswith("]")))


def test_what_files_beside_hold(planted, text, tmp_path, capfd):
    """Plans, settings, keys and lists of values."""
    beside = tmp_path / "beside"
    for content in (
        text,
        json.dumps({text: text}),
        f"[check]\nrequire = {json.dumps([text])}\n",
        f"[check]\n{json.dumps(text)} = 1\n",
        json.dumps({"keys": {text: "no"}, "columns": {text: text}}),
    ):
        beside.write_text(content)
        for arguments in (
            ["check", planted[FILE], "--config", str(beside)],
            ["inspect", planted[FILE], "--keys", str(beside)],
            ["probe", planted[FILE], f"s{text}", "--values-file", str(beside)],
            ["probe", planted[FILE], text, "--values-file", str(beside)],
            ["advise", planted[FILE], "--query", f"@{beside}"],
        ):
            said_by([*arguments, "--verbose"], capfd)


@each("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_every_encoding(encoding, fixtures, tmp_path):
    path = shutil.copy(
        fixtures / "pyarrow-plain.parquet", tmp_path / "größe-漢-\U0001f600-\x9b.parquet"
    )
    command = [sys.executable, "-m", "sbbf_tool", "inspect", "--format", "json", str(path)]
    done = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=True
    )
    assert json.loads(done.stdout.decode(encoding))["file"] == str(path)


def test_no_shown_text_is_obeyed():
    for text in (*TEXTS.values(), *OBEYED):
        for line in (text, f"a{text}", f"{text}::x"):
            assert_not_obeyed(escape(line), line)


def test_json_gives_every_character_back():
    everything = "".join(map(chr, range(0x110000)))
    for document in (everything, [f"{text}##[x]" for text in TEXTS.values()]):
        for ascii_only in (False, True):
            document_text = to_json(document, ascii_only=ascii_only)
            assert document_text.isprintable()
            assert json.loads(document_text) == json.loads(json.dumps(document))
