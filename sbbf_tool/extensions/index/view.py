"""Rows of `spark.read.format("sbbf").option("index", "true")`: one per file of an index that may
hold a value.

Each path is an index, and the option `where` is a condition on its column, such as `user_id IN (42,
43)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

import pyarrow as pa

from sbbf_tool.condition_parser import parse_condition
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.index.lake_index import prune_index
from sbbf_tool.frozen import Frozen
from sbbf_tool.predicates import conjuncts_of, values_in
from sbbf_tool.reports.plain import to_plain
from sbbf_tool.reports.rows import OK, ListedFile
from sbbf_tool.spark.views import OF_RULES, STATUS, Options, Row, RowView


def make_view(options: Options) -> IndexedFiles:
    """Make the view of these options. Raises UsageError for options of other views."""
    options.refuse(("columns", "all", "quick", "rules", *OF_RULES), "an index")
    return IndexedFiles()


class IndexedFiles(Frozen, RowView):
    """View with one row per file that may hold one of the values."""

    def fields(self) -> list[pa.Field]:
        return [pa.field("file", pa.string())]

    def files(self, names: Iterable[str], where: str | None) -> Iterator[ListedFile]:
        if where is None:
            raise UsageError(
                "an index needs the option 'where', a condition such as user_id IN (42, 43)"
            )
        # Other parts of the condition leave fewer rows of the same files.
        values = {}
        for conjunct in conjuncts_of(parse_condition(where)):
            looked_for = values_in(conjunct)
            if looked_for is not None:
                values[looked_for.column] = looked_for.values
        paths = chain.from_iterable(prune_index(name, values) for name in names)
        return map(ListedFile, paths)

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        yield {"file": to_plain(path), STATUS: OK}
