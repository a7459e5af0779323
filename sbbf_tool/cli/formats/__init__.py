"""The output formats of reports, each of which is imported when it is used.

An output gets each report as soon as it is made, and writes it at once, so that memory does not
grow with the number of files. Formats that sum up the findings of all files write the sums at the
end.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, NamedTuple, TypeVar, cast

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.options import COMMAND_LINE, OUTPUT, Decorator, with_options
from sbbf_tool.cli.output import PatientBinary, PatientOutput, is_terminal, terminal
from sbbf_tool.cli.settings import used_config
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.extension import load
from sbbf_tool.frozen import Frozen

if TYPE_CHECKING:
    from sbbf_tool.cli.commits import Commits
    from sbbf_tool.cli.page import Page
    from sbbf_tool.reports.rows import Row
    from sbbf_tool.running.plan import Plan


MARK = b"sbbf.report"
"""A key in the metadata of Parquet files that are reports, so that a report never replaces a file
of data."""
_FOOTER_BYTES = 1 << 16
_JSON_MARKS = (b'"sbbf.', b"sarif")
"""What is at the beginning of a report in JSON: the name of its schema, or that of SARIF."""
_JSON_START_BYTES = 256


class StandardOutput:
    """Standard output. Its errors are kept until the command ends."""

    def __init__(self) -> None:
        self.encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self.is_terminal = is_terminal(sys.stdout)

    def write(self, text: str) -> None:
        click.echo(text, nl=False, color=True)

    def binary(self) -> BinaryIO:
        """Return the stream for bytes. Raises UsageError for a terminal."""
        if is_terminal(sys.stdout):
            raise UsageError(
                "a terminal cannot show this format: redirect the output, or save it with "
                "--report FILE"
            )
        sys.stdout.flush()
        if isinstance(sys.stdout, PatientOutput):
            return cast(BinaryIO, PatientBinary(sys.stdout))
        return sys.stdout.buffer


class _File:
    encoding = "utf-8"
    is_terminal = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(text.encode())

    def binary(self) -> BinaryIO:
        return self._stream


OutputTarget = StandardOutput | _File
"""`encoding` is that of the text; formats that can escape the characters that it lacks."""


@contextmanager
def open_file(path: str) -> Iterator[OutputTarget]:
    """Yield a target that becomes the file when the block ends without an error. Raises
    RefusedError and WriteError.

    A Parquet or JSON file that is not a report is not replaced.
    """
    from sbbf_tool.storage.whole import write_whole

    if _is_data(path):
        raise RefusedError(
            "the file holds data and is not a report",
            file=path,
            hint="name another, or remove it first",
        )
    with write_whole(path, overwrite=True) as stream:
        yield _File(stream)


def _is_data(path: str) -> bool:
    """Return whether a path is a Parquet or JSON file that is no report, such as one of the log of
    a table."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            start = stream.read(_JSON_START_BYTES)
            if start.startswith(b"{"):
                return not any(mark in start for mark in _JSON_MARKS)
            start = start[:4]
            size = os.fstat(stream.fileno()).st_size
            stream.seek(-min(_FOOTER_BYTES, size), os.SEEK_END)
            end = stream.read(_FOOTER_BYTES)
    except OSError:
        return False
    return start in (b"PAR1", b"PARE") and end.endswith(start) and MARK not in end


Report = TypeVar("Report")

TABLE = "table"
FORMATS = (TABLE, "json", "csv", "markdown", "parquet")
"""The formats of every command that reports rows."""
FINDING_FORMATS = (*FORMATS, "junit", "sarif", "github")
"""The formats of `sbbf check`."""
NAMES = "names"
ANSWER_FORMATS = (*FORMATS, NAMES, "names0")
"""The formats of `sbbf probe`."""

_SUFFIXES = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".parquet": "parquet",
    ".sarif": "sarif",
    ".xml": "junit",
}
_CLASSES = {
    **dict.fromkeys((TABLE, "markdown"), "lines:PageOutput"),
    **dict.fromkeys(("csv", "parquet"), "records:Records"),
    **dict.fromkeys((NAMES, "names0"), "lines:Names"),
    "json": "lines:Documents",
    "junit": "ci:Suites",
    "sarif": "ci:Sarif",
    "github": "ci:Annotations",
}


