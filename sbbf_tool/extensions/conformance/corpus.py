"""A corpus in a folder: its manifest, with every file, question and input for writers, and the rows
of it that a run selects."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from sbbf_tool.display import to_json
from sbbf_tool.errors import MissingError, SbbfError, UnreadableError, UsageError
from sbbf_tool.frozen import Frozen
from sbbf_tool.reports.plain import from_plain, to_plain
from sbbf_tool.storage.system_calls import reason_of

NAME = "sbbf-conformance"
VERSION = 1
"""Version of the corpus. Files, questions and answers of a version never change."""
FILE_NAME = "manifest.json"

# Answers: the value may be stored; it is certainly not stored; the filters must not be used.
MAYBE = "maybe"
ABSENT = "absent"
CANNOT_SAY = "cannot say"

# What an answer follows from.
FORMAT = "format"
COMPARISON = "comparison"


class Expectation(Frozen):
    """A value that is looked up in a column, and the answer of a reader that conforms."""

    file: str
    column: str
    """Name of the leaf column; parts are joined by dots, and a part that contains a dot is in
    backticks."""
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
    """`format`; or `comparison` if the format leaves the answer open, but a stored value equals
    this one in SQL."""


class FileRecord(Frozen):
    """A file of the corpus."""

    file: str
    format: str
    """`parquet`, or `paimon` for the folder of a table."""
    about: str
    bytes: int
    sha256: str
    keys: str | None = None
    """File with the keys of an encrypted file."""


class WriterInput(Frozen):
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


class CorpusManifest(Frozen):
    files: tuple[FileRecord, ...]
    questions: tuple[Expectation, ...]
    inputs: tuple[WriterInput, ...]
    version: int = VERSION

    def build(self) -> bytes:
        document: dict[str, Any] = {"corpus": NAME, "version": self.version}
        for name in ("files", "questions", "inputs"):
            document[name] = to_plain(getattr(self, name), {str: str})
        return f"{to_json(document, indent=1)}\n".encode()


def parse_manifest(document: Any) -> CorpusManifest:
    """Make a manifest from its JSON document. Raises UnreadableError if it is not one of this
    version."""
    if not isinstance(document, Mapping) or document.get("corpus") != NAME:
        raise UnreadableError("not the manifest of a conformance corpus")
    if document.get("version") != VERSION:
        raise UnreadableError(
            f"the corpus has version {document.get('version')!r}; this is the tool of version "
            f"{VERSION}"
        )
    try:
        return from_plain(CorpusManifest, document)
    except ValueError as error:
        raise UnreadableError(
            f"the manifest lacks a field, or has one of another type ({error})"
        ) from error


_MOST_BYTES = 64 << 20


class Corpus(Frozen):
    """A corpus, of which `patterns` select files; without any, every file is selected."""

    folder: Path
    manifest: CorpusManifest
    patterns: tuple[str, ...] = ()

    @classmethod
    def open(cls, folder: str, patterns: Sequence[str] = ()) -> Corpus:
        """Read the manifest. Raises UnreadableError, and UsageError if the patterns match no
        file."""
        # Not a Path: it would make another text of a URL, whose password is not found.
        path = os.path.join(folder, FILE_NAME)
        try:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise UnreadableError(f"a manifest has at most {_MOST_BYTES:,} bytes")
            corpus = cls(Path(folder).resolve(), parse_manifest(json.loads(data)), tuple(patterns))
        except FileNotFoundError:
            raise MissingError("there is no corpus", file=path) from None
        except OSError as error:
            raise UnreadableError(reason_of(error), file=path) from error
        except (ValueError, RecursionError) as error:
            raise UnreadableError("not a JSON document", file=path) from error
        except SbbfError as error:
            raise error.at(file=path) from error.__cause__
        inputs = [row.file for row in corpus.manifest.inputs]
        ensure_matches(corpus.patterns, [*corpus.files, *inputs])
        return corpus

    @cached_property
    def files(self) -> dict[str, FileRecord]:
        return {file.file: file for file in self.manifest.files}

    def questions(self, file_format: str) -> list[Expectation]:
        """Return the selected questions about files of this format. Raises UnreadableError for one
        about a file that is not listed."""
        selected = []
        for question in self.manifest.questions:
            file = self.files.get(question.file)
            if file is None:
                raise UnreadableError(
                    f"the manifest has a question about {question.file!r}, which it does not list",
                    file=str(self.folder),
                )
            if file.format == file_format and selects(self.patterns, file.file):
                selected.append(question)
        return selected

    def inputs(self) -> list[WriterInput]:
        return [row for row in self.manifest.inputs if selects(self.patterns, row.file)]

    def path_of(self, name: str) -> str:
        """Return the path of a file. Raises UnreadableError for a name that leads out of the
        folder."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise UnreadableError(
                f"the manifest names {name!r}, which is not in the folder", file=str(self.folder)
            )
        return str(path)


def selects(patterns: Sequence[str], name: str) -> bool:
    """Return whether patterns select a file; without any, every file is selected."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def ensure_matches(patterns: Sequence[str], names: Collection[str]) -> None:
    """Raise UsageError if a pattern matches no file."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                f"no file of the corpus matches {pattern!r}",
                hint="names are such as types/int32.parquet",
            )
