"""A corpus in a folder: its manifest, and the rows of it that a run selects."""

from __future__ import annotations

import fnmatch
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sbbf_tool.errors import MissingError, SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.conformance.manifest import FILE_NAME, CorpusManifest, Expectation, FileRecord, WriterInput, parse_manifest
from sbbf_tool.storage.system_calls import reason_of

_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Corpus:
    """A corpus, of which `patterns` select files; without any, every file is selected."""

    folder: Path
    manifest: CorpusManifest
    patterns: tuple[str, ...] = ()

    @classmethod
    def open(cls, folder: str, patterns: Sequence[str] = ()) -> Corpus:
        """Read the manifest. Raises UnreadableError, and UsageError if the patterns match no file."""
        path = os.path.join(folder, FILE_NAME)  # not a Path: it would make another text of a URL, whose password is not found
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
        for pattern in corpus.patterns:
            names = (*corpus.files, *(row.file for row in corpus.manifest.inputs))
            if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
                raise UsageError(f"no file of the corpus matches {pattern!r}", hint="names are such as types/int32.parquet")
        return corpus

    @cached_property
    def files(self) -> dict[str, FileRecord]:
        return {file.file: file for file in self.manifest.files}

    def questions(self, file_format: str) -> list[Expectation]:
        """Return the selected questions about files of this format. Raises UnreadableError for one about a file that is not listed."""
        missing = next((question.file for question in self.manifest.questions if question.file not in self.files), None)
        if missing is not None:
            raise UnreadableError(f"the manifest has a question about {missing!r}, which it does not list", file=str(self.folder))
        questions = self.manifest.questions
        return [each for each in questions if self._selects(each.file) and self.files[each.file].format == file_format]

    def inputs(self) -> list[WriterInput]:
        return [row for row in self.manifest.inputs if self._selects(row.file)]

    def path_of(self, name: str) -> str:
        """Return the path of a file. Raises UnreadableError for a name that leads out of the folder."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise UnreadableError(f"the manifest names {name!r}, which is not in the folder", file=str(self.folder))
        return str(path)

    def _selects(self, name: str) -> bool:
        return not self.patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)
