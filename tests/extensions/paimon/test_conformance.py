"""Tables and containers that Paimon's Java wrote, and its own answers: hashes, sizes, places, what
remains and what is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from extensions.paimon.paimon_answers import Answers, bloom_answers, format_value
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND, parse_bloom64
from sbbf_tool.extensions.paimon.bloom64_spec import compute_sizing
from sbbf_tool.extensions.paimon.fast_hash import key_of
from sbbf_tool.extensions.paimon.index_container import build_container, parse_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest, parse_bloom_columns
from sbbf_tool.extensions.paimon.table import PaimonTable, find_index, open_table
from sbbf_tool.extensions.paimon.table_schema import parse_type_text
from sbbf_tool.extensions.paimon.verbs.build import build
from sbbf_tool.extensions.paimon.verbs.probe import parse_literal
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.storage.folders import LocalFolders


def tables(real: Path, answers: Answers) -> Iterator[tuple[str, Answers, PaimonTable]]:
    assert answers["tables"]
    for name, case in answers["tables"].items():
        yield name, case, open_table(LocalFolders(), str(real / case["location"]))


def test_sizes_and_hashes_are_paimons(answers: Answers) -> None:
    assert all(answers[part] for part in ("sizing", "hashes", "unsupported_types"))
    for case in answers["sizing"]:
        if "error" in case:
            with pytest.raises(UsageError):
                compute_sizing(case["items"], case["fpp"])
        else:
            assert compute_sizing(case["items"], case["fpp"]) == (
                case["num_bits"],
                case["num_hash_functions"],
            )
    for text in answers["unsupported_types"]:
        assert key_of(parse_type_text(text)) is None
    for case in answers["hashes"]:
        data_type = parse_type_text(case["type"])
        if "utf8_hex" in case:
            text = bytes.fromhex(case["utf8_hex"]).decode()
        elif "value" in case:
            text = format_value(case["value"], data_type)
        else:
            text = format_value(
                {key: case[key] for key in ("bits", "millis", "nano_of_millis") if key in case},
                data_type,
            )
        assert f"{parse_literal(text, data_type).hash64:016x}" == case["hash64"]
        if "hash64_ltz" in case:
            zoned = parse_type_text(f"{data_type} WITH LOCAL TIME ZONE")
            assert f"{parse_literal(text + 'Z', zoned).hash64:016x}" == case["hash64_ltz"]


def test_containers_are_paimons_byte_for_byte(real: Path, answers: Answers) -> None:
    paths = [*real.rglob("*.index")]
    assert paths
    embedded = [
        file["embedded_index_hex"] for case in answers["tables"].values() for file in case["files"]
    ]
    for data in [
        *(path.read_bytes() for path in paths),
        *(bytes.fromhex(each) for each in embedded if each),
    ]:
        assert build_container(parse_container(data).bodies) == data


def test_indexes_are_built_from_the_data_as_paimon_builds_them(
    real: Path, answers: Answers
) -> None:
    compared = 0
    for _, _, table in tables(real, answers):
        for live in table.live_files:
            index = find_index(table.files, live)
            if index.container is None:
                continue
            options = parse_bloom_columns(table.schema_of(live.file).options) | parse_bloom_columns(
                table.schema.options
            )
            for column, kinds in index.container.indexes.items():
                if KIND not in kinds or column not in options:
                    continue
                request = options[column]
                rebuilt = build(
                    table.files, live.path, [IndexRequest(column, request.items, request.fpp)]
                ).container
                body = index.container.body_of(kinds[KIND])
                assert rebuilt == build_container({column: {KIND: body}})
                compared += 1
    assert compared > 0


def test_indexes_lose_nothing(real: Path, answers: Answers) -> None:
    for _, case, table in tables(real, answers):
        report = verify_paimon(table.path)
        assert not report.has_false_negatives
        assert not report.problems
        nulls = {
            (file["file"], column): answer["nulls"] for file, column, answer in bloom_answers(case)
        }
        assert {
            (file.data_file, each.column): each.nulls
            for file in report.files
            for each in file.columns
        } == nulls


def test_containers_of_unusual_kinds(real: Path, answers: Answers) -> None:
    assert answers["containers"]
    for name, case in answers["containers"].items():
        data = (real / "containers" / f"{name}.index").read_bytes()
        for end in range(len(data)):
            with pytest.raises(UnreadableError):
                parse_container(data[:end])
        container = parse_container(data)
        assert len(container.data) == case["size"]
        actual = {
            column: {
                kind: {"start": entry.start, "length": entry.length}
                for kind, entry in kinds.items()
            }
            for column, kinds in container.indexes.items()
        }
        assert actual == case["header"]
        for column, remain in case.get("java_remain_for_bigint_0_to_99", {}).items():
            bloom = parse_bloom64(container.body_of(container.indexes[column][KIND]))
            hashes = np.array(
                [parse_literal(str(each), parse_type_text("BIGINT")).hash64 for each in range(100)],
                np.uint64,
            )
            assert (
                "".join(str(int(each)) for each in bloom.contains(hashes, bloom.paimon_probes))
                == remain
            )
