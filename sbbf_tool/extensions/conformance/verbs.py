"""`run_conformance`: judge a reader or writer by the corpus of docs/reference/conformance.md."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names, check_time_limit
from sbbf_tool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sbbf_tool.extensions.conformance.reports import ConformanceReport

TIMEOUT = 60.0
"""Seconds that a call of a reader or writer may take."""


def run_conformance(
    folder: str | os.PathLike[str] | None = None,
    *,
    reader: str | None = None,
    writer: str | None = None,
    paimon_reader: str | None = None,
    only: str | Iterable[str] = (),
    exact: bool = False,
    timeout: float = TIMEOUT,
    jobs: int | None = None,
) -> ConformanceReport:
    """Judge a reader, a writer or a reader of Paimon's tables by the corpus in `folder`, or by one that is made for the run.

    reader, paimon_reader   a command with {file}, {column} and {value}, or with {questions}
    writer                  a command with {in} and {out}
    only                    patterns of names of files, such as types/*
    exact                   whether filters that are not used count as errors
    timeout                 seconds that a call may take
    jobs                    calls at the same time; one per core if None

    A command is split into words once, and run without a shell. Raises UsageError unless one command is given.
    """
    from sbbf_tool.extensions.conformance.corpus import Corpus
    from sbbf_tool.extensions.conformance.readers import run_reader
    from sbbf_tool.extensions.conformance.writers import run_writer

    if sum(command is not None for command in (reader, writer, paimon_reader)) != 1:
        raise UsageError("one command is needed", hint="give the command of a reader, of a writer, or of a reader of Paimon's indexes")
    check_time_limit(timeout)
    patterns = as_names(only, "file")
    with _folder_or_new(folder, patterns) as path:
        corpus = Corpus.open(path, patterns)
        if writer is not None:
            return run_writer(corpus, writer, timeout=timeout, exact=exact, jobs=jobs)
        command = paimon_reader if reader is None else reader
        assert command is not None
        return run_reader(corpus, command, paimon=reader is None, timeout=timeout, exact=exact, jobs=jobs)


@contextmanager
def _folder_or_new(folder: str | os.PathLike[str] | None, only: tuple[str, ...]) -> Iterator[str]:
    """Yield the folder of the corpus; without one, make a corpus that is deleted at the end."""
    if folder is not None:
        yield os.fspath(folder)
        return
    from sbbf_tool.extensions.conformance.corpus_writer import make_corpus

    with tempfile.TemporaryDirectory(prefix="sbbf-conformance-") as temporary:
        path = str(Path(temporary) / "corpus")
        make_corpus(path, only=only)
        yield path
