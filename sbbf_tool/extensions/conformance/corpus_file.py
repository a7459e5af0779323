"""One file of the corpus and what is known of it: its bytes, the questions about it, and the answer
that the format requires for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from sbbf_tool.bloom import spec
from sbbf_tool.extensions.conformance.corpus import ABSENT, CANNOT_SAY, MAYBE, Expectation
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BY_NAME, Kind, cells_of
from sbbf_tool.extensions.conformance.parquet_writer import (
    AT_END,
    CorpusTable,
    Encrypter,
    StoredBytes,
    build_bitset,
    build_filter,
    build_parquet,
)
from sbbf_tool.frozen import Frozen, field

ABSENT_VALUES = 3


class CorpusFile(Frozen):
    """A file of the corpus before it is written."""

    name: str
    """Path below the folder of the corpus, with /."""
    about: str
    """What the file shows, as a sentence."""
    data: bytes
    questions: tuple[Expectation, ...] = ()
    keys: str | None = None
    """Path of the keys of an encrypted file."""
    extra: Mapping[str, bytes] = field(factory=dict)
    """Other files that belong to it, by path: those of a table."""
    format: str = "parquet"


class FileMaker(Frozen):
    """A file of one column of a kind in two row groups: what it differs in from a sound file with a
    filter in each."""

    kind: Kind
    num_bytes: int = BITSET_BYTES
    values: Sequence[Sequence[bytes]] | None = None
    filters: Mapping[int, StoredBytes] | None = None
    """By row group; None means sound ones."""
    place: str = AT_END
    encrypter: Encrypter | None = None

    def stored(self) -> Sequence[Sequence[bytes]]:
        """Return the values of each row group."""
        if self.values is None:
            return [self.kind.stored(0), self.kind.stored(1)]
        return self.values

    def bitsets(self) -> dict[int, bytes]:
        return {at: build_bitset(values, self.num_bytes) for at, values in enumerate(self.stored())}

    def sound_filters(self) -> dict[int, StoredBytes]:
        filters = {}
        for number, values in enumerate(self.stored()):
            filters[number] = StoredBytes(build_filter(values, self.num_bytes))
        return filters

    def build(self) -> bytes:
        filters = self.sound_filters() if self.filters is None else self.filters
        row_groups = [[cells_of(values)] for values in self.stored()]
        by_chunk = {(number, 0): stored for number, stored in filters.items()}
        table = CorpusTable(self.kind.schema, row_groups, by_chunk, self.place, self.encrypter)
        return build_parquet(table)

    def questions(self, name: str, answer: str | None = None) -> tuple[Expectation, ...]:
        """Return questions for some stored and some absent values. `answer` is that for all of
        them; None means what the filters answer."""
        stored = list(dict.fromkeys(chain.from_iterable(self.stored())))
        regular = [plain for plain in stored if plain not in self.kind.extremes]
        extremes = [plain for plain in stored if plain in self.kind.extremes]
        absent = [plain for plain in self.kind.absent(255) if plain not in stored][:ABSENT_VALUES]
        bitsets = self.bitsets().values()
        questions = []
        for plain in (*extremes, *regular[:1], *regular[-1:], *absent):
            is_stored = plain in stored
            due = answer or answer_of(bitsets, plain)
            questions.append(question_of(self.kind, name, plain, stored=is_stored, answer=due))
        return tuple(questions)


def answer_of(bitsets: Iterable[bytes], plain: bytes) -> str:
    """Return what filters of all row groups answer for a value: absent if each excludes it."""
    h = spec.xxh64(plain)
    for bitset in bitsets:
        if spec.filter_check(bitset, len(bitset) // spec.BLOCK_BYTES, h):
            return MAYBE
    return ABSENT


def question_of(kind: Kind, file: str, plain: bytes, *, stored: bool, answer: str) -> Expectation:
    column = kind.column
    return Expectation(
        file=file,
        column=column.name,
        path=column.path,
        type=column.type_name,
        value=kind.text(plain),
        plain=plain.hex(),
        stored=stored,
        answer=answer,
    )


def make_file(
    name: str, about: str, maker: FileMaker, answer: str | None = None, keys: str | None = None
) -> CorpusFile:
    """Make a file and its questions."""
    return CorpusFile(name, about, maker.build(), maker.questions(name, answer), keys)


def make_unusable(name: str, about: str, filters: Mapping[int, StoredBytes]) -> CorpusFile:
    """Make a file whose filters no reader may use. A reader that uses them answers that stored
    values are absent."""
    return make_file(name, about, FileMaker(BY_NAME["int64"], filters=filters), CANNOT_SAY)
