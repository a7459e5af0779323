"""An index that the settings name answers for its lake: the same lines, with fewer files opened;
one that merely lies beside the data is not used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sbbf_tool
from sbbf_tool.cli import run as sbbf
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.index.build import build_index
from sbbf_tool.verbs.probe import Probe
from support.tables import each

NOTE = "is asked which files of"


@pytest.fixture
def lake(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three files, of which an index lies beside it, as the working folder has it."""
    monkeypatch.chdir(tmp_path)
    lake = tmp_path / "lake"
    for name in ("a", "b", "c"):
        (lake / f"day={name}").mkdir(parents=True)
        shutil.copy(fixtures / "events.parquet", lake / f"day={name}" / "f.parquet")
    assert sbbf(["add-filter", "lake", "-c", "user_id", "--in-place", "-q"]) == 0
    build_index("lake", "user_id", "lake.sbbfx")
    return lake


def name_index(index: str = "lake.sbbfx", lake: str = "lake") -> None:
    Path("sbbf.toml").write_text(f'[indexes]\n"{lake}" = "{index}"\n')


def answers(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    """Return exit code, lines and messages of a command, without the sum of `probe`."""
    capsys.readouterr()
    code = sbbf(list(words))
    captured = capsys.readouterr()
    lines = [line for line in captured.out.splitlines() if not line.startswith("Queried ")]
    return code, lines, captured.err


@each("value", ["107919", "500000", "x"])
@each("verb", ["probe", "explain"])
def test_no_answer_changes(verb, value, lake, capsys):
    expected = answers(capsys, verb, "lake", "user_id", value, "--format", "csv")
    name_index()
    with_index = answers(capsys, verb, "lake", "user_id", value, "--format", "csv")
    assert with_index[0] == expected[0]
    assert set(with_index[1]) <= set(expected[1])
    assert with_index[1] == expected[1] or expected[0] == 1
    assert NOTE in with_index[2]
    assert (
        answers(capsys, verb, "lake", "user_id", value, "--format", "csv", "--config", "none")
        == expected
    )


def test_files_are_left_out_and_new_ones_are_not(lake, capsys):
    name_index()
    assert sbbf(["probe", "lake", "user_id", "--", "-1"]) == 1
    assert "the index excludes 2 other files" in capsys.readouterr().out
    shutil.copy(lake / "day=a" / "f.parquet", lake / "day=a" / "new.parquet")
    code, lines, _ = answers(capsys, "probe", "lake/", "user_id", "107919", "--format", "names")
    assert code == 0
    assert "lake/day=a/new.parquet" in lines
    assert sbbf(["probe", "lake", "--where", "day = 'a'", "-c", "user_id", "--value", "-1"]) == 1


def test_other_spellings_of_the_lake(lake, tmp_path, monkeypatch, capsys):
    for name in ("lake/", "./lake", str(lake), lake.as_uri()):
        name_index(lake=name)
        assert NOTE in answers(capsys, "probe", "lake", "user_id", "107919")[2], name
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for name in ("../lake", str(lake), lake.as_uri()):
        assert NOTE in answers(capsys, "probe", name, "user_id", "107919")[2], name


def test_an_index_beside_the_data_is_not_used(lake, capsys):
    assert NOTE not in answers(capsys, "probe", "lake", "user_id", "107919")[2]
    name_index(lake="other")
    assert NOTE not in answers(capsys, "probe", "lake", "user_id", "107919")[2]


def test_other_commands_do_not_use_it(lake, capsys):
    name_index()
    assert NOTE not in answers(capsys, "inspect", "lake")[2]
    assert sbbf(["remove-filter", "lake", "--in-place", "-q"]) == 0


def test_an_index_that_another_user_can_name_is_refused(lake, capsys):
    name_index()
    Path("sbbf.toml").chmod(0o666)
    code, _, err = answers(capsys, "probe", "lake", "user_id", "107919")
    assert code == 2
    assert "an index decides which files are opened, and every user can write to it" in err
    assert answers(capsys, "probe", "lake", "user_id", "107919", "--config", "none")[0] == 0
    named = ("--config", "sbbf.toml")
    assert answers(capsys, "probe", "lake", "user_id", "107919", *named)[0] == 0


def test_an_index_of_other_files_is_refused(lake, capsys):
    name_index(lake="lake/day=a")
    code, _, err = answers(capsys, "probe", "lake/day=a", "user_id", "107919")
    assert code == 2
    assert "the index is of lake, not of lake/day=a" in err
    Path("sbbf.toml").write_text("[indexes]\nlake = 5\n")
    assert answers(capsys, "probe", "lake", "user_id", "107919")[0] == 2


def test_in_python(lake):
    verb = Probe("user_id", [-1])
    assert len(list(sbbf_tool.run(verb, "lake"))) == 3
    assert len(list(sbbf_tool.run(verb, "lake", index="lake.sbbfx"))) == 1
    with pytest.raises(UsageError, match="the index is of lake"):
        list(sbbf_tool.run(verb, "lake/day=a", index="lake.sbbfx"))


def test_a_name_that_is_none_of_an_index(lake, capsys):
    name_index("lake/day=a/f.parquet")
    code, _, err = answers(capsys, "probe", "lake", "user_id", "107919")
    assert code == 2
    assert "sbbf.toml: the index of lake must be the name of an index" in err
