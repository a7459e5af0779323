"""The commands that take a file, and the assertions about their output and exit code."""

from __future__ import annotations

from collections.abc import Callable

from sbbf_tool.cli import run

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "inspect": lambda path: ["inspect", path],
    "probe": lambda path: ["probe", path, "id", "7"],
    "add-filter": lambda path: ["add-filter", path, "-c", "id", "--rebuild", "all", "-o", f"{path}.out"],
    "remove-filter": lambda path: ["remove-filter", path, "-o", f"{path}.out"],
}


def assert_one_line_and_this_code(capsys, arguments: list[str], exit_code: int) -> str:
    assert run(arguments) == exit_code
    printed, complaint = capsys.readouterr()
    assert complaint.startswith("sbbf: ")
    assert complaint.count("\n") == 1
    assert complaint.endswith("\n")
    assert "Traceback" not in complaint + printed
    assert "internal error" not in complaint
    return complaint
