"""Questions that show which bounds an engine compares: of each family of columns, files whose
bounds exclude a value that they hold.

An engine that returns no row for that value trusts these bounds. Nothing else in the files prunes.
`python tests/engine_matrix/bounds.py ENGINE` prints the families for the table of engines.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from engine_matrix.outcomes import put_questions
from engine_matrix.questions import KINDS, NUMBER, STORED, Question, format_value, order_of_value
from sbbf_tool.extensions.conformance.kinds import BOOLEAN, Kind
from sbbf_tool.extensions.conformance.parquet_writer import (
    REQUIRED,
    Cell,
    CorpusTable,
    build_parquet,
    build_root,
)
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.statistics import (
    NEWER,
    NEWER_UNORDERED,
    OLDER,
    OLDER_CROSSED,
    OLDER_EQUAL,
    OLDER_ORDERED,
    OLDER_REUSED,
)
from sbbf_tool.query_engines.terms import EQUAL
from sbbf_tool.query_engines.verdicts import find_family
from support.corpus_edits import edit_footer_bytes

UNBOUNDED = "none"
"""The file without bounds: an engine that does not find the value in it shows nothing."""
_OLDER_WRITER = "parquet-mr version 1.8.2 (build c6522788629e590a53eb79874b95f6c3ff11f16c)"
_NEWER_WRITER = "parquet-mr version 1.12.3 (build f8dced182c4c1fbdec6ccb3185537b5a01e6ed6b)"
"""Writers of either fields whose bounds readers trust, those of bytes too."""
_DOUBTFUL_WRITER = "parquet-mr version 1.6.0"
_ROWS = 24


class _Form(NamedTuple):
    """How a footer states bounds; `low` and `high` are positions among the sorted values, of which
    the queried one is the eighth from the end."""

    writer: str
    has_orders: bool
    low: int
    high: int


FORMS = {
    NEWER: _Form(writer=_NEWER_WRITER, has_orders=True, low=-4, high=-1),
    NEWER_UNORDERED: _Form(writer=_NEWER_WRITER, has_orders=False, low=-4, high=-1),
    OLDER: _Form(writer=_OLDER_WRITER, has_orders=False, low=-4, high=-1),
    OLDER_ORDERED: _Form(writer=_OLDER_WRITER, has_orders=True, low=-4, high=-1),
    OLDER_EQUAL: _Form(writer=_OLDER_WRITER, has_orders=False, low=-1, high=-1),
    OLDER_REUSED: _Form(writer=_DOUBTFUL_WRITER, has_orders=False, low=-1, high=-1),
    OLDER_CROSSED: _Form(writer=_OLDER_WRITER, has_orders=False, low=-1, high=-4),
}
_QUERIED = -8


def make_bounds_questions(folder: Path) -> list[Question]:
    """Write the files into an existing folder, and return the questions about them; `filters` of a
    question is the form of its bounds."""
    return [question for kind in KINDS for question in _make_questions(kind, folder)]


def _make_questions(kind: Kind, folder: Path) -> Iterator[Question]:
    if kind is BOOLEAN:
        values = [kind.value(at % 2) for at in range(_ROWS)]
        ordered = [kind.value(0)] * -_QUERIED + [kind.value(1)] * -(_QUERIED + 1)
    else:
        values = [kind.value(4 * at) for at in range(_ROWS)]
        ordered = sorted(values, key=partial(order_of_value, kind))
    queried = ordered[_QUERIED]
    schema = [build_root(2), NUMBER.element("n", REQUIRED), kind.element()]
    numbers = [Cell(NUMBER.value(at), definition=0) for at in range(_ROWS)]
    data = build_parquet(CorpusTable(schema, [[numbers, [Cell(plain) for plain in values]]], {}))
    for name, form in {UNBOUNDED: None, **FORMS}.items():
        if name == OLDER_REUSED and "ARRAY" not in kind.physical:
            continue  # the buffers of numbers are not reused
        path = folder / f"{kind.name}-{name}.parquet"
        path.write_bytes(edit_footer_bytes(data, partial(_state, form, ordered)))
        yield Question(
            kind.name,
            find_family(kind.column).id,
            kind.column.type_name,
            EQUAL,
            STORED,
            name,
            str(path),
            str(path),
            [format_value(kind, queried)],
            [at for at, plain in enumerate(values) if plain == queried],
        )


def _state(form: _Form | None, ordered: Sequence[bytes], metadata: FileMetaData) -> None:
    if form is None:
        return
    metadata.created_by = form.writer
    if not form.has_orders:
        metadata.column_orders = None
    statistics = metadata.row_groups[0].columns[1].meta_data.statistics
    if form.writer == _NEWER_WRITER:
        statistics.min_value = ordered[form.low]
        statistics.max_value = ordered[form.high]
    else:
        statistics.min = ordered[form.low]
        statistics.max = ordered[form.high]


class Trust(NamedTuple):
    """The families whose bounds of one form an engine trusts, and those in which it compares the
    value at all."""

    trusted: set[str]
    compared: set[str]


def judge_bounds(
    questions: Sequence[Question], answers: Sequence[dict[str, Any]]
) -> dict[str, Trust]:
    """Return what the engine trusts of each form.

    An engine that trusts the bounds of any type of a family trusts those of the family.
    """
    comparable = {
        question.kind
        for question, answer in zip(questions, answers, strict=True)
        if question.filters == UNBOUNDED and answer.get("rows") == question.rows
    }
    by_form = {form: Trust(set(), set()) for form in FORMS}
    for question, answer in zip(questions, answers, strict=True):
        if question.filters == UNBOUNDED or question.kind not in comparable:
            continue
        trust = by_form[question.filters]
        trust.compared.add(question.family)
        if answer.get("rows") == []:
            trust.trusted.add(question.family)
    return by_form


def main(engine: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        questions = make_bounds_questions(folder)
        version, answers = put_questions(engine, Path(sys.executable), questions, folder)
    print(f"# {engine} {version}")
    for form, trust in judge_bounds(questions, answers).items():
        print(f"{form} = {sorted(trust.trusted)}  # not {sorted(trust.compared - trust.trusted)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
