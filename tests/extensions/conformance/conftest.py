"""The corpus, made once per session."""

from __future__ import annotations

from pathlib import Path

import pytest

from sbbf_tool.extensions.conformance import make_corpus
from sbbf_tool.extensions.conformance.corpus import Corpus


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("cryptography", reason="the Python package cryptography is not installed")
    folder = tmp_path_factory.mktemp("conformance") / "corpus"
    make_corpus(str(folder))
    return folder


@pytest.fixture
def corpus(corpus_folder: Path) -> Corpus:
    return Corpus.open(str(corpus_folder))
