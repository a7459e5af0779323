"""Work on files one after another, where the changes of many small files are published together; see `storage.pending`."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.reports.rows import Row
from sbbf_tool.storage.pending import PendingFile, PendingFiles
from sbbf_tool.storage.places import is_url, local_path

if TYPE_CHECKING:
    from sbbf_tool.file.meter import Progress
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")


def work_on(
    work: Work[Report], paths: Iterable[str], jobs: int, progress: Progress | None = None, rest: list[Row[Report]] | None = None
) -> Generator[Row[Report], None, None]:
    """Yield the rows of these files in their order. The row of a changed file is yielded when the new file has its name.

    If the iteration ends early, `rest` receives the row that was yielded last, and those of files that were changed but not yielded.
    """
    if not work.publishes_together:
        yield from map(partial(work, jobs=jobs, progress=progress), paths)
        return
    pending = PendingFiles()
    rows: list[tuple[Row[Report], list[PendingFile]]] = []
    ready: deque[Row[Report]] = deque()

    def publish() -> Iterator[Row[Report]]:
        failed, warnings = pending.publish()
        final_rows = []
        for row, files in rows:
            if any(file.target in failed for file in files):
                # Alone, it reports the reason, or waits until another writer has finished.
                final_rows.append(work(row.path, jobs, progress))
            else:
                final_rows.append(_with_warnings(row, [warnings[file.target] for file in files if file.target in warnings]))
        ready.extend(final_rows)
        rows.clear()
        while ready:
            yield ready[0]
            ready.popleft()

    try:
        remaining = iter(paths)
        while True:
            try:
                path = next(remaining, None)
            except Exception:
                # The listing has failed; the files before are done all the same.
                yield from publish()
                raise
            if path is None:
                break
            if not is_url(path) and pending.has(local_path(path)):
                yield from publish()
            with pending.collect() as files:
                row = work(path, jobs, progress)
            rows.append((row, files))
            if not pending or pending.is_full or len(rows) >= PendingFiles.MOST_FILES:
                yield from publish()
        yield from publish()
    finally:
        if rest is not None:
            rest += [*ready, *(row for row, files in rows if all(file.target in pending.published_targets for file in files))]
        pending.discard()


def _with_warnings(row: Row[Report], warnings: list[str]) -> Row[Report]:
    report: Any = row.report
    if not warnings or report is None:
        return row
    return replace(row, report=replace(report, warnings=(*report.warnings, *warnings)))