class Item(Frozen):
    """One report on its way to the outputs: that of a file, or the only one of a command."""

    schema: str
    report: Any
    row: Row[Any] | None = None
    shown: Any = None
    """The report for people, with names relative to the root of a table."""
    own_document: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """Return the JSON document: of the report, or of the error of a file without one."""
        if self.own_document is not None:
            return self.own_document
        if self.report is not None or self.row is None:
            return render.document(self.schema, self.report)
        row = self.row
        return render.document(
            "file",
            {
                "file": row.path,
                "status": row.status,
                "reason": row.reason,
                "exit_code": row.exit_code,
            },
        )


class View(Generic[Report]):
    """How one command shows its reports; each report is added once, and then shown on each page."""

    schema: str
    """Name of the schema of a report's JSON document: `inspect` stands for `sbbf.inspect`. For
    commands over files, it is the name of the verb."""
    done = "done"
    """Word for files on which the command did its work."""
    skipped = "skipped"
    """Word for files with nothing to do."""
    lists_answers = False
    """Whether the lines about the files are the answer of the command, so that a pipe gets all of
    them."""
    sums: tuple[str, ...] = ()
    """Names, in the summary document, of the numbers that `add` counts in `total`."""
    not_undone = ""
    """Why no command undoes a change of this command, if none does."""
    plan: Plan
    """The run, set before its first report."""
    undo: Any = None
    """Set if the command changes files in place."""
    commits: Commits | None = None
    """Set if the command changes a table."""
    row: Any = None
    """The class of the reports or, for commands over files, of the rows of files; None for that of
    the work."""
    is_single = True
    """Whether the command was given one file, whose report is then the whole output."""
    has_rows_of_files = False
    """Whether formats of rows get one row per file, as for commands that change files, instead of
    the rows of each report."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter(dict.fromkeys(self.sums, 0))
        self.outcomes: Counter[str] = Counter()
        """Number of files by status, or by the reason of unopened ones; set before `show_end`."""

    def add(self, report: Report, row: Row[Any]) -> int:
        """Count one more report, print to standard error what failed in it, return its code."""
        return 0

    def prepare(self, report: Report) -> Report:
        """Return the report as this command counts and shows it."""
        return report

    def show(self, page: Page, report: Report) -> None:
        """Print the full report of the only file."""
        self.show_line(page, report)

    def show_line(self, page: Page, report: Report) -> None:
        """Print the important part of one of several reports: a line, or nothing."""

    def show_end(self, page: Page, files: str) -> None:
        """Print the results of all reports together, and a last line that begins with `files`, the
        counts of files by status."""
        page.say(files)

    def notes(self) -> Iterable[str]:
        """Return what the names of files do not show."""
        return ()

    def unlisted(self) -> Iterable[str]:
        """Return what the rows of reports do not show."""
        return ()

    def show_undo(self, page: Page) -> None:
        """Print the commits of a table, and how to undo the changes."""
        if self.undo is not None:
            self.undo.show(page)
        if self.commits is not None:
            self.commits.show(page)

    def totals(self) -> dict[str, Any]:
        """Return the sums for the summary document."""
        return dict(self.total)

    def answer(self, codes: set[int]) -> int:
        """Return the exit code of the command, given the exit codes of all files."""
        return max(codes, default=0)


class Conclusion(NamedTuple):
    """What sums up the reports of several files; empty for the only report."""

    document: dict[str, Any] | None = None
    files: str = ""
    """The counts of the files."""


class Output:
    """What writes reports in the format of this name; `begin` prepares it."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._name = name
        self._view = view
        self._target = target
        self.begin()

    def begin(self) -> None:
        """Do nothing, unless the output begins before the first report."""

    def add(self, item: Item) -> None:
        """Add a report."""
        raise NotImplementedError

    def end(self, sums: Conclusion) -> None:
        """Finish the output after the last report."""
        raise NotImplementedError


