"""`FindAbandoned`: the copies that runs left in a table without a commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.tables.copies import (
    OLD_SECONDS,
    AbandonedReport,
    delete_abandoned,
    find_unreferenced,
)
from sbbf_tool.frozen import opt
from sbbf_tool.reports.rows import Row
from sbbf_tool.verbs.verb import AllFiles, CombiningVerb


class FindAbandoned(CombiningVerb[None, AbandonedReport]):
    """List the copies that runs left in a table at least `seconds` ago, and `delete` them. No file
    of the table is opened."""

    name = "abandoned"
    report = type(None)
    seconds: float = opt("The least age of a copy", default=OLD_SECONDS)
    delete: bool = opt("Delete the copies", default=False)

    def of_files(self) -> FindAbandoned:
        raise UsageError(
            "abandoned copies are those in a table", hint="give its root as the only path"
        )

    def combine(self, rows: Iterable[Row[Any]], files: AllFiles) -> AbandonedReport:
        table = files.table
        copies, younger = find_unreferenced(table, self.seconds)
        if self.delete:
            delete_abandoned(table, copies, self.seconds)
        return AbandonedReport(table.name, tuple(copies), self.delete, len(younger))
