"""`check_paimon`: each rule finds its defect, in every format, and the fix that it names resolves
it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from extensions.paimon.paimon_tables import NewFile, NewTable, TableMaker
from sbbf_tool.cli import run
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.fast_hash import Hashes, hash_bytes, hash_longs
from sbbf_tool.extensions.paimon.index_container import build_container
from sbbf_tool.extensions.paimon.rules import INDEX_RULES
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index
from sbbf_tool.extensions.paimon.verbs.check import check_paimon
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.reports.findings import CheckReport
from sbbf_tool.rules.catalog import RULES
from support.tables import each

NUMBERS = range(1000, 1100)
COLUMNS = {"id": pa.array(NUMBERS, pa.int64()), "s": pa.array([f"value {at}" for at in NUMBERS])}


def filter_of(hashes: Hashes, items: int = 100, fpp: float = 0.01) -> bytes:
    bloom = BloomFilter64.for_items(items, fpp)
    bloom.insert(hashes)
    return build_bloom64(bloom)


def container_of(**filters: bytes | None) -> bytes:
    return build_container({column: {KIND: body} for column, body in filters.items()})


RIGHT = hash_longs(np.array(NUMBERS, np.int64))
TEXTS = hash_bytes(str(number).encode() for number in NUMBERS)
NAMES = hash_bytes(f"value {number}".encode() for number in NUMBERS)
DEFECTS: dict[str, Mapping[str, Any]] = {
    "index-false-negatives": {"embedded": container_of(id=filter_of(RIGHT[:90]))},
    "index-wrong-hash": {"embedded": container_of(id=filter_of(TEXTS))},
    "empty-index": {"embedded": container_of(id=None)},
    "empty-index-filter": {"embedded": container_of(id=b"\0\0\0\7" + bytes(100))},
    "unreadable-index": {"embedded": b"no container"},
    "duplicate-index": {
        "embedded": container_of(id=filter_of(RIGHT)),
        "extra_files": ("data.parquet.index",),
    },
    "unreferenced-index": {"beside": "data.parquet-3.index"},
    "outside-table": {"external_path": "/elsewhere/data.parquet"},
    "unknown-column": {"embedded": container_of(gone=filter_of(RIGHT))},
    "unknown-kind": {"embedded": build_container({"id": {"hologram": b"?"}})},
    "no-hash": {"embedded": container_of(flag=filter_of(RIGHT))},
    "many-hash-functions": {"embedded": container_of(id=b"\0\0\0\x80" + b"\xff" * 100)},
    "no-hash-functions": {"embedded": container_of(id=bytes(4) + b"\xff" * 100)},
    "saturated-index": {"embedded": container_of(id=filter_of(RIGHT, items=5))},
    "large-for-rows": {"embedded": container_of(id=filter_of(RIGHT, items=1_000_000))},
    "large-for-values": {"embedded": container_of(id=filter_of(RIGHT, items=1_500))},
    "unused-index": {
        "embedded": container_of(id=filter_of(RIGHT)),
        "options": {"file-index.read.enabled": "false"},
    },
    "missing-index": {"options": {"file-index.bloom-filter.columns": "id"}},
}


def make_table(new_table: NewTable, tmp_path: Path, rule: str) -> TableMaker:
    defect = dict(DEFECTS[rule])
    beside, external = defect.pop("beside", None), defect.pop("external_path", None)
    maker = new_table(
        (("id", "BIGINT"), ("s", "STRING"), ("flag", "BOOLEAN")), options=defect.pop("options", {})
    )
    flags = {"flag": pa.array([None] * len(NUMBERS), pa.bool_())}
    maker.commit(
        NewFile(
            COLUMNS | flags,
            name="data.parquet",
            external_path=str(tmp_path / external.lstrip("/")) if external else None,
            **defect,
        )
    )
    if beside is not None:
        (maker.root / "bucket-0" / beside).write_bytes(container_of(id=filter_of(RIGHT)))
    return maker


def names(report: CheckReport) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.slow
@each("rule", INDEX_RULES)
def test_each_rule_finds_its_defect(
    new_table: NewTable, tmp_path: Path, rule: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    maker = make_table(new_table, tmp_path, rule.name)
    report = check_paimon(maker.root, fail_on=rule.severity)
    assert rule.name in names(report)
    assert report.failed
    outcomes = {outcome.rule: outcome.outcome for outcome in report.rules}
    assert list(outcomes) == [rule.name for rule in INDEX_RULES]
    assert {name for name, outcome in outcomes.items() if outcome in ("failed", "noted")} == names(
        report
    )
    (finding,) = [finding for finding in report.findings if finding.rule == rule.name]
    assert (finding.severity, finding.message) == (rule.severity, rule.message)
    assert (finding.fix is not None) == (rule.verb is not None)
    assert (
        run(["paimon", "check", str(maker.root), "--select", rule.name, "--fail-on", rule.severity])
        == 1
    )
    out, err = capfd.readouterr()
    assert out.startswith(f"{maker.root}: {rule.severity}: {rule.name}\n    {rule.message}\n")
    assert err == ""
    command = (
        ["paimon", "remove-index", str(maker.root), "--select", "unreadable-index"]
        if rule.name == "unreadable-index"
        else None
    )
    if finding.fix is not None:
        program, *command = (
            next(line for line in out.splitlines() if "fix: " in line).partition("fix: ")[2].split()
        )
        assert program == "sbbf"
    if command is not None:
        assert run(command) == 0
        capfd.readouterr()
        assert rule.name not in names(check_paimon(maker.root))
        assert not verify_paimon(maker.root).has_false_negatives


def test_every_defect_belongs_to_a_rule_with_a_name_of_its_own() -> None:
    assert list(DEFECTS) == [rule.name for rule in INDEX_RULES]
    assert not {rule.name for rule in RULES} & DEFECTS.keys()


def test_a_sound_table_has_no_findings(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(NewFile(COLUMNS))
    assert check_paimon(maker.root).findings == ()
    add_paimon_index(maker.root, ["id", "s"])
    report = check_paimon(maker.root, fail_on="info")
    assert (report.findings, report.failed, report.unreadable) == ((), False, ())
    add_paimon_index(maker.root, ["id:fpp=0.3"], rebuild="all")
    assert check_paimon(maker.root).findings == ()


CAUSES: list[tuple[str, dict[str, bytes], str]] = [
    (
        "Parquet's hash",
        {"id": filter_of(hash_bytes(n.to_bytes(8, "little") for n in NUMBERS))},
        "bytes with XXH64, as in Parquet, 8 bytes",
    ),
    *(
        (
            f"{width} bytes, {order}",
            {"id": filter_of(hash_bytes(n.to_bytes(width, order) for n in NUMBERS))},
            words,
        )
        for width, order, words in (
            (4, "little", "as in Parquet, 4 bytes"),
            (8, "big", "8 bytes each, highest"),
            (4, "big", "4 bytes each, highest"),
        )
    ),
    ("text", {"id": filter_of(TEXTS)}, "the values were hashed as their decimal text"),
    (
        "length",
        {"s": filter_of(hash_bytes(b"\x0a\0\0\0" + f"value {n}".encode() for n in NUMBERS))},
        "hashed as bytes after their length",
    ),
    (
        "halves",
        {"s": filter_of((NAMES << np.uint64(32)) | (NAMES >> np.uint64(32)))},
        "the two halves of each hash are swapped",
    ),
]


@each("filters, words", [case[1:] for case in CAUSES])
def test_the_cause_of_a_wrong_hash(
    new_table: NewTable, filters: dict[str, bytes], words: str
) -> None:
    maker = new_table()
    maker.commit(NewFile(COLUMNS, embedded=container_of(**filters)))
    (finding,) = check_paimon(maker.root, select="correctness").findings
    assert finding.rule == "index-wrong-hash"
    assert words in finding.evidence[0].fact
    (column,) = verify_paimon(maker.root).files[0].columns
    assert column.cause is not None


def test_a_data_file_that_cannot_be_read(
    new_table: NewTable, capfd: pytest.CaptureFixture[str]
) -> None:
    maker = new_table()
    maker.commit(
        NewFile(COLUMNS, name="broken.parquet", embedded=container_of(id=filter_of(RIGHT)))
    )
    (maker.root / "bucket-0" / "broken.parquet").write_bytes(b"PAR1")
    assert run(["paimon", "check", str(maker.root)]) == 3
    out, err = capfd.readouterr()
    assert "no findings" in out
    assert err.startswith("sbbf: ")
    assert err.count("\n") == 1
    assert "broken.parquet" in err


def test_formats_and_a_baseline(
    new_table: NewTable, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    maker = make_table(new_table, tmp_path, "index-wrong-hash")
    maker.commit(NewFile(COLUMNS, name="more.parquet", embedded=container_of(id=filter_of(TEXTS))))
    arguments = ["paimon", "check", str(maker.root)]
    assert run([*arguments, "--format", "sarif"]) == 1
    (sarif,) = json.loads(capfd.readouterr().out)["runs"]
    assert [rule["id"] for rule in sarif["tool"]["driver"]["rules"]] == list(DEFECTS)
    assert [(result["ruleId"], result["ruleIndex"]) for result in sarif["results"]] == [
        ("index-wrong-hash", 1)
    ] * 2
    assert run([*arguments, "--report", str(tmp_path / "base.json")]) == 1
    capfd.readouterr()
    assert run([*arguments, "--baseline", str(tmp_path / "base.json")]) == 0
    assert "covers 2 findings" in capfd.readouterr().err
