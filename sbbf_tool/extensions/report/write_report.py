"""`write_report`: one HTML page, with pictures, about the filters of any number of files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_iterable
from sbbf_tool.extensions.report.page_report import PageReport
from sbbf_tool.extensions.report.write_page import write_page
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.table import find_table
from sbbf_tool.storage.places import find_single_file

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes


def write_report(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    queries: Iterable[str] = (),
    against: str | os.PathLike[str] | None = None,
    quick: bool = False,
    engine_names: Iterable[str] = (),
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
) -> PageReport:
    """Write one HTML page, with pictures, about the filters of files; each of `paths` is a file, a folder, a glob, a URL or a table.

    The page loads nothing and needs no script. It replaces `output`, in one step, if that is a page or does not exist. `queries`
    are as in `advise`: the page shows what excludes each row group. `against` is a report of an earlier `inspect`, saved as JSON, with
    which the page compares the files. The findings are those of `check`; `quick` leaves out the rules that read data;
    `engine_names` are the engines that read the files. Files that cannot be
    read are listed on the page; if there is only one file, its error is raised instead. Raises UsageError (an invalid query, a column that
    no file has, a report that is none of `inspect`), RefusedError and WriteError (the page cannot be written).
    """
    names = tuple(os.fsdecode(path) for path in as_iterable(paths))
    table = find_table(names[0]) if len(names) == 1 else None
    selection = Selection(names, file=find_single_file(names[0]) if len(names) == 1 and table is None else None, table=table)
    run = partial(LocalRunner().run, selection)
    options: dict[str, Any] = {"queries": queries, "against": against, "quick": quick, "engine_names": engine_names}
    options |= {"keys": keys, "max_page_bytes": max_page_bytes}
    return write_page(run, names, output, is_single=selection.file is not None, **options)
