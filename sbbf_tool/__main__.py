"""`sbbf`, also as `python -m sbbf_tool`: run the command line, and handle every error that it or
its imports do not handle.

Python exits with 1 after an unhandled error, but for this tool 1 is an answer. So this module
reports such errors and exits with 70.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings

# Those of `errors`, whose import may fail, or be interrupted.
INTERRUPTED = 130
INTERNAL_ERROR = 70

# Parsing a wide footer makes a million objects; at the default of 700, looking for garbage among
# them takes as long as making them.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Run the command line and end the process with its exit code: 130 after an interrupt, 70 after
    an unhandled error."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        _end_at_interrupt(INTERRUPTED)  # no file is open yet
        _open_missing_streams()
        if not sys.warnoptions:  # those of libraries, about themselves
            warnings.simplefilter("ignore")
        # Interpreters that this process starts must not import modules from the current folder.
        os.environ.setdefault("PYTHONSAFEPATH", "1")
        from sbbf_tool.cli import main as command_line

        code = command_line(sys.argv[1:])
        _end_at_interrupt(code)  # no file is open any more
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:
        code = _report(error)
    # Python would look for garbage once more, which takes a twelfth of the time of a short command.
    gc.freeze()
    sys.exit(code)


def _end_at_interrupt(code: int) -> None:
    """End the process at a SIGINT: the traceback of an import, or of the end of a thread, is of no
    use."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(code))


def _open_missing_streams() -> None:
    """Give closed standard streams to the null device, so that no file gets their number: libraries
    would print into that file.

    The mode of each is the one in which its use fails, as that of a closed stream does.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)


def _report(error: BaseException) -> int:
    """Print one line on stderr, and the traceback with `--verbose`; return the exit code. Ignore
    errors of stderr, which may be closed or full."""
    try:
        from sbbf_tool.display import escape, redact_text
        from sbbf_tool.errors import describe_unexpected, exit_code_of

        if not {"-v", "--verbose"}.isdisjoint(sys.argv):
            import traceback

            for line in "".join(traceback.format_exception(error)).splitlines():
                print(escape(redact_text(line)), file=sys.stderr)
        print(escape(f"sbbf: {describe_unexpected(error)}"), file=sys.stderr, flush=True)
        return exit_code_of(error)
    except Exception:
        return INTERNAL_ERROR


if __name__ == "__main__":
    main()
