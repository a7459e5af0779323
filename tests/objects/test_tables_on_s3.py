"""Commands on a Delta table in a bucket: copies and commits by requests, and what a run leaves there."""

from __future__ import annotations

import json

import pytest

from sbbf_tool.cli import run
from support.delta_tables import make_table


@pytest.fixture
def url(moto_bucket, tmp_path) -> str:
    folder = make_table(tmp_path / "orders")
    for path in folder.rglob("*"):
        if path.is_file():
            moto_bucket.put(f"lake/orders/{path.relative_to(folder)}", path.read_bytes())
    return str(moto_bucket.url("lake/orders"))


def call(capsys, *words: str) -> tuple[int, str, str]:
    code = run(list(words))
    output = capsys.readouterr()
    return code, output.out, output.err


def test_filters_are_added_in_one_commit(moto_bucket, url, capsys):
    code, _, err = call(capsys, "add-filter", url, "-c", "id", "--in-place")
    assert code == 4
    assert "conditional-put" in err
    code, out, err = call(capsys, "add-filter", url, "-c", "id", "--in-place", "--commit", "conditional-put", "--format", "json")
    assert (code, "of old files stay until VACUUM deletes them" in err) == (0, True)
    *rows, summary = [json.loads(line) for line in out.splitlines()]
    (commit,) = summary["totals"]["commits"]
    assert commit["files"] == len(rows) == summary["done"]
    copies = {key for key in moto_bucket.list_keys() if "/sbbf-" in key}
    assert copies == {row["output"].partition(f"{moto_bucket.name}/")[2] for row in rows}
    assert not [key for key in moto_bucket.list_keys() if "_sbbf-run-" in key]
    assert call(capsys, "verify", url)[0] == 0
    assert call(capsys, "repair", url, "--abandoned", "--older-than", "0s")[1].endswith("0 copies abandoned\n")


def test_copies_of_a_refused_commit_are_deleted(moto_bucket, url, capsys, monkeypatch):
    from sbbf_tool.errors import RefusedError
    from sbbf_tool.extensions.tables.delta.table import DeltaTable

    def refuse(*words: object) -> None:
        raise RefusedError("other commits come first in all attempts")

    monkeypatch.setattr(DeltaTable, "commit", refuse)
    before = set(moto_bucket.list_keys())
    assert call(capsys, "add-filter", url, "-c", "id", "--in-place", "--commit", "conditional-put")[0] == 4
    assert set(moto_bucket.list_keys()) == before


def test_log_files_of_a_hudi_table_are_not_queried(moto_bucket, tmp_path, capsys, fixtures):
    moto_bucket.put("lake/h/.hoodie/hoodie.properties", b"hoodie.table.type=MERGE_ON_READ\n")
    moto_bucket.put("lake/h/p=1/f1_0-1-1_2024.parquet", (fixtures / "pyarrow-filters.parquet").read_bytes())
    url = str(moto_bucket.url("lake/h"))
    assert call(capsys, "probe", url, "id", "-5")[0] == 1
    moto_bucket.put("lake/h/p=1/.f1_2024.log.1_0-2-2", b"#HUDI#" + bytes(40))
    for name in (url, f"{url}/p=*", f"{url}/p=1/*"):
        code, _, err = call(capsys, "probe", name, "id", "-5")
        assert (code, "a log file of a Hudi table" in err) == (0, True)
