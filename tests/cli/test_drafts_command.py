"""The drafts on the command line: `--dialect` and `--standalone`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sbbf_tool.bloom.dialects import find_dialect
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.cli import run
from sbbf_tool.parquet.filters import build_draft_header
from support.draft_files import write_draft

VALUES = [f"value {n}" for n in range(1000)]


@pytest.fixture
def standalone(tmp_path: Path) -> Path:
    """A filter of the first draft, and its values in a file beside it."""
    bloom = BloomFilter.empty(2048)
    hasher = find_dialect("draft1-raw").hasher(bloom.num_blocks, is_number=False)
    for value in VALUES:
        bloom.insert_hash(hasher.hash_value(value.encode()))
    path = tmp_path / "filter.bin"
    path.write_bytes(build_draft_header(find_dialect("draft1-raw"), 2048) + bytes(bloom))
    (tmp_path / "values.txt").write_text("\n".join(VALUES))
    return path


@pytest.fixture
def drafted(fixtures: Path, tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    write_draft(fixtures / "events.parquet", ["user_id"], path, "draft2-page")
    return path


def run_sbbf(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    return code, *capfd.readouterr()


def test_a_parquet_file(drafted, capfd):
    code, out, _ = run_sbbf(capfd, "inspect", str(drafted))
    assert code == 0
    assert out.count("the values of the column match draft2-page") == 1
    assert "row groups 0-2: " in out
    code, out, _ = run_sbbf(capfd, "probe", str(drafted), "user_id", "42")
    assert (code, out.count("cannot say")) == (0, 3)
    code, out, _ = run_sbbf(capfd, "probe", str(drafted), "user_id", "42", "--dialect", "draft2-page")
    assert (code, out.count("absent")) == (1, 3)
    code, out, err = run_sbbf(capfd, "probe", str(drafted), "user_id", "42", "--dialect", "draft3")
    assert (code, out) == (2, "")
    assert err.startswith("sbbf: there is no dialect 'draft3'; the dialects are current, ")
    code, out, _ = run_sbbf(capfd, "verify", str(drafted))
    assert code == 1
    assert out.count("verified, as draft2-page") == 3
    assert "fix: sbbf repair" in out
    assert run_sbbf(capfd, "repair", str(drafted), "--rebuild", "--in-place")[0] == 0
    assert run_sbbf(capfd, "verify", str(drafted))[0] == 0


def test_json_contains_the_dialect(drafted, capfd):
    _, out, _ = run_sbbf(capfd, "inspect", str(drafted), "--json")
    for row in json.loads(out)["filters"]:
        assert (row["dialects"], row["dialect"]) == (["draft1-page", "draft2-page"], "draft2-page")
    _, out, _ = run_sbbf(capfd, "verify", str(drafted), "--json")
    assert [result["dialect"] for result in json.loads(out)["filters"]] == ["draft2-page"] * 3


def test_a_standalone_filter(standalone, capfd):
    values = str(standalone.with_name("values.txt"))
    code, out, _ = run_sbbf(capfd, "inspect", "--standalone", str(standalone))
    assert code == 0
    assert "standalone filter, header: 12 plain bytes" in out
    assert "draft1-raw or branch-12" in out
    code, out, _ = run_sbbf(capfd, "verify", "--standalone", str(standalone), "--type", "STRING", "--values-file", values)
    assert (code, "as draft1-raw: all 1000 values verified" in out.replace(",", "")) == (0, True)
    code, out, _ = run_sbbf(
        capfd, "verify", "--standalone", str(standalone), "--type", "STRING", "--values-file", values, "--dialect", "branch-12"
    )
    assert code == 1
    assert "values are false negatives, such as value" in out
    code, out, _ = run_sbbf(capfd, "probe", "--standalone", str(standalone), "--type", "STRING", "nobody")
    assert (code, "cannot say" in out) == (0, True)
    code, out, _ = run_sbbf(capfd, "probe", "--standalone", str(standalone), "--type", "STRING", "nobody", "--dialect", "draft1-raw")
    assert code == 1
    assert (
        run_sbbf(capfd, "probe", "--standalone", str(standalone), "--type", "STRING", "--values-file", values, "--dialect", "draft1-raw")[0]
        == 0
    )
    _, out, _ = run_sbbf(capfd, "inspect", "--standalone", str(standalone), "--json")
    assert json.loads(out)["dialects"] == ["draft1-raw", "branch-12"]
    _, out, _ = run_sbbf(capfd, "verify", "--standalone", str(standalone), "--type", "STRING", "--values-file", values, "--json")
    assert json.loads(out)["dialect"] == "draft1-raw"


WRONG = {
    "no type": (["probe", "--standalone", "FILE", "x"], "give --type"),
    "no such type": (["probe", "--standalone", "FILE", "x", "--type", "WORDS"], "no type 'WORDS'"),
    "no values": (["verify", "--standalone", "FILE", "--type", "STRING"], "give --values-file"),
    "a value of another type": (["probe", "--standalone", "FILE", "x", "--type", "INT32"], "'x' is not a value of INT32"),
    "a values file that is not there": (["verify", "--standalone", "FILE", "--type", "INT32", "--values-file", "none"], "no such file"),
    "another dialect": (
        ["probe", "--standalone", "FILE", "x", "--type", "STRING", "--dialect", "draft1-page"],
        "does not fit the dialect draft1-page",
    ),
    "no column": (["probe", "FILE"], "no column was given"),
    "a type of a Parquet file": (["probe", "FILE", "c", "x", "--type", "INT32"], "--type applies only with --standalone"),
    "values for a Parquet file": (["verify", "FILE", "--values-file", "none"], "apply only with --standalone"),
    "two standalone files": (["verify", "--standalone", "FILE", "FILE", "--type", "INT32", "--values-file", "none"], "takes one file"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=list(WRONG))
def test_queries_that_cannot_be_answered(standalone, capfd, arguments, words):
    code, out, err = run_sbbf(capfd, *(str(standalone) if argument == "FILE" else argument for argument in arguments))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_bytes_that_are_no_filter(tmp_path, capfd):
    path = tmp_path / "no filter"
    for content in (b"", b"PAR1", bytes(100), b"\xff" * 100, (128 << 20).to_bytes(4, "little") + bytes(20)):
        path.write_bytes(content)
        code, out, err = run_sbbf(capfd, "inspect", "--standalone", str(path))
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert str(path) in err


def test_code_of_the_drafts_is_loaded_for_drafts_alone(fixtures, standalone):
    def loaded(*arguments: str) -> bool:
        program = f"from sbbf_tool.cli import run; run({list(arguments)!r}); import sys; print('sbbf_tool.bloom.dialects' in sys.modules)"
        return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.endswith("True\n")

    path = str(fixtures / "pyarrow-filters.parquet")
    assert not loaded("inspect", path)
    assert not loaded("probe", path, "id", "1")
    assert not loaded("add-filter", path, "-c", "id", "--replace", "-n")
    assert loaded("inspect", "--standalone", str(standalone))


@pytest.mark.parametrize("name", ["pyarrow-filters.parquet", "encrypted/java-columns.parquet.encrypted"])
def test_a_parquet_file_is_no_standalone_filter(fixtures, name, capfd):
    for words in (["inspect"], ["probe", "--type", "INT64"]):
        values = ["3"] if words[0] == "probe" else []
        code, _, err = run_sbbf(capfd, *words, "--standalone", str(fixtures / name), *values)
        assert (code, err) == (3, f"sbbf: {fixtures / name}: this is a Parquet file, not a standalone filter\n")
