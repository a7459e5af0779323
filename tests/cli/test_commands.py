"""The command line as a user meets it: what is printed where, and what it ends with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from support.defects import DEFECTS, SOUND
from support.tables import each


@pytest.fixture
def events(fixtures, tmp_path):
    """A copy of a file without filters, to work on."""
    return shutil.copy(fixtures / "events.parquet", tmp_path / "events.parquet")


@pytest.fixture
def filtered(events):
    assert run(["add-filter", str(events), "-c", "user_id", "--in-place"]) == 0
    return events


@pytest.fixture
def numbers(tmp_path):
    """Negative numbers, so that arguments look like options; with a filter on each column."""
    path = tmp_path / "numbers.parquet"
    pq.write_table(
        pa.table(
            {"n": [-5, -3, 0], "x": [-1.5, float("-inf"), 2.0], "text": ["-5", "--quiet", ""]}
        ),
        path,
    )
    assert run(["add-filter", str(path), "-c", "n", "-c", "x", "-c", "text", "--in-place"]) == 0
    return str(path)


class TestProbe:
    def test_more_values_than_can_be_held_are_refused(self, filtered, tmp_path, capfd, monkeypatch):
        """A pipe may have no end."""
        monkeypatch.setattr("sbbf_tool.cli.values.MAX_VALUES", 1000)
        values_file = tmp_path / "keys"
        for count, code in ((1000, 1), (1001, 2)):
            values_file.write_text("-1\n" * count)
            assert (
                run(
                    [
                        "probe",
                        str(filtered),
                        "user_id",
                        "--quiet",
                        "--values-file",
                        str(values_file),
                    ]
                )
                == code
            )
        assert "more than 1,000 values: " in capfd.readouterr().err

    @each(
        "column, value, code",
        [
            ("n", "-5", 0),
            ("n", "-4", 1),
            ("x", "-1.5", 0),
            ("x", "-.5", 1),
            ("x", "-inf", 0),
            ("x", "-Infinity", 0),
            ("text", "-5", 0),
        ],
    )
    def test_negative_numbers_are_values(self, numbers, column, value, code):
        assert run(["probe", numbers, column, value]) == code


class TestTheDoor:
    def test_verbose_shows_where_an_error_came_from(self, tmp_path, capfd):
        for arguments in (
            ["-v", "inspect", str(tmp_path / "none")],
            ["inspect", "--verbose", str(tmp_path / "none")],
        ):
            assert run(arguments) == 3
            err = capfd.readouterr().err
            assert err.startswith("Traceback")
            assert err.splitlines()[-1].startswith("sbbf: ")

    def test_a_full_output_is_reported(self, filtered):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "sbbf_tool", "inspect", str(filtered)],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert done.returncode == 5
        assert done.stderr == "sbbf: standard output: no space left on device\n"

    def test_a_terminated_process_leaves_nothing_behind(self, tmp_path):
        path = tmp_path / "large.parquet"
        pq.write_table(pa.table({"n": range(3_000_000)}), path, use_dictionary=False)
        before = path.read_bytes()
        command = [
            sys.executable,
            "-m",
            "sbbf_tool",
            "add-filter",
            str(path),
            "-c",
            "n",
            "--in-place",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and len(os.listdir(tmp_path)) == 1:
            time.sleep(0.001)
        process.terminate()
        assert process.wait() in (143, 0)
        assert os.listdir(tmp_path) == [path.name]
        assert path.read_bytes()[: len(before)] == before


def test_exit_3_where_pages_cannot_be_decoded(fixtures, tmp_path, capfd):
    path = Path(shutil.copy(fixtures / "spark-int96.parquet", tmp_path))
    data = bytearray(path.read_bytes())
    data[4:500] = b"\xff" * 496
    path.write_bytes(data)
    assert run(["verify", str(path)]) == 3
    out, err = capfd.readouterr()
    assert "the pages cannot be decoded" in out
    assert err.startswith(f"sbbf: {path}: column id, row group 0: the pages cannot be decoded")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dry_run_ends_with_1_where_something_would_be_done(folder, capfd):
    DEFECTS["unreadable-filter"].make(folder / "a.parquet")
    shutil.copyfile(SOUND, "b.parquet")
    assert run(["repair", "a.parquet", "--dry-run"]) == 1
    output = capfd.readouterr().out
    assert "rebuild" in output
    assert "2 filters would be repaired" in output
    assert run(["repair", "a.parquet", "--rebuild", "none", "--dry-run"]) == 1
    assert "2 filters would be dropped" in capfd.readouterr().out
    assert run(["repair", "b.parquet", "--dry-run"]) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["check", "a.parquet", "--select", "correctness"], "; 1 column chunk not read\n"),
        (
            ["check", ".", "--select", "correctness"],
            "no findings; column chunks not read in 1 file\n",
        ),
        (
            ["repair", "a.parquet", "--in-place"],
            "a.parquet: nothing repaired; 1 column chunk not read\n",
        ),
        (
            ["repair", ".", "--in-place"],
            " 0 findings remaining; column chunks not read in 1 file\n",
        ),
    ],
)
def test_what_could_not_be_read_is_in_the_last_line(arguments, text, folder, capfd):
    (folder / "a.parquet").write_bytes(
        SOUND.read_bytes().replace(SOUND.read_bytes()[4:68], b"\xff" * 64, 1)
    )
    assert run(arguments) == 3
    assert capfd.readouterr().out.endswith(text)


def test_an_error_that_is_left_ends_with_1(folder, capfd):
    DEFECTS["partial-block"].make(folder / "a.parquet")
    assert run(["repair", "a.parquet", "--rebuild", "none", "--in-place"]) == 1
    assert "partial-block" in capfd.readouterr().out
    assert run(["repair", "a.parquet", "--in-place"]) == 0


@each("words", [["add-filter", "-n"], ["inspect"], ["verify"], ["remove-filter", "-n"]])
def test_a_partition_column_needs_no_filter(words, fixtures, tmp_path, capfd):
    folder = tmp_path / "lake" / "dt=2026-01-01"
    folder.mkdir(parents=True)
    for name in ("a.parquet", "b.parquet"):
        shutil.copy(fixtures / "events.parquet", folder / name)
    assert run([*words, str(tmp_path / "lake"), "-c", "dt"]) == 2
    assert (
        "dt is a partition column: the names of folders have its values" in capfd.readouterr().err
    )
