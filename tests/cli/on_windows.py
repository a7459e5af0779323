"""A program that runs command lines on a system like Windows: without the modules and calls that
Python lacks there.

It reads a list of command lines as JSON, and prints the exit code, the output and the errors of
each. Paths stay those of this system. Libraries are imported first, since they choose their own
code for Windows.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module

LIBRARIES = (
    "asyncio", "click", "concurrent.futures.process", "cramjam", "ctypes", "fastavro",
    "multiprocessing.popen_spawn_posix",
    "numpy", "pyarrow.compute", "pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet", "rich.console",
    "rich.table", "rich.progress",
    "shutil", "subprocess", "tempfile", "thrift.protocol.TCompactProtocol", "xxhash",
)  # fmt: skip
MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty")
CALLS = (
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_TMPFILE", "SEEK_DATA", "SEEK_HOLE",
    "chown", "copy_file_range",
    "fchmod", "fchown", "fork", "getegid", "geteuid", "getgid", "getuid", "getxattr", "killpg",
    "listxattr", "mkfifo",
    "posix_fadvise", "pread", "preadv", "pwrite", "removexattr", "sendfile", "set_blocking",
    "setsid", "setxattr", "statvfs",
    "sysconf", "uname",
)  # fmt: skip
SIGNALS = (
    "SIGALRM",
    "SIGHUP",
    "SIGKILL",
    "SIGPIPE",
    "SIGXFSZ",
    "ITIMER_REAL",
    "alarm",
    "pthread_sigmask",
    "setitimer",
    "siginterrupt",
)


def become_windows() -> None:
    for name in LIBRARIES:
        import_module(name)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in ((os, CALLS), (signal, SIGNALS)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.platform = "win32"


def run_here(words: list[str]) -> tuple[int, str, str]:
    from sbbf_tool.cli import run

    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        code = run(words)
    return code, output.getvalue(), errors.getvalue()


if __name__ == "__main__":
    become_windows()
    print(json.dumps([run_here(words) for words in json.load(sys.stdin)]))
