"""Values on the command line and in files: one that may mean something else causes a warning."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, inspect
from sbbf_tool.cli import run
from support.tables import each

STORED = ["", "-", "null", "plain", "ends\r", "one\rtwo", "café"]
LATIN = "café".encode("latin-1")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Texts, and bytes that are not UTF-8, each in a row group of its own."""
    target = tmp_path / "texts.parquet"
    bytes_ = [text.encode("latin-1") for text in STORED]
    table = pa.table({"s": STORED, "b": bytes_, "n": [None] * 3 + [1, 2, 3, 4], "any": STORED})
    pq.write_table(table, target, row_group_size=1, write_statistics=table.column_names[:3], use_dictionary=table.column_names[:3])
    add_filters(target, ["s", "b", "n", "any"], in_place=True)
    with target.open("r+b") as stream:
        for chunk in inspect(target, ["any"]).filters:
            stream.seek((chunk.offset or 0) + (chunk.header_bytes or 0))
            stream.write(b"\xff" * (chunk.bitset_bytes or 0))
    return str(target)


@pytest.fixture
def probe(path: str, capfd, monkeypatch) -> Callable[..., tuple[list[str], str]]:
    """The values that may be stored, and what standard error says; the filters of `any` exclude none."""

    def call(*arguments: str, stdin: bytes = b"") -> tuple[list[str], str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        assert run(["probe", "--format", "json", path, *arguments]) in (0, 1)
        out, err = capfd.readouterr()
        return [hit["value"] for hit in json.loads(out)["hits"]], err

    return call


FILES = {
    "lines of Unix": (b"plain\nabsent\n", ["plain", "absent"], ()),
    "a byte-order mark": (b"\xef\xbb\xbfplain\n", ["plain"], ()),
    "lines of Windows": (b"plain\r\nends\r\n", ["plain", "ends"], ("line 1 ends with \\r\\n",)),
    "empty lines of Windows": (b"\r\n\r\nplain\r\n", ["plain"], ("line 1 ends with \\r\\n",)),
    "Latin-1": (b"plain\n" + LATIN + b"\n", ["plain", "caf\udce9"], ("line 2 is not UTF-8",)),
    "Latin-1 of Windows": (LATIN + b"\r\n" + LATIN + b"\r\n", ["caf\udce9"] * 2, ("line 1 ends with \\r\\n", "line 1 is not UTF-8")),
    "a blank at the end": (b"plain\nends \nplain\t\n", ["plain", "ends ", "plain\t"], ("line 2 begins or ends with a blank",)),
    "a blank at the start": (b"plain\n plain\n", ["plain", " plain"], ("line 2 begins or ends with a blank",)),
    "a blank and a line of Windows": (b"plain \r\n", ["plain "], ("line 1 ends with \\r\\n", "line 1 begins or ends with a blank")),
}
"""Bytes of a file, the values in them, and what is reported of it."""


@each("piped", {"file": False, "pipe": True})
@each("name", list(FILES))
def test_hidden_characters_of_a_values_file_are_reported(probe, tmp_path, name, piped):
    content, values, hints = FILES[name]
    values_file = tmp_path / "listed"
    values_file.write_bytes(content)
    where = "standard input" if piped else f"values file {values_file}"
    answers, err = probe("any", "--values-file", "-" if piped else str(values_file), stdin=content)
    assert answers == values
    assert len(err.splitlines()) == len(hints)
    for line, hint in zip(err.splitlines(), hints, strict=True):
        assert line.startswith(f"sbbf: warning: {where}: {hint}")


KEYS = [hashlib.md5(bytes([number]), usedforsecurity=False).digest() for number in range(20)]
KEY = KEYS[3].hex()


@each(
    "arguments, stdin, warns",
    [
        (["probe", "a.parquet", "h", KEY], "", True),
        (["probe", "a.parquet", "a.parquet", "-c", "h", "--value", KEY], "", True),
        (["probe", "a.parquet", "-c", "h", "--values-file", "-"], "".join(f"{key.hex()}\n" for key in KEYS), True),
        (["probe", "a.parquet", "-c", "h", "--values-file", "-"], "".join(f"{number:08x}\n" for number in range(1500)), True),
        (["explain", "a.parquet", "h", KEY], "", True),
        (["explain", "a.parquet", "a.parquet", "-c", "h", "--value", KEY], "", True),
        (["probe", "a.parquet", "h", "a text"], "", False),
        (["probe", "a.parquet", "t", f"{KEY[:8]}-{KEY[8:12]}-{KEY[12:16]}-{KEY[16:20]}-{KEY[20:]}"], "", True),
        (["probe", "a.parquet", "t", KEY[::-1]], "", False),
        (["probe", "a.parquet", "h", KEY, f"0x{KEY}"], "", False),
    ],
)
def test_an_absence_of_bytes_in_another_notation_has_a_warning(tmp_path, monkeypatch, capfd, arguments, stdin, warns):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    pq.write_table(pa.table({"h": KEYS, "t": [key.hex() for key in KEYS]}), "a.parquet")
    add_filters("a.parquet", ["h", "t"], in_place=True)
    assert run(arguments) == int(f"0x{KEY}" not in arguments)
    err = capfd.readouterr().err
    assert err.count("sbbf: warning: ") == warns
    assert ("were queried: " in err) == warns
