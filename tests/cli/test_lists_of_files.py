"""`--files-from`: the PATHs of a command in a file, or on standard input."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from support.tables import each

NAMES = [
    "plain.parquet",
    "two words.parquet",
    "größe.parquet",
    "-5.parquet",
    "'quoted'.parquet",
    "day=1/x.parquet",
    " .parquet",
]
HARD = [*map(os.fsencode, NAMES), b"not utf-8 \xff.parquet", b"two\nlines.parquet", b"carriage\r"]
"""Only a list that ends names with NUL can hold the last two."""

Give = Callable[[bytes], None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "files" / "day=1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "files")
    pq.write_table(
        pa.table({"id": range(1000)}), "plain.parquet", bloom_filter_options={"id": {"ndv": 1000}}
    )
    for name in HARD[1:]:
        shutil.copy("plain.parquet", os.fsdecode(name))
    return tmp_path


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Put bytes on standard input."""
    return lambda content: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def inspected(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[bytes]:
    """The names of the files that `inspect` reports on, as the file system has them."""
    capfd.readouterr()
    assert run(["inspect", "--format", "json", *arguments]) == 0
    *documents, summary = map(json.loads, capfd.readouterr().out.splitlines())
    assert summary["schema"] == "sbbf.summary"
    return [os.fsencode(document["file"]) for document in documents]


@each("piped", {"file": False, "pipe": True})
@each(
    "names, content",
    {
        "ended": (HARD[:-2], b"".join(name + b"\n" for name in HARD[:-2])),
        "empty lines": (HARD[:1], b"\n\n" + HARD[0] + b"\n\n"),
        "Windows": (HARD[:2], HARD[0] + b"\r\n" + HARD[1] + b"\r\n"),
        "byte-order mark": (HARD[:1], b"\xef\xbb\xbf" + HARD[0] + b"\n"),
        "NUL, no end": (HARD, b"\0".join(HARD)),
        "NUL, ended": (HARD, b"".join(name + b"\0" for name in HARD)),
    },
)
def test_names_of_every_kind(folder, give, capfd, piped, names, content):
    (folder / "list").write_bytes(content)
    give(content)
    assert inspected(capfd, "--files-from", "-" if piped else str(folder / "list")) == names


def test_a_list_of_one_file_is_several_files(folder, give, capfd):
    """A script that reads the output meets one form of it, however many names its list has."""
    give(b"plain.parquet\n")
    assert inspected(capfd, "--files-from", "-") == [b"plain.parquet"]


@each(
    "arguments",
    [
        ["inspect"],
        ["probe", "-c", "id", "--value", "1"],
        ["verify"],
        ["check", "--require", "id"],
        ["advise"],
        ["add-filter", "-c", "id", "-n"],
        ["resize", "--max-bytes", "1024", "-n"],
        ["repair", "-n"],
    ],
)
def test_every_command_takes_a_list(folder, capfd, arguments):
    """From a pipe that has a name and can be read once, as a shell makes of `<(find ...)`."""
    reading, writing = os.pipe()
    os.write(writing, b"plain.parquet\0two words.parquet\0")
    os.close(writing)
    assert run([*arguments, "--files-from", f"/dev/fd/{reading}"]) == 0
    os.close(reading)
    out, err = capfd.readouterr()
    assert err == ""
    assert "2 files: " in out


@each("content", [b"", b"\0", b"\0" * 3, b"\n" * 3])
def test_an_empty_list_is_a_usage_error(folder, give, capfd, content):
    """Whatever wrote the list has failed or found nothing: to answer 1, or that nothing is wrong,
    would be untrue."""
    (folder / "list").write_bytes(content)
    for command in (
        ["inspect"],
        ["check"],
        ["probe", "-c", "id", "--value", "1"],
        ["add-filter", "-c", "id", "--in-place"],
        ["advise"],
    ):
        assert run([*command, "--files-from", str(folder / "list")]) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert f"list of files {folder}/list: the list is empty" in err


def test_a_name_has_an_end(folder, capfd):
    Path("long").write_bytes(b"x" * (3 << 20))
    assert run(["inspect", "--files-from", "long"]) == 2
    assert "name 1 has more than 1,048,576 bytes" in capfd.readouterr().err
