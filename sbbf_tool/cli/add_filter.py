"""`sbbf add-filter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from sbbf_tool.cli import render
from sbbf_tool.cli.changes import ChangedFiles, over_changed_files
from sbbf_tool.cli.files import columns_option, page_limit_option, state_option, strict_option
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import (
    COLUMNS,
    COMMAND_LINE,
    SAFETY,
    SIZE,
    WEAK_FILTERS,
    engines_option,
    fpp_option,
)
from sbbf_tool.cli.output import complain, terminal
from sbbf_tool.cli.page import Page, say_not_cross_checked
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.resize import describe_smaller
from sbbf_tool.cli.tables import BYTES, COUNT, ESTIMATE, NAME, RATE, Heading
from sbbf_tool.numbers import format_count, format_percent
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sbbf_tool.hints import Fix, Rebuild
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.verbs.add_filter import AddReport

_COLUMNS = (
    Heading("row group", COUNT),
    Heading("column", NAME),
    Heading("values", COUNT, 3),
    Heading("ndv", ESTIMATE, 2, "estimated_ndv"),
    Heading("offset", COUNT, 4),
    Heading("bitset", BYTES, 1, "bitset_bytes"),
    Heading("fpp", RATE),
)


@over_changed_files(
    (
        columns_option("Add filters to this column"),
        COLUMNS.flag(
            "--advise",
            "use_advice",
            "Add the filters that sbbf advise recommends.",
            place=COMMAND_LINE,
        ),
        engines_option,
        fpp_option,
        COLUMNS.option("--ndv", "Size for this many distinct values per row group.", type=int),
        COLUMNS.option(
            "--max-bytes", "Largest bitset per row group.  [default: 128MiB]", type=SIZE
        ),
        COLUMNS.option(
            "--rebuild",
            "Rebuild existing filters, the weak ones or all. Weak are those weaker than "
            "requested, too large or broken.",
            place=COMMAND_LINE,
            type=click.Choice(("weak", "all")),
        ),
        SAFETY.flag(
            "--append",
            "With --in-place, append: readers fail meanwhile. It is faster; the next command "
            "undoes an append that a crash interrupted.",
            place=COMMAND_LINE,
        ),
        SAFETY.flag(
            "--also-new-files",
            "Of a table: let its writers add filters to new files. That sets properties of the "
            "table.",
            place=COMMAND_LINE,
        ),
    ),
    strict_option,
    page_limit_option,
    state_option,
    risks=(WEAK_FILTERS,),
)
def command(  # noqa: PLR0913  click passes an argument for each option
    files: ChangedFiles,
    columns: tuple[str, ...],
    use_advice: bool,
    engines: tuple[str, ...],
    fpp: float,
    ndv: int | None,
    max_bytes: int | None,
    rebuild: Rebuild | None,
    append: bool,
    also_new_files: bool,
) -> int:
    """Add Bloom filters to columns of existing files; no data page is touched.

    \b
    $ sbbf add-filter events.parquet -c user_id --in-place
    $ sbbf add-filter lake --advise --dry-run

    Filters and a new footer are written after the old bytes, which stay a valid file;
    `remove-filter` truncates the file to them. Each filter is sized from the values, and queried
    for every value before the new file replaces the old one. Column chunks that have a filter are
    skipped and counted, so that a second run continues where the first one stopped.
    """
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.verbs.add_filter import AddFilter

    if bool(columns) == use_advice:
        raise click.UsageError("give one of --column and --advise")
    if "*" in columns:
        raise click.UsageError("name each column, or let --advise choose those that gain")
    selection = None
    if use_advice:
        selection = files.request(edit=files.edit(append=append)).select_to_change()
        is_default = (
            click.get_current_context().get_parameter_source("fpp") is ParameterSource.DEFAULT
        )
        advice = _advise(files, selection, None if is_default else fpp, engines)
        if advice is None:
            render.warn(
                "no column deserves a filter that it does not have; sbbf advise reports the reasons"
            )
            return 0
        columns = advice.columns
        fpp = advice.fpp or fpp
        if rebuild is None and advice.rebuild:
            rebuild = "all"
        files.strict = False
    spec = FilterSpec(columns, fpp, ndv, max_bytes)
    verb = AddFilter(spec, rebuild, engines, also_new_files, are_advised=use_advice)
    return files.change(verb, _AddView(spec), selection, append=append)


def _advise(
    files: ChangedFiles, selection: Selection, fpp: float | None, engines: tuple[str, ...]
) -> Fix | None:
    """Return the change that adds filters to the columns that deserve one; None if none does."""
    from sbbf_tool.verbs.advise import Advise

    with show_progress("counting distinct values"):
        report = files.plan(Advise(fpp=fpp, engine_names=engines), selection).combine()
    fix: Fix | None = report.fix
    if fix is not None:
        for column in report.columns:
            if column.verdict == "add":
                render.note(f"{column.column}: {column.reason}")
    return fix


_SUMS = {
    "column_chunks_skipped": "skipped",
    "column_chunks_without_values": "without_values",
    "column_chunks_weaker": "weaker",
    "column_chunks_too_large": "too_large",
    "column_chunks_broken": "broken",
    "column_chunks_not_cross_checked": "not_cross_checked",
}
"""The fields of a report, by the name of their sum in the summary document."""
_KINDS = ("weaker", "too_large", "broken")
"""What existing filters are that do not satisfy the request."""


class _AddView(View["AddReport"]):
    skipped = "had every filter"
    sums = ("filters", "bytes_added", *_SUMS)
    not_undone = "no command restores the filters and footers that the change replaced"
    _is_dry_run = False
    _old_bytes = 0
    _bitset_bytes = 0
    _smaller_bytes = 0
    """Bytes of the bitsets, with the next smaller size where its rate is near."""
    _smaller_fpp = 0.0
    _example: tuple[str, ...] = ()
    """A file with a new filter, and its column."""

    def __init__(self, spec: FilterSpec) -> None:
        super().__init__()
        self._is_limited = spec.ndv is not None or spec.max_bytes is not None
        self._harms: set[str] = set()

    def add(self, report: AddReport, row: Row[object]) -> int:
        self.total.update(_count(report), filters=len(report.filters) + report.planned_filters)
        self.total.update(bytes_added=report.new_bytes - report.old_bytes + report.planned_bytes)
        self._old_bytes += report.old_bytes
        self._add_sizes(report)
        new_harms = set(report.harms) - self._harms
        self._harms |= new_harms
        if terminal().quiet:
            # `--quiet` does not hide that an engine loses rows.
            for harm in new_harms:
                complain(f"sbbf: warning: {harm}")
        self._is_dry_run = report.dry_run
        if report.filters and self.commits is None and not self._example:
            self._example = (report.output, report.filters[0].column)
        return 0

    def _add_sizes(self, report: AddReport) -> None:
        num_bytes = sum(row.bitset_bytes for row in report.filters)
        self._bitset_bytes += num_bytes
        if report.next_smaller is not None:
            num_bytes = report.next_smaller.bitset_bytes
            self._smaller_fpp = max(self._smaller_fpp, report.next_smaller.fpp)
        self._smaller_bytes += num_bytes

    def show(self, page: Page, report: AddReport) -> None:
        if report.filters or report.planned_filters:
            page.table(_COLUMNS, report.filters)
            self.show_line(page, report)
            _say_counts(page, _count(report))
            return
        if report.skipped:
            reason = "all its column chunks have filters"
        elif report.without_values:
            reason = "none of its column chunks has a value"
        else:
            reason = "it has no row groups"
        done = f"{report.output} is an exact copy"
        if report.dry_run or report.output == report.file:
            done = "nothing was written"
        page.say(f"{report.file}: nothing to add, {reason}; {done}")
        _say_kinds(page, _count(report))

    def show_line(self, page: Page, report: AddReport) -> None:
        if not (report.filters or report.planned_filters):
            return
        skipped = ""
        if report.skipped:
            skipped = f" {format_count(report.skipped, 'column chunk')} already had a filter."
        if report.dry_run:
            filters = format_count(report.planned_filters, "filter")
            size = page.bytes(report.planned_bytes)
            page.say(
                f"Would add at most {filters}, {size}, to {report.output}, from "
                f"{page.bytes(report.data_bytes)} of data.{skipped}"
            )
            return
        outcome = "All values verified."
        if report.not_cross_checked:
            outcome = "Verified by the values as sbbf alone reads them."
        filters = format_count(len(report.filters), "filter")
        growth = _describe_growth(page, report)
        page.say(f"Added {filters} to {report.output}: {growth}. {outcome}{skipped}")
        if report.leftover_bytes:
            page.say(
                f"left over: {page.bytes(report.leftover_bytes)} of earlier changes; the next "
                "change without --append drops them"
            )

    def show_end(self, page: Page, files: str) -> None:
        _say_counts(page, self.total)
        filters = format_count(self.total["filters"], "filter")
        if self._is_dry_run:
            filters = f"at most {filters} would be"
        bytes_added = self.total["bytes_added"]
        size = page.bytes(bytes_added)
        if bytes_added > 0:
            size += f" (+{format_percent(bytes_added / self._old_bytes)})"
        page.say(f"{files}; {filters} added, {size}")

    def show_undo(self, page: Page) -> None:
        if self._smaller_fpp:
            line = describe_smaller(
                page, self._smaller_fpp, self._smaller_bytes, self._bitset_bytes
            )
            page.say(line)
        super().show_undo(page)
        if self._is_dry_run and self._is_limited:
            page.say(
                "note: filters of this size may be refused, if the values, which a dry run does "
                "not read, are too many for it"
            )
        if self._example:
            command = ("sbbf", "explain", *self._example, "VALUE")
            page.next(command, "see which engines use the filters")


def _describe_growth(page: Page, report: AddReport) -> str:
    """Return how the size of a file has changed, and where its new bytes are."""
    growth = report.new_bytes - report.old_bytes
    size = page.bytes(abs(growth))
    if any(row.offset < report.old_bytes for row in report.filters):
        place = "larger" if growth >= 0 else "smaller"
    else:
        place = f"after byte {report.old_bytes:,}"
    return f"{size} {place} ({format_percent(abs(growth) / report.old_bytes)})"


def _count(report: AddReport) -> dict[str, int]:
    return {name: getattr(report, field) for name, field in _SUMS.items()}


def _say_counts(page: Page, counts: Mapping[str, int]) -> None:
    """Print how many column chunks get no filter, and how many pyarrow did not decode too."""
    say_without_values(page, counts["column_chunks_without_values"])
    _say_kinds(page, counts)
    say_not_cross_checked(page, counts["column_chunks_not_cross_checked"])


def say_without_values(page: Page, count: int) -> None:
    if count:
        verb = "needs" if count == 1 else "need"
        page.say(f"{format_count(count, 'column chunk')} without values {verb} no filter")


def _say_kinds(page: Page, counts: Mapping[str, int]) -> None:
    """Print how many existing filters do not satisfy the request."""
    kinds = []
    for word in _KINDS:
        count = counts[f"column_chunks_{word}"]
        if count:
            kinds.append(f"{count:,} {word.replace('_', ' ')}")
    if kinds:
        page.say(f"existing filters: {', '.join(kinds)}; --rebuild weak rebuilds them")
