"""Kinds of rows of `spark.read.format("sbbf")`: column chunks, findings of rules, or what an extension brings.

The columns are the fields of the reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.reports.findings import CheckReport, Finding
from sbbf_tool.reports.rows import OK, ListedFile
from sbbf_tool.reports.verify import FilterVerification
from sbbf_tool.spark.rows import ddl
from sbbf_tool.verbs.inspect import FilterReport, InspectReport

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import DataclassInstance

    from sbbf_tool.rules.check_policy import Policy

Row = dict[str, Any]
"""Values by column; a missing column is null."""

STATUS, _REASON = "status", "reason"
_OF_BITS = frozenset(("fill_ratio", "estimated_fpp", "estimated_ndv", "bits_per_value", "unreferenced"))
"""Columns that require reading the bitset."""


class RowView:
    """One kind of rows. Views are sent to executors."""

    reads_data = False
    """Whether the view reads data, not only footer and filters."""

    def fields(self) -> list[pa.Field]:
        """Return the columns, without status and reason."""
        raise NotImplementedError

    def files(self, names: Iterable[str], where: str | None) -> Iterator[ListedFile]:
        """List the files or tables with these names, in the selected partitions."""
        from sbbf_tool.file.partitions import Predicate
        from sbbf_tool.running.discover import discover

        return (file for file in discover(names, Predicate(where) if where else None) if file.skipped is None)

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        """Yield the rows of a file, and read only what these columns of the schema need. Raises SbbfError."""
        raise NotImplementedError

    def rows_or_reason(self, path: str, columns: Collection[str]) -> list[Row]:
        """Return the rows of a file; if it cannot be read, one row with the reason, or such rows only for the parts that it lacks."""
        try:
            return list(self.rows(path, columns))
        except Exception as error:
            parts = self.parts() if isinstance(error, UsageError) else []
            return [row for part in parts for row in part.rows_or_reason(path, columns)] if len(parts) > 1 else [failed(path, error)]

    def parts(self) -> list[RowView]:
        """Return the views of single columns, to try if a file lacks some of the requested columns; empty if there are no parts."""
        return []


class Chunks(Frozen, RowView):
    """View with one row per filter and, with `all_chunks`, per column chunk without a filter; each row also has the fields of the file."""

    columns: tuple[str, ...] = ()
    all_chunks: bool = False
    bitsets: bool = True

    def fields(self) -> list[pa.Field]:
        file, *facts = fields_of(InspectReport, but=("filters", "columns"))
        return [file, *fields_of(FilterReport), *facts]

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        from sbbf_tool.verbs.inspect import inspect

        bitsets = self.bitsets and not _OF_BITS.isdisjoint(columns)
        report = inspect(path, self.columns, all_chunks=self.all_chunks, bitsets=bitsets, search="unreferenced" in columns)
        file = values_of(report, columns) | {STATUS: OK}
        for chunk in report.filters:
            yield values_of(chunk, columns) | file
        if self.all_chunks and not report.filters:
            yield file  # the file has no row groups

    def parts(self) -> list[RowView]:
        return [replace(self, columns=(column,)) for column in self.columns]


class Verifications(Frozen, RowView):
    """View with one row per filter that was queried for every value of its column chunk."""

    reads_data = True

    def fields(self) -> list[pa.Field]:
        import pyarrow as pa

        return [pa.field("file", pa.string()), pa.field("is_verified", pa.bool_()), *fields_of(FilterVerification)]

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        from sbbf_tool.reports.plain import to_plain
        from sbbf_tool.verbs.verify import verify

        for result in verify(path, jobs=1).filters:
            yield {**values_of(result, columns), "file": to_plain(path), "is_verified": result.is_verified, STATUS: OK}


class Findings(Frozen, RowView):
    """View with one row per finding, and one per part of a file that could not be read, so that rules could not run on it."""

    policy: Policy
    max_page_bytes: int | None = None

    @property
    def reads_data(self) -> bool:  # type: ignore[override]
        return not self.policy.quick

    def fields(self) -> list[pa.Field]:
        return fields_of(Finding)

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        from sbbf_tool.reports.plain import to_plain
        from sbbf_tool.reports.rows import FAILED
        from sbbf_tool.verbs.check import check

        report: CheckReport = check(path, self.policy, max_page_bytes=self.max_page_bytes, jobs=1)
        for finding in report.findings:
            yield values_of(finding, columns) | {STATUS: OK}
        for reason in report.unreadable:
            yield {"file": to_plain(report.file), STATUS: FAILED, _REASON: reason}


def schema_of_view(view: RowView) -> str:
    """Return the schema of a view as Spark's DDL."""
    import pyarrow as pa

    return ddl([*view.fields(), pa.field(STATUS, pa.string()), pa.field(_REASON, pa.string())])


def column_names(view: RowView) -> tuple[str, ...]:
    """Return the names of the columns of a view's schema."""
    return (*(field.name for field in view.fields()), STATUS, _REASON)


def failed(path: str, error: Exception) -> Row:
    """Return the row of a file that cannot be read, or for which this package fails unexpectedly."""
    from sbbf_tool.display import redact
    from sbbf_tool.reports.plain import to_plain
    from sbbf_tool.running.work import failure

    return {"file": to_plain(redact(path)), **failure(path, error)}


def values_of(report: DataclassInstance, columns: Collection[str]) -> Row:
    from sbbf_tool.reports.plain import to_plain

    return {field.name: to_plain(getattr(report, field.name)) for field in fields(report) if field.name in columns}


def fields_of(report: type, but: Collection[str] = ()) -> list[pa.Field]:
    from sbbf_tool.reports.arrow import schema_of

    return [field for field in schema_of(report) if field.name not in but]
