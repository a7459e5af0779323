"""A verb that calls a function, to test what runs do with any verb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbbf_tool.editing.edit import Edit
from sbbf_tool.file.context import Context
from sbbf_tool.frozen import opt
from sbbf_tool.reports.rows import Row
from sbbf_tool.running.run import run
from sbbf_tool.verbs.verb import Needs, ReadingVerb


class Call(ReadingVerb[Any]):
    """Report what `function` returns for each path; with `data`, it takes the number of threads
    too."""

    name = "call"
    report = str
    function: Callable[..., Any] = opt("The function")
    data: bool = opt("Whether it reads data", default=False)
    threads: bool = opt("Whether it takes the number of threads", default=False)

    def needs(self) -> Needs:
        return Needs(data=self.data, threads=self.threads)

    def carry(self, path: Any, context: Context, edit: Edit | None = None) -> Any:
        return self.function(path, context.jobs) if self.threads else self.function(path)


def rows_of(verb: Any, paths: Any, edit: Edit | None = None, **options: Any) -> list[Row[Any]]:
    """Run a verb over files, to the end."""
    if edit is None:
        return list(run(verb, paths, **options))
    with run(verb, paths, edit=edit, errors="return", **options) as rows:
        return list(rows)
