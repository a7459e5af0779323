"""No command prints more than two screens unless the user requests it: about thousands of files,
columns and row groups."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parts.commands import read_commands
from sbbf_tool.cli import run
from sbbf_tool.cli.output import MOST_FILES
from sbbf_tool.cli.page import MOST_ROWS
from support.every_command import COLUMN, FILE, WORKING
from support.tables import each
from support.terminals import run_on_terminal

TWO_SCREENS = 60
CHUNKS = 200
OF_FILES = [
    name
    for name, command in read_commands().items()
    if any("--files-from" in parameter.opts for parameter in command.params)
]
SUMS_UP = ("inspect", "check", "advise", "report", "index")
"""Commands that print no lines about single files."""
MORE_FILES = re.compile(r"and ([\d,]+) more files?; --all shows them")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of copies of one file, in which each command has something to report or to
    change."""
    folder = tmp_path_factory.mktemp("lake")
    first = folder / "0000.parquet"
    table = pa.table({"id": range(100), "name": [f"name {number}" for number in range(100)]})
    pq.write_table(
        table,
        first,
        row_group_size=50,
        bloom_filter_options={"id": {"ndv": 10}, "name": {"ndv": 1000, "fpp": 1e-9}},
    )
    for number in range(1, 30):
        shutil.copy(first, folder / f"{number:04}.parquet")
    return folder


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that write a file write it into the folder of the test."""
    monkeypatch.chdir(tmp_path)


def arguments_of(name: str, path: Path | str, column: str) -> list[str]:
    """Return working arguments that change no file."""
    words = {FILE: str(path), COLUMN: column}
    arguments = [*name.split(), *(words.get(word, word) for word in WORKING[name])]
    return ["--dry-run" if word == "--in-place" else word for word in arguments]


def count_files(lines: list[str]) -> int:
    """Return the number of files that the lines name."""
    return len({name for line in lines for name in re.findall(r"\d{4}\.parquet", line)})


@each("name", OF_FILES)
def test_a_lake_fits_two_screens(name, lake):
    output = run_on_terminal([*arguments_of(name, lake, "id")], 100)
    assert output.code in (0, 1)
    assert len(output.all_lines) <= TWO_SCREENS
    files = len(list(lake.iterdir()))
    (more, *_) = [match[1] for line in output.lines if (match := MORE_FILES.search(line))] or ["0"]
    if name in SUMS_UP:
        assert more == "0"
    else:
        assert int(more.replace(",", "")) == files - count_files(output.lines)
        assert 0 < count_files(output.lines) <= MOST_FILES


@each("name", OF_FILES)
def test_errors_of_many_files_fit_two_screens(name, tmp_path, capfd):
    # advise ends with one error if it can read no file.
    pq.write_table(
        pa.table({"id": [1, 2, 3]}),
        tmp_path / "sound.parquet",
        bloom_filter_options={"id": {"ndv": 3}},
    )
    for number in range(MOST_FILES + 5):
        (tmp_path / f"{number:04}.parquet").write_bytes(b"PAR1 and no more")
    codes = []
    for options, errors in (([], MOST_FILES), (["--all"], MOST_FILES + 5)):
        codes.append(run([*arguments_of(name, tmp_path, "id"), *options]))
        lines = capfd.readouterr().err.splitlines()
        assert len([line for line in lines if ".parquet: " in line]) == errors
        assert ("sbbf: and 5 more errors; --all shows them" in lines) == (not options)
    assert codes == [3, 3]


@each("options, are_counted", [((), True), (("--all",), False), (("--quiet",), False)])
def test_warnings_of_many_files_are_counted(options, are_counted, tmp_path, capfd):
    for number in range(MOST_FILES + 5):
        path = tmp_path / f"{number:04}.parquet"
        pq.write_table(pa.table({"id": [1]}), path)
        for link in range(number + 1):  # each warning is another one
            path.with_suffix(f".{link}").hardlink_to(path)
    assert run(["add-filter", str(tmp_path), "-c", "id", "--in-place", *options]) == 0
    lines = capfd.readouterr().err.splitlines()
    warnings = [line for line in lines if "warning: " in line]
    assert len(warnings) == {(): MOST_FILES, ("--all",): MOST_FILES + 5}.get(options, 0)
    assert ("sbbf: and 5 more warnings; --all shows them" in lines) == are_counted


@pytest.fixture(scope="module")
def large_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of CHUNKS chunks, each with a filter."""
    folder = tmp_path_factory.mktemp("large")
    paths = {"many columns": folder / "wide.parquet", "many row groups": folder / "long.parquet"}
    for path, columns, rows in (
        (paths["many columns"], CHUNKS, 10),
        (paths["many row groups"], 10, CHUNKS),
    ):
        names = [f"column_{number:04}" for number in range(columns)]
        options = {name: {"ndv": 10} for name in names}
        pq.write_table(
            pa.table({name: range(rows) for name in names}),
            path,
            row_group_size=10,
            bloom_filter_options=options,
        )
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("size", ["many columns", "many row groups"])
class TestALargeFile:
    @pytest.fixture
    def run_name(self, size: str, large_files: dict[str, Path]) -> Callable[..., list[str]]:
        def run_words(name: str, *options: str) -> list[str]:
            output = run_on_terminal(
                [*arguments_of(name, large_files[size], "column_0003"), *options], 120
            )
            # The configuration of `apply` is about a column that this file does not have.
            assert output.code in ((2,) if name == "apply" else (0, 1))
            return output.all_lines

        return run_words

    @each("name", OF_FILES)
    def test_its_output_fits(self, name, run_name):
        # A table of 60 rows, and what is above and below it.
        assert len(run_name(name)) <= MOST_ROWS + 50

    def test_a_pipe_gets_all_rows(self, size, large_files, capfd):
        assert run(["verify", "--row-groups", str(large_files[size])]) == 0
        assert (
            len(
                [
                    line
                    for line in capfd.readouterr().out.splitlines()
                    if line.endswith("  verified")
                ]
            )
            == CHUNKS
        )
