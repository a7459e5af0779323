"""`sbbf resize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.cli import render
from sbbf_tool.cli.changes import ChangedFiles, over_changed_files
from sbbf_tool.cli.files import columns_option, strict_option
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import COLUMNS, RATIO, SIZE, WEAK_FILTERS
from sbbf_tool.cli.page import SCREEN_ROWS, Page
from sbbf_tool.cli.tables import BYTES, COUNT, NAME, RATE, WORD, Heading
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sbbf_tool.advice.totals import FoldedSize
    from sbbf_tool.verbs.resize import ResizeReport

_COLUMNS = (
    Heading("row group", COUNT),
    Heading("column", NAME),
    Heading("old bitset", BYTES, 3, "old_bytes"),
    Heading("new bitset", BYTES, of="new_bytes"),
    Heading("old fpp", RATE, 2),
    Heading("new fpp", RATE),
)


_SIZES = (
    Heading("column", NAME),
    Heading("size", WORD),
    Heading("bitsets", BYTES),
    Heading("mean fpp", RATE),
    Heading("worst fpp", RATE),
)
"""What filters take as they are, and at every half of their size."""


@over_changed_files(
    (
        columns_option("Only this column's filters"),
        COLUMNS.option(
            "--fpp",
            "The smallest size with at most this false-positive rate.",
            type=RATIO,
            metavar="RATE",
        ),
        COLUMNS.option(
            "--max-bytes",
            "The largest size per row group, such as 64KiB.",
            type=SIZE,
        ),
    ),
    strict_option,
    risks=(WEAK_FILTERS,),
)
def command(files: ChangedFiles, **options: Any) -> int:
    """Resize filters to meet a false-positive rate, or a largest size.

    \b
    $ sbbf resize events.parquet --fpp 0.05 --in-place
    $ sbbf resize lake -c user_id --max-bytes 64KiB --dry-run

    Filters are made smaller by folding, which reads no data and gives, bit for bit, the filter that
    would have been built at that size. The new filters and a new footer are written after the old
    bytes; `remove-filter` removes them. Filters that are already smaller stay unchanged;
    `add-filter --rebuild all` builds larger ones from the data.
    """
    from sbbf_tool.verbs.resize import Resize

    return files.change(Resize(**options), _ResizeView())


class _ResizeView(View["ResizeReport"]):
    not_undone = (
        "no command restores the old filters; sbbf add-filter --rebuild all builds "
        "new ones from the data"
    )
    skipped = "had nothing to resize"
    sums = ("filters", "old_bitset_bytes", "new_bitset_bytes")
    _all_bytes = 0
    """Bytes of the bitsets of all filters, also of those that keep their size; 0 unless it is a dry
    run."""

    def add(self, report: ResizeReport, row: Row[object]) -> int:
        old, new = _count_bytes(report)
        self.total.update(filters=len(report.filters), old_bitset_bytes=old, new_bitset_bytes=new)
        # The first size of a filter is the one that it has.
        old_sizes = {(size.column, size.row_group): size for size in reversed(report.sizes)}
        self._all_bytes += sum(size.bytes for size in old_sizes.values())
        for place in report.not_resized:
            render.warn(f"{row.path}: {place}; not resized")
        return 0

    def show(self, page: Page, report: ResizeReport) -> None:
        page.table(_COLUMNS, report.filters)
        _show_sizes(page, report)
        self._say(page, report)

    def show_line(self, page: Page, report: ResizeReport) -> None:
        if report.filters:
            self._say(page, report)

    def _say(self, page: Page, report: ResizeReport) -> None:
        old, new = _count_bytes(report)
        filters = _describe(page, len(report.filters), old, new, f" in {report.output}")
        line = f"Would resize {filters}" if report.dry_run else f"Resized {filters}"
        if report.unchanged:
            verb = "is" if report.unchanged == 1 else "are"
            line += f"; {report.unchanged:,} already {verb} small enough"
        page.say(line)

    def show_end(self, page: Page, files: str) -> None:
        filters, old, new = (self.total[name] for name in self.sums)
        if self._all_bytes:
            page.say(
                f"all filters take {page.bytes(self._all_bytes)}; resized, they would take "
                f"{page.bytes(self._all_bytes - old + new)}"
            )
        if filters:
            files += f"; {_describe(page, filters, old, new)}"
        page.say(files)


def _count_bytes(report: ResizeReport) -> tuple[int, int]:
    """Return the bytes of the bitsets before and after, of filters whose old size is known."""
    old = 0
    new = 0
    for row in report.filters:
        if row.old_bytes is not None:
            old += row.old_bytes
            new += row.new_bytes
    return old, new


def _describe(page: Page, filters: int, old: int, new: int, place: str = "") -> str:
    sizes = f"{page.bytes(old)} -> {page.bytes(new)}"
    return f"{format_count(filters, 'filter')}{place}: bitsets of {sizes}"


def describe_share(num_bytes: int, of_bytes: int) -> str:
    """Return a share of bytes as `half`, or as a percentage, for `... the bytes`."""
    share = num_bytes / of_bytes
    return "half" if 0.45 <= share <= 0.55 else f"{share:.0%} of"


def describe_smaller(page: Page, fpp: float, num_bytes: int, of_bytes: int) -> str:
    """Return what the next smaller size of filters gives, and the option for it."""
    rate = f"{fpp * 100:g}"
    return (
        f"next smaller size: {rate} % at {describe_share(num_bytes, of_bytes)} the bytes "
        f"({page.bytes(num_bytes)} instead of {page.bytes(of_bytes)}): --fpp {rate}%"
    )


def show_sizes(page: Page, columns: Mapping[str, Iterable[FoldedSize]]) -> None:
    """Print, for each column, the bytes and rates of its filters at their size and at every half of
    it."""
    rows = []
    for column, sizes in columns.items():
        for size in sizes:
            share = f"1/{1 << size.halvings}" if size.halvings else "as it is"
            rows.append((column, share, size.bytes, size.mean_fpp, size.worst_fpp))
    page.table(_SIZES, rows, most_rows=SCREEN_ROWS)


def _show_sizes(page: Page, report: ResizeReport) -> None:
    """Print what the filters of a file would take at every size."""
    from sbbf_tool.advice.totals import Folds

    sizes_of_filters = render.group(
        ((size.column, size.row_group), (size.bytes, size.fpp)) for size in report.sizes
    )
    columns: dict[str, Folds] = {}
    for (column, _), sizes in sizes_of_filters.items():
        columns.setdefault(column, Folds(DEFAULT_FPP)).add(tuple(sizes))
    show_sizes(page, {column: folds.sizes() for column, folds in columns.items()})
