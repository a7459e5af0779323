"""`sbbf explain --run`: print what query engines measured."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from sbbf_tool.cli.choice import VerbChoice
from sbbf_tool.cli.options import COLUMNS, READING, Option, PureSetting
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.render import value as render_value
from sbbf_tool.cli.tables import BYTES, COUNT, SENTENCE, WORD, Heading
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sbbf_tool.cli.files import Files
    from sbbf_tool.extensions.engine_runs.reports import (
        EngineRun,
        EngineRunsReport,
        Measurement,
    )
    from sbbf_tool.extensions.engine_runs.run import RunEngines

_COLUMNS = (
    Heading("engine", SENTENCE),
    Heading("filters", WORD),
    Heading("rows", COUNT),
    Heading("row groups read", COUNT, 1),
    Heading("bytes read", BYTES, 2),
    Heading("seconds", WORD, 3),
)


_LIMIT = "sbbf.timeout"


def make_options() -> list[click.Option]:
    """Make the options of `explain`: with --run, the engines answer instead."""

    def choose(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> None:
        if names:
            VerbChoice(partial(_make_verb, names), _report, "running query engines").choose()

    def limit(ctx: click.Context, param: click.Parameter, seconds: float) -> None:
        ctx.meta[_LIMIT] = seconds

    of_names = (
        "Run the query in these engines, separated by commas, on the files or the table and on "
        "copies without filters, and print rows, row groups, bytes and time of both: duckdb, "
        "datafusion, spark, clickhouse, polars, pyarrow, or all that are installed (repeat for "
        "more). Exit code 1: filters change the result of an engine; 3: an engine fails."
    )
    of_limit = "Time for each run of an engine (with --run).  [default: 300]"
    return [
        Option(
            ["--run"],
            topic=COLUMNS,
            place=READING,
            multiple=True,
            metavar="NAMES",
            expose_value=False,
            callback=choose,
            help=of_names,
        ),
        PureSetting(
            ["--timeout"],
            type=float,
            default=300.0,
            metavar="SECONDS",
            expose_value=False,
            callback=limit,
            help=of_limit,
        ),
    ]


def _make_verb(
    names: tuple[str, ...], files: Files, column: str, values: Sequence[str | None]
) -> RunEngines:
    """Return the verb that runs the query in these engines."""
    from sbbf_tool.extensions.engine_runs.run import RunEngines

    if len(values) > 1:
        raise click.UsageError("engines are run for one value")
    if click.get_current_context().get_parameter_source("engines") is ParameterSource.COMMANDLINE:
        raise click.UsageError("give one of --engines and --run")
    if files.keys is not None:
        raise click.UsageError(
            "query engines are run without keys: --run and --keys exclude each other"
        )
    if files.spark is not None:
        raise click.UsageError(
            "--run runs engines on this machine, and --on spark does not apply to it"
        )
    stripped = (name.strip() for name in ",".join(names).split(","))
    engines = tuple(name for name in stripped if name)
    return RunEngines(column, values[0], engines, click.get_current_context().meta[_LIMIT])


def _report(files: Files, report: EngineRunsReport) -> int:
    """Print the report, and return its exit code."""
    files.outputs.print("explain-run", report, _show_report)
    rows = {}
    for run in report.engines:
        _say_problem(run)
        if run.without_filters is not None:
            rows[run.name] = run.without_filters.rows
    if len(set(rows.values())) > 1:
        counts = ", ".join(f"{name} {number:,}" for name, number in rows.items())
        complain(
            "sbbf: warning: even without filters, the engines return different numbers of rows: "
            f"{counts}",
            kind="warning",
        )
    return report.exit_code


def _say_problem(run: EngineRun) -> None:
    """Print to standard error what is wrong with a run: filters that change the result, an engine
    that fails or is not installed."""
    if run.outcome == "rows differ":
        hint = f"run sbbf verify, and sbbf engines {run.engine}"
        complain(f"sbbf: {run.name} {run.version}: WRONG RESULT with filters: {run.reason}; {hint}")
    elif run.outcome == "fails with filters":
        complain(
            f"sbbf: {run.name} {run.version}: FAILS with filters, and succeeds without them: "
            f"{run.reason}"
        )
    elif run.outcome == "failed":
        complain(f"sbbf: {run.name}: {run.reason}")
    elif run.outcome == "not installed":
        complain(f"sbbf: {run.name} is not installed; to install it: {run.install}", kind="note")


def _show_report(page: Page, report: EngineRunsReport) -> None:
    path = report.path
    if report.table_format is not None:
        path += f", {report.table_format} table"
    files = format_count(report.files, "file")
    row_groups = format_count(report.row_groups, "row group")
    page.say(
        f"{path}: {files}, {row_groups}, {page.bytes(report.bytes)}; column {report.column}, "
        f"{report.type}, value {render_value(report.value)}"
    )
    filters = format_count(report.filters, "filter")
    exclude = "it excludes" if report.filters == 1 else "they exclude"
    excluded = format_count(report.excluded_by_filters, "row group")
    page.say(
        f"{filters}; {exclude} {excluded} more than min, max and dictionaries, which not every "
        "engine queries"
    )
    if report.note is not None:
        page.say(f"note: {report.note}")
    rows = []
    for run in report.engines:
        name = f"{run.name} {run.version}"
        if run.without_filters is not None:
            rows.append((name, "without", *_cells_of(run.without_filters)))
        if run.with_filters is not None:
            rows.append((name, "with", *_cells_of(run.with_filters)))
    page.table(_COLUMNS, rows)
    for run in report.engines:
        page.say(f"{run.name}: {conclude(run)}")


def _cells_of(measured: Measurement) -> tuple[object, ...]:
    return (
        measured.rows,
        measured.row_groups_read,
        measured.bytes_read,
        f"{measured.seconds:.3f}",
    )


def conclude(run: EngineRun) -> str:
    """Say in one line whether the result is right, and whether the engine uses the filters."""
    reason = f": {run.reason}" if run.reason else ""
    if run.outcome != "equal":
        return f"{run.outcome}{reason}"
    rows = f"equal rows{_describe_reading(run)}"
    if run.uses_filters is None:
        return f"{rows}; whether it uses the filters is unknown{reason}"
    evidence = ", shown by zeroed pages" if run.evidence == "zeroed pages" else ""
    if not run.uses_filters:
        return f"{rows}; it does not use the filters{evidence}"
    skipped = ""
    if run.row_groups_skipped:
        row_groups = format_count(run.row_groups_skipped, "row group")
        skipped = f" and skips {row_groups} by them"
    return f"{rows}; it uses the filters{skipped}{_compare_bytes(run)}{evidence}"


def _describe_reading(run: EngineRun) -> str:
    """Say whether the engine read the table, and which columns it did not read."""
    text = " (read as a table)" if run.reads == "table" else ""
    if run.columns_left_out:
        plural = "s" if len(run.columns_left_out) > 1 else ""
        names = ", ".join(run.columns_left_out)
        text += f", without column{plural} {names}, whose type{plural} it cannot read"
    return text


def _compare_bytes(run: EngineRun) -> str:
    if run.with_filters is None or run.without_filters is None:
        return ""
    with_filters = run.with_filters.bytes_read
    without = run.without_filters.bytes_read
    if with_filters is None or without is None:
        return ""
    text = f", reading {with_filters:,} bytes instead of {without:,}"
    if with_filters >= without:
        text += ": the filters take more than they save"
    return text
