"""Write the corpus to a folder, the same bytes each time."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

from sbbf_tool.arguments import as_names
from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, UsageError, WriteError
from sbbf_tool.extension import load, named
from sbbf_tool.extensions.conformance import (
    encrypted_files,
    nested_files,
    sound_files,
    unusable_files,
)
from sbbf_tool.extensions.conformance.corpus import (
    FILE_NAME,
    CorpusManifest,
    Expectation,
    FileRecord,
    WriterInput,
    ensure_matches,
    selects,
)
from sbbf_tool.extensions.conformance.corpus_file import ABSENT_VALUES, CorpusFile, FileMaker
from sbbf_tool.extensions.conformance.kinds import BOOLEAN, BY_NAME, KINDS
from sbbf_tool.extensions.conformance.reports import MadeCorpus
from sbbf_tool.frozen import replace
from sbbf_tool.storage.system_calls import reason_of

_BLOCK = 1 << 20
_ZEROS = bytes(_BLOCK)

_MAKERS = (
    sound_files.make_types,
    nested_files.make_nested,
    sound_files.make_sizes,
    sound_files.make_headers,
    sound_files.make_places,
    sound_files.make_contents,
    sound_files.make_floats,
    sound_files.make_booleans,
    encrypted_files.make_encrypted,
    unusable_files.make_headers,
    unusable_files.make_drafts,
    unusable_files.make_lengths,
    unusable_files.make_sizes,
    unusable_files.make_places,
)


def make_corpus(folder: str | os.PathLike[str], *, only: str | Iterable[str] = ()) -> MadeCorpus:
    """Write the conformance corpus to a folder that is empty or missing, or has a corpus: the same
    bytes on every machine.

    `only` has patterns of names of files, such as types/*. The package cryptography is needed.
    Raises RefusedError, UsageError and WriteError.
    """
    folder = os.fspath(folder)
    patterns = as_names(only, "file")
    if "://" in folder:
        raise UsageError("a corpus is written to a folder of this machine", file=folder)
    root = Path(folder)
    if root.exists() and not root.is_dir():
        raise UsageError("a corpus is written to a folder, and this is a file", file=folder)
    try:
        if root.is_dir() and any(root.iterdir()) and not _has_corpus(root):
            raise RefusedError(
                "the folder has files, but no corpus", file=folder, hint="name a new folder"
            )
        root.mkdir(parents=True, exist_ok=True)
        return _write(root, patterns)
    except OSError as error:
        raise WriteError(reason_of(error), file=str(error.filename or folder)) from error


def _has_corpus(root: Path) -> bool:
    """Return whether the folder has a corpus, or part of one whose writer was interrupted: the file
    of keys is the first."""
    if (root / FILE_NAME).is_file():
        return True
    path = root / encrypted_files.KEYS_FILE
    return path.is_file() and path.read_bytes() == encrypted_files.build_keys()


def _write(root: Path, patterns: Sequence[str]) -> MadeCorpus:
    files = []
    questions: list[Expectation] = []
    inputs = []
    size = 0
    if patterns:
        names = [file.name for file in _make_files(patterns)]
        names += (row.file for row, _ in _make_inputs())
        ensure_matches(patterns, names)
    _write_file(root / encrypted_files.KEYS_FILE, encrypted_files.build_keys())
    (root / FILE_NAME).unlink(missing_ok=True)
    for file in _make_files(patterns):
        if selects(patterns, file.name):
            record = _write_corpus_file(root, file)
            files.append(record)
            questions += file.questions
            size += record.bytes
    for row, data in _make_inputs():
        if selects(patterns, row.file):
            _write_file(root / PurePosixPath(row.file), data)
            inputs.append(row)
            size += len(data)
    manifest = CorpusManifest(tuple(files), tuple(questions), tuple(inputs))
    built_manifest = manifest.build()
    # The last, so that a folder with a manifest is complete.
    _write_file(root / FILE_NAME, built_manifest)
    return MadeCorpus(
        folder=redact(str(root)),
        corpus_version=manifest.version,
        files=len(files) + len(inputs),
        questions=len(questions),
        inputs=len(inputs),
        bytes=size,
        sha256=hashlib.sha256(built_manifest).hexdigest(),
    )


def _make_files(patterns: Sequence[str]) -> Iterator[CorpusFile]:
    for maker in (*_MAKERS, *map(load, named("corpus").values())):
        yield from maker()
    if selects(patterns, sound_files.LARGE):
        yield sound_files.make_large()


def _write_corpus_file(root: Path, file: CorpusFile) -> FileRecord:
    """Write a file, or the files of a table; describe a table by the checksum of all its files in
    the order of their names."""
    contents = file.extra or {file.name: file.data}
    digest = hashlib.sha256()
    size = 0
    for name in sorted(contents):
        data = contents[name]
        _write_file(root / PurePosixPath(name), data)
        digest.update(data)
        size += len(data)
    return FileRecord(file.name, file.format, file.about, size, digest.hexdigest(), file.keys)


def _make_inputs() -> Iterator[tuple[WriterInput, bytes]]:
    for kind in KINDS:
        yield _make_input(kind.name, FileMaker(kind, filters={}))
    for name, layout in (("float", "<f"), ("double", "<d")):
        zero = struct.pack(layout, 0.0)
        other_zero = struct.pack(layout, -0.0)
        values = [*BY_NAME[name].stored(0)[:4], zero]
        maker = FileMaker(BY_NAME[name], values=[values], filters={})
        yield _make_input(f"{name}-zero", maker, equal=(other_zero.hex(),))
    maker = FileMaker(BOOLEAN, values=[[b"\1", b"\0", b"\1"]], filters={})
    row, data = _make_input("boolean", maker)
    yield replace(row, values=("true", "false", "true"), absent=()), data


def _make_input(
    name: str, maker: FileMaker, equal: tuple[str, ...] = ()
) -> tuple[WriterInput, bytes]:
    kind = maker.kind
    column = kind.column
    row = WriterInput(
        file=f"inputs/{name}.parquet",
        column=column.name,
        path=column.path,
        type=column.type_name,
        values=tuple(map(kind.text, chain.from_iterable(maker.stored()))),
        absent=tuple(plain.hex() for plain in kind.absent(2 * ABSENT_VALUES)),
        equal=equal,
    )
    return row, maker.build()


def _write_file(path: Path, data: bytes) -> None:
    """Write a file; long runs of zeros become holes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        for start in range(0, len(data), _BLOCK):
            block = data[start : start + _BLOCK]
            if block == _ZEROS:
                file.seek(_BLOCK, 1)
            else:
                file.write(block)
        file.truncate(len(data))
