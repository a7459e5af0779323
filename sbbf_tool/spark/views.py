"""What `spark.read.format("sbbf")` shows: its kinds of rows, and its options, parsed once.

The rows are column chunks, findings of rules, or what an extension brings; the columns are the
fields of the reports. As in Spark, names of options are case-insensitive; underscores in them are
ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.extension import load, named
from sbbf_tool.file.partitions import Predicate
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.hints import suggest
from sbbf_tool.numbers import parse_ratio
from sbbf_tool.reports.findings import CheckReport, FilterVerification, Finding
from sbbf_tool.reports.plain import schema_of, to_plain
from sbbf_tool.reports.rows import FAILED, OK, ListedFile
from sbbf_tool.rules.catalog import Policy, make_policy
from sbbf_tool.running.discover import discover
from sbbf_tool.running.work import failure
from sbbf_tool.spark.rows import FILES_PER_TASK, ddl
from sbbf_tool.verbs.check import check
from sbbf_tool.verbs.inspect import FilterReport, InspectReport, inspect
from sbbf_tool.verbs.verify import verify

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Row = dict[str, Any]
"""Values by column; a missing column is null."""

STATUS = "status"
_REASON = "reason"
_OF_BITS = frozenset(
    ("fill_ratio", "estimated_fpp", "estimated_ndv", "bits_per_value", "unreferenced")
)
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
        predicate = Predicate(where) if where else None
        return (file for file in discover(names, predicate) if file.skipped is None)

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        """Yield the rows of a file, and read only what these columns of the schema need. Raises
        SbbfError."""
        raise NotImplementedError

    def rows_or_reason(self, path: str, columns: Collection[str]) -> list[Row]:
        """Return the rows of a file; if it cannot be read, one row with the reason, or such rows
        only for the parts that it lacks."""
        try:
            return list(self.rows(path, columns))
        except UsageError as error:
            parts = self.parts()
            if len(parts) < 2:
                return [failed(path, error)]
            rows = []
            for part in parts:
                rows.extend(part.rows_or_reason(path, columns))
            return rows
        except Exception as error:
            return [failed(path, error)]

    def parts(self) -> list[RowView]:
        """Return the views of single columns, to try if a file lacks some of the requested columns;
        empty if there are no parts."""
        return []


class Chunks(Frozen, RowView):
    """View with one row per filter and, with `all_chunks`, per column chunk without a filter; each
    row also has the fields of the file."""

    columns: tuple[str, ...] = ()
    all_chunks: bool = False
    quick: bool = False

    def fields(self) -> list[pa.Field]:
        file, *facts = fields_of(InspectReport, but=("filters", "columns"))
        return [file, *fields_of(FilterReport), *facts]

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        quick = self.quick or _OF_BITS.isdisjoint(columns)
        report = inspect(
            path,
            self.columns,
            all_chunks=self.all_chunks,
            quick=quick,
            search="unreferenced" in columns,
        )
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
        return [
            pa.field("file", pa.string()),
            pa.field("is_verified", pa.bool_()),
            *fields_of(FilterVerification),
        ]

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        for result in verify(path, jobs=1).filters:
            yield {
                **values_of(result, columns),
                "file": to_plain(path),
                "is_verified": result.is_verified,
                STATUS: OK,
            }


class Findings(Frozen, RowView):
    """View with one row per finding, and one per part of a file that could not be read, so that
    rules could not run on it."""

    policy: Policy
    max_page_bytes: int | None = None

    @property
    def reads_data(self) -> bool:  # type: ignore[override]
        return not self.policy.quick

    def fields(self) -> list[pa.Field]:
        return fields_of(Finding)

    def rows(self, path: str, columns: Collection[str]) -> Iterator[Row]:
        report: CheckReport = check(path, self.policy, max_page_bytes=self.max_page_bytes, jobs=1)
        for finding in report.findings:
            yield values_of(finding, columns) | {STATUS: OK}
        for reason in report.unreadable:
            yield {"file": to_plain(report.file), STATUS: FAILED, _REASON: reason}


def schema_of_view(view: RowView) -> str:
    """Return the schema of a view as Spark's DDL."""
    return ddl([*view.fields(), pa.field(STATUS, pa.string()), pa.field(_REASON, pa.string())])


def column_names(view: RowView) -> tuple[str, ...]:
    """Return the names of the columns of a view's schema."""
    return (*(field.name for field in view.fields()), STATUS, _REASON)


def failed(path: str, error: Exception) -> Row:
    """Return the row of a file that cannot be read, or for which this package fails
    unexpectedly."""
    return {"file": to_plain(redact(path)), **failure(path, error)}


def values_of(report: DataclassInstance, columns: Collection[str]) -> Row:
    return {
        field.name: to_plain(getattr(report, field.name))
        for field in fields(report)
        if field.name in columns
    }


def fields_of(report: type, but: Collection[str] = ()) -> list[pa.Field]:
    return [field for field in schema_of(report) if field.name not in but]


