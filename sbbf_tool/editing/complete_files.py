"""Files that have every filter that a spec asks for, found by a scan: nothing is to be done.

Such a file is neither opened nor locked, but checked as any other that is changed: its path, its
folder, and what killed commands left beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.context import Context
from sbbf_tool.file.interrupted import ensure_footer
from sbbf_tool.file.own_tail import hash_end
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.scan import FileScan, ScannedFile, can_scan
from sbbf_tool.file.scan_kinds import KindJudgment, judge_filters
from sbbf_tool.frozen import replace
from sbbf_tool.parquet import equals
from sbbf_tool.rules.filter_spec import FilterSpec, request_filters
from sbbf_tool.rules.fit import demand_of_request
from sbbf_tool.storage import places
from sbbf_tool.storage.leftovers import share_listings

if TYPE_CHECKING:
    from sbbf_tool.reports.change import ChangeReport

    Report = TypeVar("Report", bound=ChangeReport)
    Scan = Callable[[Sequence[str]], Sequence[Report | None]]


def scan_for_complete_files(
    spec: FilterSpec,
    report_of: Callable[[ParquetFile], Report | None],
    context: Context,
    edit: Edit,
) -> Scan[Report] | None:
    """Return what makes the reports of local files with filters that satisfy the spec; None if
    each file must be opened. `report_of` returns the report of an open file if it is one of
    them."""
    if not can_scan() or not edit.in_place or edit.allow_table_files:
        return None
    if context.keys or edit.keys or spec.share_of_data is not None:
        return None
    scan = FileScan(partial(_judge_kind, spec, report_of), context)

    def reports_of(paths: Sequence[str]) -> list[Report | None]:
        with share_listings():
            return scan.reports(partial(_report_scanned, context, edit), paths)

    return reports_of


def _judge_kind(
    spec: FilterSpec,
    report_of: Callable[[ParquetFile], Report | None],
    file: ParquetFile,
    key: bytes,
) -> KindJudgment | None:
    """Judge what files of the same kind as this one must be to have every filter."""
    footer = file.footer
    existing = footer.filter_places()
    demands = {}
    for chunk, size in request_filters(file, [spec]).sizes.items():
        column = footer.columns[chunk[1]]
        if chunk not in existing or column.variant:
            return judge_filters(file, key, None, None)
        forms = equals.forms_per_value(footer, column)
        demands[column.index] = demand_of_request(size, forms)
    report = None
    if demands:
        report = report_of(file)
    if report is None:
        return None
    report = replace(report, skipped=len(demands))
    return judge_filters(file, key, report, demands, bits_alone=True)


def _report_scanned(context: Context, edit: Edit, path: str, file: ScannedFile) -> Any:
    """Return the report of a file that has every filter; None if there is more to do, or to
    refuse."""
    try:
        edit.target_of(path, context.reuse.tables)
        if places.recover(path, partial(ensure_footer, None), changes=False) is not None:
            return None
        with places.open_source(path) as source:
            if source.size != file.size:
                return None
            end_hash = hash_end(source, file.size)
        if not edit.dry_run:
            places.sweep(path)
    except SbbfError:
        return None
    report = file.judgment.report
    changes: dict[str, Any] = {
        "file": path,
        "output": path,
        "dry_run": edit.dry_run,
        "old_bytes": file.size,
        "new_bytes": file.size,
        "old_end_hash": end_hash,
        "new_end_hash": end_hash,
        "skipped": report.skipped * file.row_groups,
    }
    return type(report)(**{**vars(report), **changes})
