"""Rows of `spark.read.format("sbbf").option("paimon", "true")`: one per index of the data files of
Paimon tables.

Each path is a table's folder or an `.index` file. The columns: `snapshot`, `data_file`,
`partition`, `rows`, `place`, the `index` with its `bloom` figures, and its `findings`. With the
option `all`, there is also one row for every data file without an index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from sbbf_tool.extensions.paimon.reports import IndexFigures, InspectedFile
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.frozen import Frozen
from sbbf_tool.reports.findings import Finding
from sbbf_tool.reports.plain import schema_of, to_plain
from sbbf_tool.reports.rows import OK, ListedFile
from sbbf_tool.spark.views import OF_RULES, STATUS, Options, Row, RowView, fields_of, values_of


def make_view(options: Options) -> PaimonIndexes:
    """Make the view of these options. Raises UsageError for options of other views."""
    options.refuse(("columns", "quick", "rules", *OF_RULES, "where"), "Paimon indexes")
    return PaimonIndexes(options.flag("all"))


class PaimonIndexes(Frozen, RowView):
    """View with one row per index of a Paimon data file, or in an index file; with `all_files`,
    also one per data file without an index."""

    all_files: bool = False

    def fields(self) -> list[pa.Field]:
        index = pa.struct(list(schema_of(IndexFigures)))
        finding = pa.struct(list(schema_of(Finding)))
        return [
            pa.field("file", pa.string()),
            pa.field("snapshot", pa.int64()),
            *fields_of(InspectedFile, but=("indexes",)),
            pa.field("index", index),
            pa.field("findings", pa.list_(finding)),
        ]

    def files(self, names: Iterable[str], where: str | None) -> Iterator[ListedFile]:
        return map(ListedFile, names)

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        report = inspect_paimon(path)
        for file in report.files:
            file_values = {
                "file": to_plain(path),
                "snapshot": report.snapshot,
                **values_of(file, columns),
                STATUS: OK,
            }
            findings = [finding for finding in report.findings if finding.file == file.data_file]
            for index in file.indexes:
                plain_findings = [
                    to_plain(finding)
                    for finding in findings
                    if finding.column in (None, index.column)
                ]
                yield {**file_values, "index": to_plain(index), "findings": plain_findings}
            if not file.indexes and (self.all_files or findings):
                yield {**file_values, "findings": list(map(to_plain, findings))}