Number = TypeVar("Number", int, float)

_OF_CHUNKS = ("columns", "all")
OF_RULES = (
    "select",
    "ignore",
    "require",
    "maxFpp",
    "maxBytesShare",
    "minNdv",
    "minChunkBytes",
    "maxPageBytes",
)
_OF_CATALOG = "owner"
"""Property that Spark sets for each table of a catalog, and passes as an option."""
VIEW = "use CREATE TEMPORARY VIEW name USING sbbf OPTIONS (path '/lake')"
NAMES = (
    "path",
    "paths",
    *_OF_CHUNKS,
    "quick",
    "rules",
    *OF_RULES,
    "where",
    "errors",
    "filesPerTask",
)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The request of one `load`."""

    names: tuple[str, ...]
    """Files, folders, globs."""
    view: RowView
    where: str | None
    """A predicate on partition folders."""
    fails: bool
    """Whether a file that cannot be read fails the query instead of becoming a row."""
    files_per_task: int


def parse_options(options: Mapping[str, str]) -> ReadRequest:
    """Parse the options. Raises UsageError for an option that does not exist, does not apply to
    this view, or has a wrong value."""
    if _OF_CATALOG in options:
        raise UsageError(
            "a table of a catalog cannot use sbbf: Spark passes no options to it", hint=VIEW
        )
    parsed_options = Options(options)
    names = parsed_options.names()
    view = _choose_view(parsed_options)
    errors = parsed_options.text("errors") or "row"
    if errors not in ("row", "fail"):
        raise UsageError(f"option 'errors' must be 'row' or 'fail', not {errors!r}")
    return ReadRequest(
        names,
        view,
        where=parsed_options.text("where"),
        fails=errors == "fail",
        files_per_task=parsed_options.number("filesPerTask", int) or FILES_PER_TASK,
    )


def _choose_view(options: Options) -> RowView:
    """Return the view of an extension whose option is set, of findings with `rules`, otherwise of
    column chunks. Raises UsageError for an option that does not apply to the view."""
    for name, make in named("views").items():
        if options.flag(name):
            view: RowView = load(make)(options)
            return view
    if options.flag("rules"):
        options.refuse(_OF_CHUNKS, "rules")
        return _findings(options)
    options.refuse(OF_RULES, "filters; it applies only with option 'rules'")
    return Chunks(
        options.list("columns"),
        all_chunks=options.flag("all"),
        quick=options.flag("quick"),
    )


def _findings(options: Options) -> Findings:
    policy = make_policy(
        {
            "require": options.list("require"),
            "select": options.list("select"),
            "ignore": options.list("ignore"),
            "max_fpp": options.number("maxFpp", _ratio),
            "max_bytes_share": options.number("maxBytesShare", _ratio),
            "min_ndv": options.number("minNdv", int),
            "min_chunk_bytes": options.number("minChunkBytes", int),
            "quick": options.flag("quick"),
        }
    )
    return Findings(policy, options.number("maxPageBytes", int))


class Options:
    def __init__(self, options: Mapping[str, str]) -> None:
        known = (*NAMES, *named("views"))
        names = {_key(name): name for name in known}
        self._values: dict[str, str] = {}
        for name, value in options.items():
            if _key(name) not in names:
                raise UsageError(
                    f"unknown option {name!r}",
                    hint=suggest(name, known, f"the options are {', '.join(known)}"),
                )
            self._values[names[_key(name)]] = str(value)

    def names(self) -> tuple[str, ...]:
        names = self.list("paths")
        if "path" in self._values:
            names = (*names, self._values["path"])
        if not names:
            raise UsageError(
                "no path was given", hint=f"load a file, a folder or a glob; in SQL, {VIEW}"
            )
        return names

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def flag(self, name: str, *, default: bool = False) -> bool:
        text = self._values.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise UsageError(f"option {name!r} must be true or false, not {text!r}")
        return text == "true"

    def list(self, name: str) -> tuple[str, ...]:
        """Parse `a,b`, or `["a", "b,c"]` if a name contains a comma."""
        text = self._values.get(name, "").strip()
        if not text.startswith("["):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        try:
            parts = json.loads(text)
        except ValueError:
            parts = None
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise UsageError(f"option {name!r} must be a JSON list of strings, not {text:.80}")
        return tuple(parts)

    def number(self, name: str, kind: Callable[[str], Number]) -> Number | None:
        if name not in self._values:
            return None
        try:
            number = kind(self._values[name])
        except ValueError:
            number = kind("0")
        if not number > 0:
            raise UsageError(
                f"option {name!r} must be a number above 0, not {self._values[name]!r}"
            )
        return number

    def refuse(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if name in self._values:
                raise UsageError(f"option {name!r} does not apply to {why}")


def _ratio(text: str) -> float:
    return parse_ratio(text) or 0.0


def _key(name: str) -> str:
    return name.replace("_", "").lower()
