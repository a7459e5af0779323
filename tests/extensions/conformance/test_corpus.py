"""The corpus: the same bytes each time, values that another reader reads, and the answers that `sbbf` gives."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import RefusedError, SbbfError, UnreadableError, UsageError, make_corpus, probe, probe_paimon
from sbbf_tool.extensions.conformance.corpus import Corpus
from sbbf_tool.extensions.conformance.kinds import BY_NAME, KINDS
from sbbf_tool.extensions.conformance.readers import Answer, judge
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import PHYSICAL_TYPES
from sbbf_tool.parquet.idl.ttypes import LogicalType
from sbbf_tool.parquet.values import read_chunk
from support.tables import each

SHA256_OF_VERSION_1 = "9ae0e22607456710922a832bb2cf696c37cc1b42b7cdea13265f37365c3b28ab"
"""Of the manifest, which has the checksums of all files. If it changes, so does the version of the corpus, once that is released."""


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def test_the_bytes_of_a_version_do_not_change(corpus_folder: Path) -> None:
    assert hashlib.sha256((corpus_folder / "manifest.json").read_bytes()).hexdigest() == SHA256_OF_VERSION_1


def test_the_manifest_has_the_checksum_of_each_file(corpus: Corpus) -> None:
    for file in corpus.manifest.files:
        path = corpus.folder / file.file
        paths = [path] if path.is_file() else list(files_below(path))
        data = b"".join(each.read_bytes() for each in paths)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256), file.file


def test_every_type_of_the_format_has_a_file() -> None:
    physical = {kind.physical for kind in KINDS}
    assert physical == {*PHYSICAL_TYPES} - {"BOOLEAN"}
    logical = {name for kind in KINDS if kind.logical is not None for name, member in vars(kind.logical).items() if member is not None}
    # LIST, MAP and VARIANT are groups; a column of UNKNOWN has nulls alone; the format has not released FILE.
    assert logical == {*vars(LogicalType())} - {"LIST", "MAP", "VARIANT", "UNKNOWN", "FILE"}


@each("name", sorted(BY_NAME))
def test_another_reader_reads_the_values(corpus: Corpus, name: str) -> None:
    """Pages are decoded by pyarrow."""
    kind = BY_NAME[name]
    for folder in ("types", "inputs"):
        with ParquetFile.open(corpus.folder / folder / f"{name}.parquet") as file:
            (column,) = file.footer.columns
            for row_group in (0, 1):
                runs = read_chunk(file.source.open_arrow, file.footer, row_group, column)
                assert [run[at] for run in runs for at in range(len(run))] == kind.stored(row_group)


def test_another_reader_reads_nested_values(corpus: Corpus) -> None:
    def read(name: str) -> pa.Table:
        return pq.read_table(corpus.folder / "nested" / f"{name}.parquet")

    assert read("struct")["point"].to_pylist()[:3] == [None, {"x": None}, {"x": -20_000_000}]
    assert read("list")["words"].to_pylist()[:4] == [None, [], [None], ["text 0", "text 4", "text 8"]]
    assert [len(entries or ()) for entries in read("map")["ages"].to_pylist()[:4]] == [0, 0, 4, 4]
    assert read("dotted-name").column_names == ["a.b", "a"]


def test_another_reader_reads_encrypted_files(corpus: Corpus) -> None:
    encryption = pytest.importorskip("pyarrow.parquet.encryption")
    for name in ("footer-key", "ctr", "aad-prefix", "signed-footer"):
        path = corpus.folder / "encrypted" / f"{name}.parquet"
        keys = encryption.create_decryption_properties(b"0123456789012345")
        values = pq.read_table(path, decryption_properties=keys)["v"].to_pylist()
        assert values[:3] == ["text 0", None, "text 4"], name


def ask_sbbf(corpus: Corpus, file: str, column: str, value: str) -> Answer:
    keys = json.loads((corpus.folder / "encrypted" / "keys.json").read_text())
    try:
        report = probe(corpus.path_of(file), column, [value], keys=keys)
    except UnreadableError:
        return Answer("cannot say")
    (answer,) = report.values
    if answer.is_absent:
        return Answer("absent")
    return Answer("cannot say" if {each.answer for each in answer.row_groups} == {"cannot say"} else "maybe")


CAUTIOUS = {
    "nested/variant.parquet": "other parts of the VARIANT may hold the value",
    "types/int96.parquet": "readers may show fewer digits than are stored",
    **dict.fromkeys([f"lengths/{name}.parquet" for name in ("bitset-only", "long", "short")], "header and footer state other lengths"),
}
"""Files whose filters a reader may use by the format, and why sbbf does not."""


@pytest.mark.slow
def test_probe_answers_as_the_format_requires(corpus: Corpus) -> None:
    verdicts: Counter[str] = Counter()
    for question in corpus.questions("parquet"):
        answer = ask_sbbf(corpus, question.file, question.column, question.value)
        if question.file in CAUTIOUS and answer == Answer("cannot say"):
            continue
        judgement = judge(question, answer)
        assert judgement.verdict == "correct", judgement
        verdicts[question.answer] += 1
    assert verdicts["absent"] > 200
    assert verdicts["maybe"] > 400
    assert verdicts["cannot say"] > 200


@pytest.mark.slow
def test_paimon_probe_answers_as_paimon_does(corpus: Corpus) -> None:
    questions = corpus.questions("paimon")
    for question in questions:
        report = probe_paimon(corpus.path_of(question.file), question.column, [question.value])
        judgement = judge(question, Answer("maybe" if report.remaining else "absent"))
        assert judgement.verdict == "correct", judgement
    assert len({question.file for question in questions}) == 20


def test_each_unusable_filter_excludes_what_is_stored(corpus: Corpus) -> None:
    """A reader that takes its bytes for a filter is found. What it would read there are zeros, other bytes or nothing."""
    file_names = {question.file for question in corpus.questions("parquet") if question.answer == "cannot say" and question.stored}
    folders = Counter(name.split("/")[0] for name in file_names)
    assert folders.keys() == {"booleans", "encrypted", "unusable", "drafts", "damaged"}
    assert folders["drafts"] == 7
    assert folders["unusable"] == 6
    assert folders["damaged"] == 11


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("")
    with pytest.raises(RefusedError, match="the folder has files, but no corpus; name a new folder"):
        make_corpus(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_part_of_the_corpus(tmp_path: Path) -> None:
    report = make_corpus(str(tmp_path / "part"), only=["types/int8.parquet", "inputs/uuid*"])
    assert (report.files, report.inputs) == (2, 1)
    again = make_corpus(str(tmp_path / "part"), only=["types/int8.parquet", "inputs/uuid*"])
    assert again == report
    with pytest.raises(UsageError, match=r"no file of the corpus matches 'nothing/\*'"):
        make_corpus(str(tmp_path / "part"), only=["types/int8.parquet", "nothing/*"])
    assert len(Corpus.open(str(tmp_path / "part")).manifest.files) == 1


@each(
    "change, message",
    [
        ({"corpus": "another"}, "not the manifest of a conformance corpus"),
        ({"version": 2}, "the corpus has version 2; this is the tool of version 1"),
        ({"files": [{}]}, "the manifest lacks a field"),
        ({"files": 7}, "the manifest lacks a field"),
        ({"questions": [{"file": 1}]}, "file is not text"),
    ],
)
def test_other_manifests_are_refused(corpus: Corpus, tmp_path: Path, change: dict[str, object], message: str) -> None:
    document = json.loads((corpus.folder / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(document | change))
    with pytest.raises(SbbfError, match=message):
        Corpus.open(str(tmp_path))


def test_a_manifest_cannot_name_files_outside_its_folder(corpus: Corpus) -> None:
    with pytest.raises(UnreadableError, match="which is not in the folder"):
        corpus.path_of("../../etc/passwd")
