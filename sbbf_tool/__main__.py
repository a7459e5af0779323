"""`sbbf`, also as `python -m sbbf_tool`: the command line, which may be interrupted while it is still being imported."""

from __future__ import annotations

import os
import signal


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing is open yet that would have to be closed, and a traceback out of an import tells nobody anything.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    from sbbf_tool.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
