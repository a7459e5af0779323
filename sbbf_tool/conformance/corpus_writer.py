"""Write the corpus to a folder, the same bytes each time."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from sbbf_tool.conformance import encrypted_files, nested_files, paimon_files, sound_files, unusable_files
from sbbf_tool.conformance.corpus_file import ABSENT_VALUES, CorpusFile, FileMaker
from sbbf_tool.conformance.kinds import BOOLEAN, BY_NAME, KINDS
from sbbf_tool.conformance.manifest import FILE_NAME, Manifest, ManifestFile, Question, WriterInput
from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.reports.conformance import MadeCorpus
from sbbf_tool.storage.system_errors import reason_of

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
    paimon_files.make_paimon,
)


def write_corpus(folder: str) -> MadeCorpus:
    """Write the corpus to `folder`, which must be empty or missing. Every file has the same bytes on every machine.

    Raises RefusedError for a folder with files, and without the package cryptography.
    """
    root = Path(folder)
    try:
        if root.is_dir() and any(root.iterdir()):
            raise RefusedError("the folder is not empty", file=folder, hint="name a new folder")
        root.mkdir(parents=True, exist_ok=True)
        return _write(root)
    except OSError as error:
        raise WriteError(reason_of(error), file=str(error.filename or folder)) from error


def _write(root: Path) -> MadeCorpus:
    files: list[ManifestFile] = []
    questions: list[Question] = []
    inputs: list[WriterInput] = []
    size = 0
    _write_file(root / encrypted_files.KEYS_FILE, encrypted_files.build_keys())
    for maker in _MAKERS:
        for file in maker():
            contents = dict(file.extra) if file.extra else {file.name: file.data}
            for name, data in contents.items():
                _write_file(root / PurePosixPath(name), data)
            files.append(_describe(file, contents))
            questions += file.questions
            size += files[-1].bytes
    for given, data in _make_inputs():
        _write_file(root / PurePosixPath(given.file), data)
        inputs.append(given)
        size += len(data)
    manifest = Manifest(tuple(files), tuple(questions), tuple(inputs))
    built_manifest = manifest.build()
    _write_file(root / FILE_NAME, built_manifest)  # the last, so that a folder with a manifest is complete
    return MadeCorpus(
        folder=str(root),
        corpus_version=manifest.version,
        files=len(files) + len(inputs),
        questions=len(questions),
        inputs=len(inputs),
        bytes=size,
        sha256=hashlib.sha256(built_manifest).hexdigest(),
    )


def _describe(file: CorpusFile, contents: Mapping[str, bytes]) -> ManifestFile:
    """Describe a file, or a folder of files by the checksum of all in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(contents[name])
    size = sum(len(data) for data in contents.values())
    return ManifestFile(file.name, file.format, file.about, size, digest.hexdigest(), file.keys)


def _make_inputs() -> Iterator[tuple[WriterInput, bytes]]:
    for kind in KINDS:
        maker = FileMaker(kind, filters={})
        column = kind.column
        values = tuple(kind.text(plain) for stored in maker.stored() for plain in stored)
        absent = tuple(plain.hex() for plain in kind.absent(2 * ABSENT_VALUES))
        yield WriterInput(f"inputs/{kind.name}.parquet", column.name, column.path, column.type_name, values, absent), maker.build()
    for name, layout in (("float", "<f"), ("double", "<d")):
        kind = BY_NAME[name]
        more = kind.stored(0)[:4]
        data = FileMaker(kind, values=[[*more, struct.pack(layout, 0.0)]], filters={}).build()
        values = (*(kind.text(plain) for plain in more), "0.0")
        absent = tuple(plain.hex() for plain in kind.absent(2 * ABSENT_VALUES))
        column, equal = kind.column, (struct.pack(layout, -0.0).hex(),)
        yield WriterInput(f"inputs/{name}-zero.parquet", column.name, column.path, column.type_name, values, absent, equal), data
    column = BOOLEAN.column
    data = FileMaker(BOOLEAN, values=[[b"\1", b"\0", b"\1"]], filters={}).build()
    values = ("true", "false", "true")
    yield WriterInput("inputs/boolean.parquet", column.name, column.path, column.type_name, values, ()), data


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
