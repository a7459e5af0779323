"""A folder with encrypted files: with keys all is done to them as to others, without keys they are
reported, and no key is ever shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sbbf_tool import inspect
from sbbf_tool.cli import run
from sbbf_tool.file.keys import read_keys
from sbbf_tool.running import local
from support.lakes import digests, small_files
from support.parquet_java import FIRST_ID
from support.shown_keys import KEYS, assert_no_key

pytestmark = pytest.mark.slow

pytest.importorskip("cryptography", reason="the Python package cryptography is not installed")


@pytest.fixture
def lake(tmp_path, fixtures) -> Path:
    """`java` has an encrypted footer, and filters; `signed` a plain footer, encrypted columns, no
    filter; `plain` is as most files are."""
    folder = small_files(tmp_path / "lake", 1)
    (folder / "part-00000.parquet").rename(folder / "plain.parquet")
    for name, fixture in (("java", "java-columns"), ("signed", "java-signed")):
        shutil.copy(
            fixtures / "encrypted" / f"{fixture}.parquet.encrypted", folder / f"{name}.parquet"
        )
    return folder


@pytest.fixture(
    params=["local", pytest.param("spark", marks=[pytest.mark.engines, pytest.mark.heavy])]
)
def sbbf(request, capfd, monkeypatch) -> Callable[..., tuple[int, list[dict], str]]:
    """Run `sbbf` on a runner: return the exit code, the documents of the files, and standard error.
    None of them may contain a key."""
    runner = ("--jobs", "2")
    monkeypatch.setattr(local, "_FILES_WITHOUT_PROCESSES", 1)
    if request.param == "spark":
        request.getfixturevalue("spark")
        runner = ("--on", "spark")

    def sbbf(command: str, lake: Path, *arguments: object) -> tuple[int, list[dict], str]:
        capfd.readouterr()
        code = run([command, str(lake), *map(str, arguments), *runner, "--format", "json"])
        output = capfd.readouterr()
        assert_no_key(output.out + output.err)
        documents = [
            document
            for document in map(json.loads, output.out.splitlines())
            if document["schema"] != "sbbf.summary"
        ]
        return code, sorted(documents, key=lambda document: str(document.get("file"))), output.err

    return sbbf


def statuses(documents: list[dict]) -> dict[str, str]:
    return {Path(document["file"]).stem: document.get("status", "ok") for document in documents}


def test_encrypted_files_without_keys_are_reported(lake, sbbf):
    before = digests(lake)
    code, documents, output = sbbf("add-filter", lake, "-c", "id", "-c", "name", "--in-place")
    assert (code, statuses(documents)) == (
        4,
        {"java": "refused", "plain": "ok", "signed": "refused"},
    )
    assert "java.parquet: the footer is encrypted" in output
    assert "signed.parquet: the footer of the file is signed" in output
    assert {name for name, digest in digests(lake).items() if digest != before[name]} == {
        "plain.parquet"
    }
    for command in (["inspect"], ["verify"], ["probe", "-c", "id", "--value", "1"]):
        code, documents, output = sbbf(command[0], lake, *command[1:])
        assert (code, statuses(documents)) == (
            4,
            {"java": "refused", "plain": "ok", "signed": "ok"},
        )
        assert f"{lake}/java.parquet: " in output


def test_with_keys_they_are_files_as_others_are(lake, sbbf):
    with_keys = ("--keys", KEYS)
    columns = ("-c", "id", "-c", "name", "--in-place")
    code, documents, output = sbbf("add-filter", lake, *columns, *with_keys)
    assert (code, output) == (0, "")
    assert {Path(document["file"]).stem: len(document["filters"]) for document in documents} == {
        "java": 0,
        "plain": 2,
        "signed": 6,
    }
    signed = inspect(lake / "signed.parquet", ["name"], keys=read_keys(str(KEYS)))
    assert [row.encrypted for row in signed.filters] == [True] * 3

    code, documents, _ = sbbf("verify", lake, *with_keys)
    assert (code, statuses(documents)) == (0, dict.fromkeys(("java", "plain", "signed"), "ok"))
    assert all(
        result["problem"] is None and not result["false_negatives"]
        for document in documents
        for result in document["filters"]
    )
    code, documents, _ = sbbf("inspect", lake, "-c", "name", *with_keys)
    assert (code, [len(document["filters"]) for document in documents]) == (0, [3, 1, 3])
    code, documents, _ = sbbf(
        "probe", lake, "-c", "name", "--value", "name-0", "--value", "u7", *with_keys
    )
    assert code == 0
    hits = [{hit["value"] for hit in document["hits"]} for document in documents]
    assert all(
        sought in values for sought, values in zip(("name-0", "u7", "name-0"), hits, strict=True)
    )
    assert [document["inconclusive"] for document in documents] == [[], [], []]
    code, documents, output = sbbf("check", lake, "--fail-on", "error", *with_keys)
    assert (code, len(documents), output) == (0, 3, "")
    code, (report,), output = sbbf("advise", lake, "--query", f"id = {FIRST_ID}", *with_keys)
    assert (code, report["files"], report["unreadable"]) == (0, 3, [])
