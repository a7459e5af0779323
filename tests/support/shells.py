"""Real shells in a pseudo-terminal: keys are typed, and the words that the shell then makes of its line are read."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(sbbf completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(sbbf completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "sbbf completion fish | source"),
}
_SECONDS = 60.0
# A machine with other work must not make the tool give up a completion, which it does after some seconds.
_PROGRAM = f"""from sbbf_tool.cli.completion import answer; answer._MOST_SECONDS = {_SECONDS}
from sbbf_tool.__main__ import main; main()"""
_TO_THE_START = "\x01"


class Shell:
    """A shell with completion, in a folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self._folder = folder
        self.screen = b""
        """All that the terminal received."""
        tools = folder / ".tools"
        tools.mkdir()
        programs = {
            "sbbf": f"exec {sys.executable} -c '{_PROGRAM}' \"$@\"",
            "args": f"printf '%s\\0' \"$@\" > {tools}/new; mv {tools}/new {tools}/words",
        }
        for tool, program in programs.items():
            (tools / tool).write_text(f"#!/bin/sh\n{program}\n")
            (tools / tool).chmod(0o755)
        self._tools = tools
        command, script = START[name]
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tools), "TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._type(f"{script}; touch .tools/ready\r")
        self._wait_for((tools / "ready").exists)

    def words(self, typed: str) -> list[str]:
        """Type a line, in which a tab completes a word, and return its words as the shell splits them."""
        (self._tools / "words").unlink(missing_ok=True)
        self._type(f"{typed}{_TO_THE_START}args \r")
        self._wait_for((self._tools / "words").exists)
        return os.fsdecode((self._tools / "words").read_bytes()).split("\0")[:-1]

    def show(self, typed: str, expected: bytes) -> None:
        """Type a line, and wait until the screen shows what is expected."""
        self._type(typed)
        self._wait_for(lambda: expected in self.screen)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._terminal)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)

    def _type(self, text: str) -> None:
        os.write(self._terminal, os.fsencode(text))

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._terminal, 65536):
                self.screen += data

    def _wait_for(self, is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + _SECONDS
        while not is_done():
            assert time.monotonic() < end, self.screen.decode(errors="replace")
            time.sleep(0.01)


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Shell]:
    """Yield the shell; skip the test where it is not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"the shell {name} is not installed")
    shell = Shell(name, folder)
    try:
        yield shell
    finally:
        shell.end()
