"""`sbbf`, also as `python -m sbbf_tool`: the command line, with the handler of last resort around it and around its imports.

Python ends with 1 after an error that nothing handles, and here 1 is an answer. So every error ends in this module, with 70.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

INTERRUPTED = 130
INTERNAL_ERROR = 70

# A wide footer becomes a million objects, none of them garbage, and at the usual 700 to look for some takes as long as to make them.
OBJECTS_BETWEEN_COLLECTIONS = 20_000


def main() -> None:
    """Run the command line and end the process with its exit code, or with 70 where it ended without one."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # Nothing is open yet that would have to be closed, and a traceback out of an import tells nobody anything.
            signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
        # Interpreters that this process starts must not import modules from the folder that the user stands in.
        os.environ.setdefault("PYTHONSAFEPATH", "1")
        from sbbf_tool.cli import main as command_line

        code = command_line(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:
        _report(error)
        code = INTERNAL_ERROR
    sys.exit(code)


def _report(error: BaseException) -> None:
    """Print one line on stderr, and the traceback with `--debug`. Standard error may be closed or full, so that its errors are ignored."""
    try:
        from sbbf_tool.display import escape, redact_text
        from sbbf_tool.errors import describe_unexpected

        if "--debug" in sys.argv:
            import traceback

            for line in "".join(traceback.format_exception(error)).splitlines():
                print(escape(redact_text(line)), file=sys.stderr)
        print(escape(f"sbbf: {describe_unexpected(error)}"), file=sys.stderr, flush=True)
    except Exception:
        return


if __name__ == "__main__":
    main()
