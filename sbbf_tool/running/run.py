"""`run`: carry a verb to files, wherever they are.

# reads lazily, in the order of the files
for row in run(Probe("user_id", [42]), "lake/**"):
    print(row.path, row.report)

# returns the answer about all files
run(Advise(), "lake")

# works when called, and returns a `Summary`
run(AddFilter(spec), "lake", edit=Edit(in_place=True))

# streams rows; a table commits when the block ends
with run(AddFilter(spec), "lake", edit=Edit(in_place=True), errors="return") as rows:
    for row in rows: ...
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload

from sbbf_tool.arguments import as_iterable
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.running.outcome import Summary
from sbbf_tool.running.plan import Rows
from sbbf_tool.running.request import RunRequest
from sbbf_tool.verbs.verb import ChangingVerb, CombiningVerb, ReadingVerb, Verb

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.reports.change import ChangeReport
    from sbbf_tool.reports.rows import Row
    from sbbf_tool.running.work import Runner
    from sbbf_tool.storage.inputs import FileSystemLike, Readable
    from sbbf_tool.verbs.advise import AdviceReport

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

    class RunOptions(TypedDict, total=False):
        """The options of every run; see `run`."""

        where: str | None
        keys: KeysLike
        max_page_bytes: MaxPageBytes
        strict: bool
        jobs: int | None
        on: Runner | None
        state: str | os.PathLike[str] | None
        all_versions: bool
        as_files: bool
        index: str | None
        table_format: str | None
        quick: bool


Report = TypeVar("Report")
Whole = TypeVar("Whole")
Changed = TypeVar("Changed", bound="ChangeReport")


@overload
def run(verb: CombiningVerb[Any, Whole], paths: Paths, **options: Unpack[RunOptions]) -> Whole: ...  # type: ignore[overload-overlap]
@overload
def run(
    verb: ReadingVerb[Report], paths: Paths, **options: Unpack[RunOptions]
) -> Iterator[Row[Report]]: ...
@overload
def run(
    verb: ChangingVerb[Any],
    paths: Paths,
    *,
    edit: Edit,
    errors: Literal["raise"] = "raise",
    **options: Unpack[RunOptions],
) -> Summary: ...
@overload
def run(
    verb: ChangingVerb[Changed],
    paths: Paths,
    *,
    edit: Edit,
    errors: Literal["return"],
    **options: Unpack[RunOptions],
) -> Rows[Changed]: ...
def run(
    verb: Verb[Any],
    paths: Paths,
    *,
    edit: Edit | None = None,
    errors: str = "raise",
    **options: Unpack[RunOptions],
) -> Any:
    """Carry `verb` to each of the files. Return an iterator of the rows, one per file as soon as it
    is done; for `Advise`, the report on all files; for a verb that changes files, the `Summary`, or
    with `errors="return"` the rows, and the summary after the last one.

    Each of `paths`, which may be an iterator, is a file, a folder, a glob or a URL; or there is one
    path: a table, by its root or name, or an index of files, of which those are not opened that
    certainly hold none of the values that a verb looks for. `where` is a predicate on partitions,
    such as `dt >= '2026-01-01'`. `keys`, `max_page_bytes` and `strict` are as in `ReadingVerb`; the
    only file of a run is always treated strictly.
    `jobs` is the maximum number of workers on this machine (one per core if None); `on` is another
    runner, such as `spark.runner.Spark`. `state` is an SQLite file that keeps outcomes: files that
    are unchanged since are not opened. `edit` says how files are changed. `all_versions` means the
    files of all retained versions of a table, with the rows that any version has deleted;
    `as_files`, the files below its root, as if it were no table. `table_format`, in lower case,
    chooses between the two tables of a folder. `index` is an index of the only path, which leaves
    out files as if it were the path. With `quick`, an index answers without a listing of its lake,
    so that new files are missed.

    A failure in one file is its row. Raises UsageError (also after the last row, if no file has a
    column that the verb names), UnreadableError (a name that means no file) and RefusedError (a
    table that cannot be changed) for the run as a whole.
    """
    if not isinstance(verb, Verb):
        raise UsageError(f"run takes a verb, such as Verify(), not {verb!r}")
    if errors not in ("raise", "return"):
        raise UsageError(f"errors must be 'raise' or 'return', not {errors!r}")
    if errors != "raise" and not verb.changes:
        raise UsageError("errors is for verbs that change files: a row has the error of its file")
    if verb.combines:
        # The answer names the paths after the last row.
        paths = tuple(as_iterable(paths))
    plan = RunRequest(paths, edit=edit, **options).plan(verb)
    if verb.combines:
        return plan.combine()
    rows = plan.rows(raises=True)
    if not verb.changes:
        return iter(rows)
    if errors == "return":
        return rows
    with rows:
        pass
    return rows.summary


def advise(  # noqa: PLR0913  one keyword for each option of the command
    names: Readable | Iterable[Readable],
    *,
    where: str | None = None,
    jobs: int | None = None,
    queries: Iterable[str] = (),
    fpp: float | None = None,
    engines: Iterable[str] = (),
    engine_names: Iterable[str] = (),
    all_types: bool = False,
    writer: str | None = None,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    filesystem: FileSystemLike | None = None,
) -> AdviceReport:
    """Advise on the columns of all these files together; see `Advise`, and `run` for `where` and
    `jobs`.

    Each of `names` is a file, a folder, a glob or a URL, or there is one table. Open binary files,
    and paths in a `filesystem` (of pyarrow or fsspec), are files too; then the report has no fix.
    `engine_names` is the name of `engines` in `Advise`.
    """
    from sbbf_tool.verbs.advise import Advise, advise_open

    verb = Advise(queries, fpp, engines or engine_names, all_types, writer)
    inputs = list(as_iterable(names))
    key_set = Keys.of(keys)
    paths = [os.fsdecode(name) for name in inputs if isinstance(name, str | bytes | os.PathLike)]
    if filesystem is not None or len(paths) < len(inputs):
        context = Context(key_set, PageLimit.of(max_page_bytes), strict=False, jobs=jobs)
        return advise_open(verb, inputs, filesystem, context)
    return run(verb, paths, where=where, jobs=jobs, keys=key_set, max_page_bytes=max_page_bytes)
