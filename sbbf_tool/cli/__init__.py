"""The command line: parse arguments, call an operation, render its report. Nothing is computed
here.

Each command is a module of this package that is imported when the command is called; an operation
is imported when it is called. So `sbbf --help` loads little more than click.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from errno import EBADF
from io import TextIOWrapper

import click

from sbbf_tool.cli.command import CommandEntry, CommandsByName
from sbbf_tool.cli.output import (
    BROKEN_PIPE,
    complain,
    patient_output,
    say_traceback,
    start_run,
    terminal,
)
from sbbf_tool.display import escape
from sbbf_tool.errors import (
    INTERNAL_ERROR,
    INTERRUPTED,
    SbbfError,
    UnreadableError,
    UsageError,
    WriteError,
    describe_unexpected,
    exit_code_of,
)
from sbbf_tool.storage.interrupts import SIGNALS, forget_interrupt, interrupt

_SUMMARIES = {
    "Look": {
        "inspect": "Show which columns have Bloom filters, and how selective they are.",
        "probe": "Query filters: test whether files may hold values.",
        "explain": "Show which row groups a query skips, and in which engines.",
        "advise": "Recommend columns for filters, and estimate the savings.",
    },
    "Verify": {
        "verify": "Verify filters against the data.",
        "check": "Check filters against rules, as a gate for CI.",
    },
    "Change": {
        "apply": "Give files the filters that sbbf.toml declares.",
        "add-filter": "Add Bloom filters to columns of existing files.",
        "remove-filter": "Remove Bloom filters.",
        "resize": "Make filters smaller without reading the data.",
        "repair": "Fix defects of filters by writing a new footer.",
    },
    "Reference": {
        "engines": "List which query engines use filters, for each type.",
        "rule": "Explain a rule of sbbf check, or of an extension.",
        "schema": "Print the JSON Schema of a document.",
        "size": "Compute the size of a filter, its number of values or its false-positive rate.",
        "help": "Explain exit codes, tables, Spark or a command on one screen.",
    },
}
"""What each command does, in the order of `--help`, by section; commands of extensions follow. The
module of a command has its name."""
_TAKE_OPTIONS = ("explain", "repair")
"""The commands to which extensions may add options."""


def _list_commands() -> dict[str, CommandEntry]:
    commands = {}
    for summaries in _SUMMARIES.values():
        for name, summary in summaries.items():
            module = f"{__name__}.{name.replace('-', '_')}"
            commands[name] = CommandEntry(module, summary, name in _TAKE_OPTIONS)
    return commands


COMMANDS = _list_commands()
EVERYDAY = ("inspect", "probe", "explain", "advise", "add-filter", "verify", "check")


class _Terminated(SystemExit):
    """The process received SIGTERM or SIGHUP: as after Ctrl-C, open work is undone and cleaned up
    before the process ends.

    This is a SystemExit with an exit code, so that the process ends with that code even if the
    signal arrives after every handler.
    """


def _be_verbose(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    terminal().verbose |= value


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from sbbf_tool.cli import versions

    for line in versions.describe(whole=terminal().verbose):
        click.echo(escape(line))
    ctx.exit()


@click.group(
    cls=CommandsByName,
    commands=COMMANDS,
    sections=_SUMMARIES,
    everyday=EVERYDAY,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="sbbf --help lists all commands, sbbf COMMAND -h explains one, sbbf help TOPIC "
    "explains settings, exit-codes, spark or tables.",
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, the hash kernel and the Thrift reader in use; with --verbose, "
    "all that a bug report needs.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    is_eager=True,  # before --version, which it changes
    callback=_be_verbose,
    help="Print what is being done, and where an error came from, to standard error.",
)
def cli() -> None:
    """Inspect, query, verify and add Bloom filters in existing Parquet files.

    \b
    $ sbbf add-filter events.parquet -c user_id --in-place
    """


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of this process, and return its exit code.

    Every error is one line on stderr; `--verbose` adds the traceback.
    """
    if "_SBBF_COMPLETE" in os.environ:
        from click.shell_completion import shell_complete

        with suppress(Exception):  # an error would only disturb the line that is being written
            return shell_complete(cli, {}, "sbbf", "_SBBF_COMPLETE", os.environ["_SBBF_COMPLETE"])
        return 1
    for stream in (sys.stdout, sys.stderr):
        # A file name may hold bytes that are not text, and a terminal may lack characters that
        # occur in a file's values.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        for number in SIGNALS:
            if signal.getsignal(number) in (signal.SIG_IGN, None):  # nohup ignores SIGHUP
                continue
            is_interrupt = number == signal.SIGINT
            signal.signal(number, _interrupt if is_interrupt else _terminate)
        return run(sys.argv[1:] if args is None else list(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except _Terminated as error:
        return int(error.code or 0)
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _terminate(signal_number: int, frame: object) -> None:
    interrupt(_Terminated(128 + signal_number))


def _interrupt(signal_number: int, frame: object) -> None:
    interrupt(KeyboardInterrupt())


def run(args: list[str]) -> int:
    """Run the command line in this process; return its exit code even if the output fails."""
    start_run()
    with patient_output() as output:
        try:
            code = _run(args)
        finally:
            forget_interrupt()
        output.flush()
        if output.error is not None and not output.has_broken_pipe:
            reason = (output.error.strerror or "cannot be written").lower()
            message = f"standard output: {reason}"
            if output.error.errno == EBADF:
                message = "standard output is closed"
            code = _fail(output.error, message, WriteError.exit_code)
    return code


def _run(args: list[str]) -> int:
    context: click.Context | None = None
    try:
        with cli.make_context("sbbf", args) as context:
            return _code_of(cli.invoke(context))
    except click.exceptions.Exit as stop:
        if stop.exit_code in (0, UsageError.exit_code, BROKEN_PIPE):
            return stop.exit_code
        message = f"internal error: click ended with {stop.exit_code}; please report it"
        return _fail(stop, message, INTERNAL_ERROR)
    except (click.Abort, KeyboardInterrupt, _Terminated) as interrupt:
        for line in getattr(interrupt, "__notes__", ("interrupted",)):
            complain(f"sbbf: {line}", kind="note")
        if isinstance(interrupt, _Terminated):
            return int(interrupt.code or 0)
        return INTERRUPTED
    except (click.ClickException, SbbfError) as error:
        from sbbf_tool.cli.mistakes import describe_mistake

        code = UsageError.exit_code if isinstance(error, click.ClickException) else error.exit_code
        return _fail(error, describe_mistake(error, context), code)
    except FileNotFoundError as error:
        return _fail_without_file(error)
    except BaseException as error:
        # SystemExit counts too, whatever its code: if a library ends the process, the command has
        # not answered.
        return _fail(error, describe_unexpected(error), exit_code_of(error))


def _code_of(result: object) -> int:
    """Return the exit code of a command that has returned this, which must be a code or None."""
    if result is None:
        return 0
    if type(result) is int:
        return result
    message = f"internal error: a command ended with {result!r}; please report it"
    return _fail(TypeError(result), message, INTERNAL_ERROR)


def _fail_without_file(error: FileNotFoundError) -> int:
    """Fail because the working folder is gone, or else because of a defect."""
    from sbbf_tool.storage.names import ensure_working_folder

    try:
        ensure_working_folder()
    except UnreadableError as reason:
        return _fail(error, str(reason), reason.exit_code)
    return _fail(error, describe_unexpected(error), INTERNAL_ERROR)


def _fail(error: BaseException, message: str, exit_code: int) -> int:
    if terminal().verbose:
        say_traceback(error)
    complain(f"sbbf: {message}")
    return exit_code
