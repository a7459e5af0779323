"""The manifest of a corpus: every file with its checksum, every question with its answer, and every input for writers.

{"corpus": "sbbf-conformance", "version": 1, "files": [...], "questions": [...], "inputs": [...]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sbbf_tool.display import to_json
from sbbf_tool.errors import UnreadableError

NAME = "sbbf-conformance"
VERSION = 1
"""Version of the corpus. Files, questions and answers of a version never change."""
FILE_NAME = "manifest.json"

MAYBE, ABSENT, CANNOT_SAY = "maybe", "absent", "cannot say"
"""Answers: the value may be stored; it is certainly not stored; the filters must not be used."""

FORMAT, COMPARISON = "format", "comparison"


@dataclass(frozen=True)
class Expectation:
    """A value that is looked up in a column, and the answer of a reader that conforms."""

    file: str
    column: str
    """Name of the leaf column; parts are joined by dots, and a part that contains a dot is in backticks."""
    path: tuple[str, ...]
    """Parts of the name as the schema has them."""
    type: str
    value: str
    plain: str
    """The plain bytes of the value in hexadecimal: what the hash takes."""
    stored: bool
    """Whether the column has the value, or one that equals it."""
    answer: str
    basis: str = FORMAT
    """`format`; or `comparison` if the format leaves the answer open, but a stored value equals this one in SQL."""


@dataclass(frozen=True)
class FileRecord:
    """A file of the corpus."""

    file: str
    format: str
    """`parquet`, or `paimon` for the folder of a table."""
    about: str
    bytes: int
    sha256: str
    keys: str | None = None
    """File with the keys of an encrypted file."""


@dataclass(frozen=True)
class WriterInput:
    """A file without filters, to which a writer adds them."""

    file: str
    column: str
    path: tuple[str, ...]
    type: str
    values: tuple[str, ...]
    """Every value of the column."""
    absent: tuple[str, ...]
    """Plain bytes, in hexadecimal, of values that the column does not have."""
    equal: tuple[str, ...] = ()
    """Plain bytes of values that equal a stored one in SQL, such as the other zero."""


@dataclass(frozen=True)
class CorpusManifest:
    files: tuple[FileRecord, ...]
    questions: tuple[Expectation, ...]
    inputs: tuple[WriterInput, ...]
    version: int = VERSION

    def build(self) -> bytes:
        document = {"corpus": NAME, "version": self.version}
        lists = {name: [asdict(item) for item in getattr(self, name)] for name in ("files", "questions", "inputs")}
        return (to_json({**document, **lists}, indent=1) + "\n").encode()


def parse_manifest(document: Any) -> CorpusManifest:
    """Make a manifest from its JSON document. Raises UnreadableError if it is not one of this version."""
    if not isinstance(document, Mapping) or document.get("corpus") != NAME:
        raise UnreadableError("not the manifest of a conformance corpus")
    if document.get("version") != VERSION:
        raise UnreadableError(f"the corpus has version {document.get('version')!r}; this is the tool of version {VERSION}")
    try:
        return CorpusManifest(
            tuple(_make(FileRecord, item) for item in document["files"]),
            tuple(_make(Expectation, item) for item in document["questions"]),
            tuple(_make(WriterInput, item) for item in document["inputs"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"the manifest lacks a field, or has one of another type ({error})") from error


def _make(cls: type[Any], item: Mapping[str, Any]) -> Any:
    """Make a row from its object, whose lists are of text."""
    fields: dict[str, Any] = {name: tuple(_ensure_texts(value)) if isinstance(value, list) else value for name, value in item.items()}
    for name, value in fields.items():
        if name in ("file", "column", "value", "plain", "answer", "type", "format", "sha256") and not isinstance(value, str):
            raise ValueError(f"{name} is not text")
    return cls(**fields)


def _ensure_texts(values: list[Any]) -> list[str]:
    if any(not isinstance(value, str) for value in values):
        raise ValueError("a list has an item that is not text")
    return values
