"""What a user's shell, editor and disk can do to a command: its answer stays true, and its exit
code with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import Keys, UnreadableError, UsageError, inspect
from sbbf_tool.cli import run
from sbbf_tool.file.keys import read_keys
from support.corpus_edits import edit_footer
from support.tables import each

pytestmark = pytest.mark.slow

KEY = bytes(range(16)).hex()


@pytest.fixture
def path(fixtures, tmp_path) -> Path:
    return shutil.copy(fixtures / "pyarrow-filters.parquet", tmp_path / "a.parquet")


@each("redirection", ["2>/dev/full", "2>&-", ">/dev/full 2>&1"])
def test_messages_that_cannot_be_written_change_no_exit_code(redirection, tmp_path):
    """1 would say that the value is certainly absent."""
    command = (
        f"{sys.executable} -m sbbf_tool probe {tmp_path}/missing.parquet id 1 -q {redirection}"
    )
    assert subprocess.run(["bash", "-c", command]).returncode == 3


@each(
    "redirection, reason",
    [(">/dev/full", ": no space left on device"), (">&-", " is closed")],
)
@each(
    "arguments, code",
    [
        ("inspect {}", 5),
        ("probe {} id 1", 5),
        ("probe {} id 1 -q", 1),
        ("add-filter {} -c id --in-place", 5),
    ],
)
def test_output_that_cannot_be_written_is_a_failure(redirection, reason, arguments, code, path):
    command = f"{sys.executable} -m sbbf_tool {arguments.format(path)} {redirection}"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (
        code,
        f"sbbf: standard output{reason}\n" if code == 5 else "",
    )


@each("options, count", [([], 0), (["-W", "default"], 1)])
def test_warnings_of_libraries_are_shown_only_if_python_is_asked_to(options, count):
    program = (
        "import sbbf_tool.cli, warnings; sbbf_tool.cli.main = lambda args: "
        "warnings.warn('about itself') or 0\n"
    )
    program += "from sbbf_tool.__main__ import main; main()"
    done = subprocess.run([sys.executable, *options, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("about itself")) == (0, count)


def test_no_file_gets_the_number_of_a_closed_stream(path):
    """What a library prints would be in that file."""
    program = "import os, sys; sys.argv[1:] = ['--version']; from sbbf_tool.__main__ import main\n"
    program += "try: main()\nfinally: assert os.open('/', os.O_RDONLY) > 2"
    done = subprocess.run(["bash", "-c", f'{sys.executable} -c "{program}" <&- >&- 2>&-'])
    assert done.returncode == 5


def test_a_key_for_a_key_id_is_not_shown():
    with pytest.raises(UsageError) as caught:
        Keys.from_json(f'{{"keys": {{"{KEY}": "footer"}}}}')
    assert KEY not in str(caught.value)


def test_keys_without_an_end():
    with pytest.raises(UsageError, match="a keys file must have at most"):
        read_keys("/dev/zero")


def test_a_footer_that_lost_its_row_groups(path):
    def lose(metadata) -> None:
        metadata.row_groups = []

    edit_footer(path, lose)
    with pytest.raises(UnreadableError, match="rows, but has no row group"):
        inspect(path)


@each("append", [[], ["--append"]])
def test_a_file_without_row_groups_is_left_as_it_is(tmp_path, append, capfd):
    path = tmp_path / "empty.parquet"
    pq.ParquetWriter(path, pa.schema([("x", pa.int64())])).close()
    before = path.read_bytes(), path.stat().st_ino
    assert run(["add-filter", str(path), "-c", "x", "--in-place", *append]) == 0
    assert capfd.readouterr() == (
        f"{path}: nothing to add, it has no row groups; nothing was written\n",
        "",
    )
    assert (path.read_bytes(), path.stat().st_ino) == before


@each(
    "arguments",
    [["probe", "FILE", "id", "1"], ["check", "FILE"], ["engines"], ["paimon", "inspect", "TABLE"]],
)
def test_reading_commands_end_with_141_when_the_reader_stops(arguments, path, fixtures):
    names = {"FILE": str(path), "TABLE": str(fixtures / "paimon" / "orders")}
    command = [
        sys.executable,
        "-m",
        "sbbf_tool",
        *(names.get(argument, argument) for argument in arguments),
    ]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@each("imported", ["click", "sbbf_tool.cli.probe", "thrift"])
def test_ctrl_c_during_start_up(imported, path):
    """While the command line, its command and what that needs are imported."""
    program = """if True:
        import os, signal, sys
        class Interrupting:
            def find_spec(name, path, target=None):
                if name == wanted:
                    os.kill(os.getpid(), signal.SIGINT)
        wanted = sys.argv.pop(1)
        # Also where this test runs in a shell's background, whose processes ignore SIGINT.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.meta_path.insert(0, Interrupting)
        from sbbf_tool.__main__ import main
        main()
    """
    done = subprocess.run(
        [sys.executable, "-c", program, imported, "probe", str(path), "id", "1"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr in ("", "sbbf: interrupted\n")


def test_a_value_that_is_not_utf_8_is_queried_as_its_bytes(tmp_path):
    path = tmp_path / "a.parquet"
    text = pa.array([b"a\xff"]).view(pa.string())
    pq.write_table(pa.table({"s": text}), path, bloom_filter_options={"s": {"ndv": 1}})
    command = [sys.executable, "-m", "sbbf_tool", "probe", "-q", str(path), "s"]
    assert [
        subprocess.run([*command, value]).returncode
        for value in (b"a\xff", b"a\xfe", "a\udcff", "a\xff")
    ] == [0, 1, 0, 1]


GONE = {
    "state": ["check", "{0}", "--state", "s.db"],
    "glob": ["inspect", "**/*.parquet"],
    "new file": ["add-filter", "{0}", "-c", "id", "-o", "new.parquet"],
}


@each("arguments", GONE)
def test_a_working_folder_that_was_removed_is_one_line(
    arguments, fixtures, tmp_path, monkeypatch, capfd
):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert run([word.format(fixtures / "pyarrow-filters.parquet") for word in arguments]) == 3
    assert len(capfd.readouterr().err.splitlines()) == 1


@each(
    "arguments, words",
    [
        ("--config sbbf.toml check {}", "--config belongs after the command"),
        ("inspect shop.orders", "a table of a catalog is named CATALOG:shop.orders"),
        ("inspect gone.parquet", "gone.parquet: no such file or directory\n"),
    ],
)
def test_a_mistake_names_its_cause(arguments, words, path, capfd):
    assert run(arguments.format(path).split()) in (2, 3, 4)
    assert words in capfd.readouterr().err


def test_a_size_for_too_few_values_names_the_option(tmp_path, capfd):
    path = str(tmp_path / "many.parquet")
    pq.write_table(pa.table({"id": list(range(5000))}), path)
    assert run(["add-filter", path, "-c", "id", "--ndv", "10", "--in-place"]) == 4
    words = "10 is the stated number of distinct values (--ndv), and a row group has"
    assert words in capfd.readouterr().err


def test_verify_prints_a_line_per_column(fixtures, capfd):
    path = str(fixtures / "duckdb-filters.parquet")
    assert run(["verify", path]) == 0
    by_column = capfd.readouterr().out
    assert "row group " not in by_column
    assert "4 of 4 filters verified" in by_column
    assert run(["verify", path, "--row-groups"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == len(by_column.splitlines()) + 27


def test_verify_prints_a_line_per_filter_that_failed(fixtures, capfd):
    assert run(["verify", str(fixtures / "spark-boolean.parquet")]) == 1
    output = capfd.readouterr().out
    assert "0 of 4 filters verified" in output
    assert len([line for line in output.splitlines() if line.endswith("false negatives")]) >= 4


@each("options, reason", [((), "no limit"), (("--quick",), "12: a quick check does not read")])
def test_check_says_why_rules_were_not_run(options, reason, fixtures, capfd):
    run(["check", str(fixtures / "duckdb-filters.parquet"), *options])
    assert f"not run ({reason}" in capfd.readouterr().out.replace("18 not run", "not run")
    run(["check", str(fixtures / "duckdb-filters.parquet"), *options, "--all"])
    assert "not run, no max fpp is given: fpp-above-limit\n" in capfd.readouterr().out


def test_size_prints_one_number_and_its_neighbours(capfd):
    assert run(["size", "--ndv", "1000000"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 5
    assert run(["size", "--ndv", "1000000", "--dialect"]) == 0
    assert "draft2-final" in capfd.readouterr().out


@each("value, answer", [("107919", "may be in 2 of the 3"), ("5", "is certainly in none of the 3")])
def test_explain_ends_with_its_answer(value, answer, fixtures, capfd):
    run(["explain", str(fixtures / "events.parquet"), "user_id", value])
    lines = capfd.readouterr().out.splitlines()
    assert lines[-1].startswith(f"user_id = {value} {answer} row groups of ")
    assert max(map(len, lines)) < 160
