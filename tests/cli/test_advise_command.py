"""`sbbf advise` as a user meets it, and its plan carried out."""

from __future__ import annotations

import json
import os
import shlex
import shutil

import pytest

from sbbf_tool import inspect
from sbbf_tool.cli import run


@pytest.fixture
def events(fixtures, tmp_path):
    """In a folder whose name a shell would split."""
    (tmp_path / "a folder").mkdir()
    return shutil.copy(fixtures / "events.parquet", tmp_path / "a folder" / "events.parquet")


def sizes(path) -> dict[str, set[int | None]]:
    found: dict[str, set[int | None]] = {}
    for row in inspect(path).filters:
        found.setdefault(row.column, set()).add(row.bitset_bytes)
    return found


def test_the_last_line_is_the_command(events, capfd):
    assert run(["advise", str(events)]) == 0
    command = shlex.split(capfd.readouterr().out.splitlines()[-1])
    assert command[0] == "sbbf"
    assert run(command[1:]) == 0
    assert sizes(events) == {"user_id": {1024}, "session": {2048}, "amount": {2048}}
    assert run(["advise", str(events)]) == 0
    assert capfd.readouterr().out.endswith("no filter to add\n")


def test_a_plan_is_carried_out_on_the_file_it_names(events, tmp_path):
    plan = tmp_path / "plan.json"
    assert run(["advise", str(events), "--plan", str(plan)]) == 0
    planned = json.loads(plan.read_text())["columns"]
    assert run(["add-filter", "--plan", str(plan), "--in-place"]) == 0
    assert sizes(events) == {column: {wish["max_bytes"]} for column, wish in planned.items()}


def test_a_plan_limits_each_column_and_may_go_to_another_file(events, tmp_path, fixtures):
    plan = tmp_path / "plan.json"
    run(["advise", str(events), "--plan", str(plan)])
    document = json.loads(plan.read_text())
    document["columns"] = {"session": {"max_bytes": 256}, "user_id": {"max_bytes": 1024}}
    plan.write_text(json.dumps(document))
    assert run(["add-filter", "--plan", str(plan), str(fixtures / "events.parquet"), "-o", str(tmp_path / "out.parquet")]) == 0
    assert sizes(tmp_path / "out.parquet") == {"session": {256}, "user_id": {1024}}
    assert sizes(events) == {}


@pytest.mark.parametrize(
    ("mode", "who"),
    [(0o600, None), (0o644, None), (0o660, "its group"), (0o602, "every user"), (0o666, "every user")],
)
@pytest.mark.parametrize("command", [["add-filter", "--in-place"], ["add-filter", "FOLDER", "--in-place"]], ids=" ".join)
def test_a_plan_that_others_may_change_is_a_warning(events, tmp_path, capfd, mode, who, command):
    plan = tmp_path / "plan.json"
    run(["advise", str(events), "--plan", str(plan)])
    plan.chmod(mode)
    capfd.readouterr()
    words = [str(events.parent) if word == "FOLDER" else word for word in command]
    assert run([*words, "--plan", str(plan)]) == 0
    warning = f"{plan}: the plan can be changed by {who}, who thereby chooses the files and columns"
    errors = capfd.readouterr().err
    assert (warning in errors) if who else ("can be changed by" not in errors)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_plan_of_another_user_is_a_warning(events, tmp_path, capfd):
    plan = tmp_path / "plan.json"
    run(["advise", str(events), "--plan", str(plan)])
    os.chown(plan, 12345, 12345)
    assert run(["add-filter", "--plan", str(plan), "--in-place"]) == 0
    assert "can be changed by its owner (uid 12345)" in capfd.readouterr().err


def test_a_plan_without_end_is_none(capfd):
    assert run(["add-filter", "--plan", "/dev/zero", "--in-place"]) == 2
    assert "are no plan" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colunms": {}}, "unknown key 'colunms'"),
        ({"columns": {"user_id": {"max_bytes": 1024, "ndv": 3}}}, "unknown key 'ndv'"),
        ({"columns": {"user_id": {"max_bytes": 63}}}, "max_bytes is 63"),
        ({"columns": {"user_id": {"max_bytes": True}}}, "max_bytes is True"),
        ({"columns": {"user_id": {}}}, "no key 'max_bytes'"),
        ({"columns": {}}, "columns is {}"),
        ({"fpp": 1}, "fpp is 1"),
        ({"replace": "yes"}, "replace is 'yes'"),
        ({"files": "events.parquet"}, "files is"),
        ({"sbbf_plan": 2}, "sbbf_plan is 2"),
    ],
)
def test_a_plan_that_is_none(events, tmp_path, capfd, change, said):
    plan = tmp_path / "plan.json"
    run(["advise", str(events), "--plan", str(plan)])
    plan.write_text(json.dumps({**json.loads(plan.read_text()), **change}))
    capfd.readouterr()
    assert run(["add-filter", "--plan", str(plan), "--in-place"]) == 2
    err = capfd.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert sizes(events) == {}


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_what_is_no_json_object_is_no_plan(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    assert run(["add-filter", "--plan", str(tmp_path / "plan.json"), "--in-place"]) == 2
    assert run(["add-filter", "--plan", str(tmp_path / "none.json"), "--in-place"]) == 2


@pytest.mark.parametrize("option", [["-c", "user_id"], ["--fpp", "0.1"], ["--ndv", "3"], ["--max-bytes", "64"]])
def test_a_plan_and_options_that_it_decides(events, tmp_path, option, capfd):
    plan = tmp_path / "plan.json"
    run(["advise", str(events), "--plan", str(plan)])
    assert run(["add-filter", "--plan", str(plan), "--in-place", *option]) == 2
    assert "leave out" in capfd.readouterr().err


def test_queries_from_a_file(events, tmp_path, capfd):
    (tmp_path / "queries.sql").write_text("-- what the dashboard asks\n\nsession = '7x';\nuser_id IN (500, 501) AND country = 'SE'\n")
    assert run(["advise", str(events), "--queries", str(tmp_path / "queries.sql"), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert [one["query"] for one in document["queries"]] == ["session = '7x'", "user_id IN (500, 501) AND country = 'SE'"]
    verdicts = {column["column"]: column["verdict"] for column in document["columns"]}
    assert (verdicts["session"], verdicts["amount"]) == ("add", "no gain")


def test_several_files_at_a_time(events, tmp_path):
    other = shutil.copy(events, tmp_path / "a folder" / "other.parquet")
    assert run(["add-filter", str(tmp_path / "a folder"), "-c", "user_id", "--in-place"]) == 0
    assert sizes(events) == sizes(other) == {"user_id": {1024}}
    assert run(["add-filter", str(events), str(other), "-c", "session", "-o", "x.parquet"]) == 2