class Outputs(Frozen):
    """The formats that the command line states: on standard output, and in a report file."""

    format: str
    report: str | None
    report_format: str

    @property
    def formats(self) -> set[str]:
        """The formats of all outputs."""
        if self.report is None:
            return {self.format}
        return {self.format, self.report_format}

    @contextmanager
    def open(self, view: View[Any]) -> Iterator[list[Output]]:
        """Yield the outputs. The report file appears if the block ends without an error. Raises
        UsageError, RefusedError, WriteError."""
        with ExitStack() as stack:
            outputs = []
            if not terminal().quiet:
                outputs.append(_output(self.format, view, StandardOutput()))
            if self.report is not None:
                target = stack.enter_context(open_file(self.report))
                outputs.append(_output(self.report_format, view, target))
            yield outputs

    def print(
        self,
        schema: str,
        report: Any,
        show: Callable[[Page, Any], None],
        document: dict[str, Any] | None = None,
    ) -> None:
        """Print, and save, the only report of a command; `document` is its JSON document if it
        differs from that of any report."""
        view = View[Any]()
        view.schema = schema
        view.row = type(report)
        view.show = show  # type: ignore[assignment,method-assign]
        item = Item(schema, report, shown=report, own_document=document)
        with self.open(view) as outputs:
            for output in outputs:
                output.add(item)
                output.end(Conclusion())


TEXT = Outputs(TABLE, None, TABLE)


def _output(name: str, view: View[Any], target: OutputTarget) -> Output:
    output_class = load(f"sbbf_tool.cli.formats.{_CLASSES[name]}")
    return cast(Output, output_class(name, view, target))


def output_options(choices: tuple[str, ...] = FORMATS) -> Decorator:
    """Add the options that pass `outputs` to a command: `--format` and `--report`."""
    formats = (
        f"Format of the output, or of --report: {', '.join(choices[:-1])} or "
        f"{choices[-1]}.  [default: table]"
    )
    own = ", ".join(name for name in choices if name not in FORMATS)
    suffixes = f"Also save the results in this file: {_suffixes(choices, ' ')}."
    options = (
        OUTPUT.option(
            "--format",
            "form",
            formats,
            type=click.Choice(choices),
            metavar="FORMAT",
            introduction="Results are on standard output, everything else on standard error.",
            peculiarity=f"Here, --format also takes {own}." if own else "",
        ),
        OUTPUT.option("--report", "report_path", suffixes, place=COMMAND_LINE, metavar="FILE"),
    )

    def decorate(function: Any) -> Any:
        @with_options(*options)
        @wraps(function)
        def command(*args: Any, form: str | None, report_path: str | None, **options: Any) -> Any:
            outputs = choose_outputs(form, report_path, choices)
            if outputs.report is not None:
                _ensure_no_input(outputs.report)
            return function(*args, outputs=outputs, **options)

        return command

    return decorate


def _ensure_no_input(report: str) -> None:
    """Raise UsageError if a report would replace another file that the command line names, such as
    a list of values, the keys or the new file of a change, or be data."""
    from sbbf_tool.storage.listing import ensure_unlisted

    paths = list(_named_files())
    if not os.path.lexists(report):
        ensure_unlisted(report, paths, "report")
    place = os.path.realpath(report)
    if any(os.path.realpath(path) == place for path in paths):
        raise UsageError(
            "the report would replace a file that the command line names too",
            file=report,
            hint="name another",
        )


def _named_files() -> Iterator[str]:
    """Yield the words of the command line that may name files, and the files of keys and settings
    that the environment names."""
    context = click.get_current_context()
    for name, value in context.params.items():
        if name == "report_path":
            continue
        for word in value if isinstance(value, tuple) else (value,):
            if isinstance(word, str) and "\0" not in word:
                yield word.removeprefix("@")
    keys = context.params.get("keys")
    if keys is not None and keys.path is not None:
        yield keys.path
    config = used_config(context)
    if config is not None:
        yield config.path


def choose_outputs(
    form: str | None, report: str | None, choices: tuple[str, ...] = FORMATS
) -> Outputs:
    """Return the outputs of these options. With a report, `form` is the format of the report.
    Raises UsageError."""
    if report is None:
        return Outputs(form or TABLE, None, TABLE)
    suffix = os.path.splitext(report)[1].lower()
    chosen = form or _SUFFIXES.get(suffix)
    if chosen not in choices:
        suffixes = _suffixes(choices, ", ")
        raise UsageError(
            f"the name of a report must end with one of {suffixes}, unless --format states its "
            "format",
            file=report,
        )
    return Outputs(TABLE, report, chosen)


def _suffixes(choices: tuple[str, ...], separator: str) -> str:
    return separator.join(suffix for suffix, name in _SUFFIXES.items() if name in choices)
