"""`sbbf advise` on the command line."""

from __future__ import annotations

import json
import shlex
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UsageError, advise, inspect
from sbbf_tool.cli import run
from support.tables import each


@pytest.fixture
def events(fixtures, tmp_path):
    """A copy of the file in a folder whose name needs quotes in a shell."""
    (tmp_path / "a folder").mkdir()
    return shutil.copy(fixtures / "events.parquet", tmp_path / "a folder" / "events.parquet")


def sizes(path) -> dict[str, set[int | None]]:
    sizes_by_column: dict[str, set[int | None]] = {}
    for row in inspect(path).filters:
        sizes_by_column.setdefault(row.column, set()).add(row.bitset_bytes)
    return sizes_by_column


def test_the_last_line_is_a_command_that_adds_the_filters(events, capfd):
    assert run(["advise", str(events), "--all"]) == 0
    out = capfd.readouterr().out
    assert "note: columns user_id, session: all chunks are dictionary-encoded" in out
    command = shlex.split(out.splitlines()[-1])
    assert command[0] == "sbbf"
    assert run(command[1:]) == 0
    assert sizes(events) == {"user_id": {1024}, "session": {2048}, "amount": {2048}}
    assert run(["advise", str(events)]) == 0
    assert capfd.readouterr().out.endswith("no filter to add\n")


@each("form", ["table", "markdown", "json"])
def test_settings_of_a_writer_are_printed_to_paste(events, capfd, form):
    assert run(["advise", str(events), "--writer", "sbbf", "--format", form]) == 0
    out = capfd.readouterr().out
    text = (
        f'[[filters]]\npaths = {json.dumps(str(events))}\ncolumns = ["user_id", '
        '"session"]\nfpp = 0.01\n'
    )
    if form == "json":
        document = json.loads(out)
        assert document["emit"]["text"] == text
    else:
        assert out == (text if form == "table" else f"```\n{text}```\n")


def test_unknown_writers_are_refused(events):
    with pytest.raises(
        UsageError, match="the settings of 'hive' are not known; the writers are spark, "
    ):
        advise(events, writer="hive")


def test_queries_are_read_from_a_file(events, tmp_path, capfd):
    (tmp_path / "queries.sql").write_text(
        "-- queries of the dashboard\n\nsession = '7x';\nuser_id IN (500, 501) AND country = 'SE'\n"
    )
    assert (
        run(["advise", str(events), "--query", f"@{tmp_path / 'queries.sql'}", "--format", "json"])
        == 0
    )
    document = json.loads(capfd.readouterr().out)
    assert [query["query"] for query in document["queries"]] == [
        "session = '7x'",
        "user_id IN (500, 501) AND country = 'SE'",
    ]
    verdicts = {column["column"]: column["verdict"] for column in document["columns"]}
    assert (verdicts["session"], verdicts["amount"]) == ("add", "no gain")


def test_queries_on_partitions_count_the_files_in_them(tmp_path, capfd):
    for k in (1, 2):
        folder = tmp_path / f"k={k}"
        folder.mkdir()
        pq.write_table(pa.table({"id": range(30)}), folder / "a.parquet", row_group_size=10)
    queries = ("k = 1 AND id = 15", "k = 3", "id = 15")
    options = [word for query in queries for word in ("--query", query)]
    assert run(["advise", str(tmp_path), *options, "--format", "json"]) == 0
    counts = [
        (query["row_groups"], query["after_statistics"])
        for query in json.loads(capfd.readouterr().out)["queries"]
    ]
    assert counts == [(3, 1), (0, 0), (6, 2)]
    assert run(["advise", str(tmp_path), "--query", "z = 1"]) == 2
    assert "there is no column 'z'" in capfd.readouterr().err


def test_kept_filters_that_are_weaker_than_the_target_are_named(events, capfd):
    assert run(["add-filter", str(events), "-c", "user_id", "--fpp", "0.3", "--in-place"]) == 0
    line = "weaker than the target: filters of user_id; add-filter --rebuild weak rebuilds them"
    for rebuild, is_named in (([], True), (["--rebuild", "weak"], False)):
        assert run(["add-filter", str(events), "-c", "user_id", "--in-place", *rebuild]) == 0
        capfd.readouterr()
        assert run(["advise", str(events)]) == 0
        assert (line in capfd.readouterr().out.splitlines()) is is_named


def test_a_name_of_several_columns_has_its_type(tmp_path, capfd):
    for number, kind in enumerate((pa.int32(), pa.int64())):
        pq.write_table(
            pa.table({"id": pa.array(range(1000), kind), "b": range(1000)}),
            tmp_path / f"{number}.parquet",
        )
    assert run(["advise", str(tmp_path)]) == 0
    out = capfd.readouterr().out
    assert "id (INT32)" in out
    assert "id (INT64)" in out
    assert "b (INT64)" not in out


def test_only_filters_that_are_missing_count_as_new(tmp_path, capfd):
    """Each file has its own values; only one has filters."""
    for number in range(2):
        pq.write_table(
            pa.table({"id": [f"{value}-{number}" for value in range(9999)]}),
            tmp_path / f"{number}.parquet",
            use_dictionary=False,
        )
    everything = advise(tmp_path).added_bytes
    assert run(["add-filter", str(tmp_path / "0.parquet"), "-c", "id", "--in-place"]) == 0
    report = advise(tmp_path)
    assert report.columns[0].verdict == "add"
    before = (tmp_path / "1.parquet").stat().st_size
    assert run(["add-filter", str(tmp_path), "-c", "id", "--in-place"]) == 0
    added = (tmp_path / "1.parquet").stat().st_size - before
    assert report.added_bytes == pytest.approx(added, rel=0.01)
    assert everything == pytest.approx(2 * added, rel=0.01)
