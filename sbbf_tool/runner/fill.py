"""Add the filters that a file lacks, as the work of a run.

Only the file determines what to do, its footer and, where existing filters are judged, their bits: a file that has every filter is skipped,
so that a second run, a retried task and a speculative task do nothing. A file that changes while its filters are built is processed again.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

from sbbf_tool.editing.edit import Edit, PrebuiltFilters
from sbbf_tool.errors import ChangedError
from sbbf_tool.file.meter import Progress
from sbbf_tool.file.table_file import FileName
from sbbf_tool.hints import Rebuild
from sbbf_tool.operations.add import add_to_file
from sbbf_tool.reports.rows import HAS_EVERY_FILTER, SKIPPED
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.runner.failures import refusal_of
from sbbf_tool.storage import places

_PATIENCE_SECONDS = 60.0
_FIRST_PAUSE = 0.05


def fill_file(
    path: FileName,
    spec: FilterSpec,
    edit: Edit,
    *,
    rebuild: Rebuild | None = None,
    strict: bool = True,
    jobs: int = 1,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Return the fields of the row of one file, after it has got the filters that it lacks.

    If another writer changes the file, wait and try again with the changed file. If no built filters would be lost, an append by another
    writer raises ChangedError immediately.
    """
    edit = replace(edit, jobs=jobs, progress=progress)
    deadline, pause = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE
    with places.open_spool(os.fsdecode(edit.output or path), keeps=not edit.dry_run) as spool:
        prebuilt = PrebuiltFilters(spool)
        while True:
            try:
                report = add_to_file(path, spec, edit, prebuilt, rebuild=rebuild, strict=strict)
            except ChangedError:
                if prebuilt.fingerprint is None or time.monotonic() > deadline:
                    raise
            else:
                if refused := refusal_of(report):
                    return refused
                if report.filters or report.planned_filters:
                    return {"report": report}
                return {"status": SKIPPED, "reason": HAS_EVERY_FILTER, "report": report}
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
