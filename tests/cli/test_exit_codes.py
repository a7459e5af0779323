"""Exit code 1 is an answer ("certainly absent", "findings"): whatever fails, wherever, ends with
another code.

Python itself ends with 1 after an error that nothing handles, so errors are planted at every stage
of a command line, in fresh processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sbbf_tool.cli import COMMANDS
from sbbf_tool.extensions.paimon.commands import COMMANDS as PAIMON_COMMANDS

pytestmark = pytest.mark.slow

# For each of its arguments, a list in JSON: plants an error at the import of a module, or in a
# function ("module:function"), and runs the command line in a process of its own. Prints whether
# the error was reached, the exit code, and what was printed on standard error.
PROGRAM = """if True:
    import importlib, json, os, sys, tempfile, traceback

    class Unheard(BaseException):
        pass

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    def click_exit():
        from click.exceptions import Exit
        return Exit(1)

    ERRORS = [
        lambda: ModuleNotFoundError("No module named 'planted'", name="planted"),
        lambda: ImportError("planted"),
        lambda: SystemExit(1),
        lambda: SystemExit("planted"),
        lambda: SystemExit(),
        Unheard,
        Mute,
        lambda: OSError(1, "planted"),
        lambda: ValueError("planted\\nin two lines"),
        click_exit,
    ]

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == module and not function:
                raise reached()
            return None

    def reached():
        os.write(report, b"reached ")
        return error()

    def planted(*args, **settings):
        raise reached()

    for place, arguments, number in map(json.loads, sys.argv[1:]):
        module, _, function = place.partition(":")
        error = ERRORS[number]
        reading, report = os.pipe()
        err = tempfile.TemporaryFile()
        child = os.fork()
        if not child:
            os.dup2(err.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.meta_path.insert(0, Finder())
            if function:
                at = importlib.import_module(module)
                *parents, name = function.split(".")
                for parent in parents:
                    at = getattr(at, parent)
                setattr(at, name, planted)
            sys.argv = ["sbbf", *arguments]
            from sbbf_tool.__main__ import main
            main()
        _, status = os.waitpid(child, 0)
        os.close(report)
        err.seek(0)
        seen = os.read(reading, 100).decode()
        os.close(reading)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps(["reached" in seen, code, err.read().decode()]))
"""


ERRORS_OF_IMPORTS = (0, 2, 5)


Run = tuple[str, list[str], int]
"""Where an error is planted, the command line, and the number of the error."""


def outcomes(runs: list[Run]) -> list[tuple[bool, int, str]]:
    """Of each run: whether the error was reached, the exit code, and what was printed on standard
    error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(json.dumps, runs)], capture_output=True, text=True
    )
    lines = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(lines) == len(runs), done.stderr
    return lines


def assert_70_and_a_line(runs: list[Run]) -> None:
    wrong = []
    for run, (is_reached, code, err) in zip(runs, outcomes(runs), strict=True):
        # An output that fails in the middle fails again at the end.
        is_short = err.count("\n") == 1 or "flush" in run[0]
        if not (
            is_reached
            and code == 70
            and is_short
            and all(line.startswith("sbbf: ") for line in err.splitlines())
        ):
            wrong.append((run, is_reached, code, err))
    assert wrong == []


# An absent value: were the error not noticed, the exit code would be 1.
ABSENT = ["fixtures/pyarrow-filters.parquet", "id", "-5"]

IMPORTS = {
    **{name: (entry.module, [name, "--help"]) for name, entry in COMMANDS.items()},
    **{
        f"paimon {name}": (entry.module.partition(":")[0], ["paimon", name, "--help"])
        for name, entry in PAIMON_COMMANDS.items()
    },
    **{
        f"probe: {module}": (module, ["probe", *ABSENT])
        for module in (
            *(
                "sbbf_tool.cli",
                "sbbf_tool.cli.output",
                "click",
                "sbbf_tool.verbs.probe",
                "sbbf_tool.storage.places",
            ),
            *("sbbf_tool.parquet.structs", "thrift", "thrift.protocol.TCompactProtocol", "xxhash"),
        )
    },
    "verify: numpy": ("numpy", ["verify", "fixtures/pyarrow-filters.parquet"]),
    "verify: pyarrow": ("pyarrow", ["verify", "fixtures/spark-boolean.parquet"]),
    "check: pyarrow": ("pyarrow", ["check", "fixtures/spark-boolean.parquet"]),
    "add-filter: operation": (
        "sbbf_tool.editing.build",
        ["add-filter", "fixtures/events.parquet", "-c", "user_id", "-n"],
    ),
}


@pytest.mark.heavy
def test_errors_of_imports():
    """Each import with one error; a command line of `probe`, whose code 1 is an answer, with all
    three."""
    assert_70_and_a_line(
        [
            (place, arguments, number)
            for at, (place, arguments) in enumerate(IMPORTS.values())
            for number in (
                ERRORS_OF_IMPORTS if "probe" in arguments[:1] else ERRORS_OF_IMPORTS[at % 3 :][:1]
            )
        ]
    )


STAGES = {
    "parsing": ("click:Group.make_context", ["probe", *ABSENT]),
    "parsing of a command": ("click:Command.parse_args", ["probe", *ABSENT]),
    "the one file": ("sbbf_tool.storage.places:find_single_file", ["probe", *ABSENT]),
    "files": (
        "sbbf_tool.storage.places:entries",
        ["probe", "fixtures/*filters.parquet", "id", "-5"],
    ),
    "report of several files": (
        "sbbf_tool.storage.whole:write_whole",
        ["resize", "fixtures", "--fpp", "0.1", "-n", "--report", "REPORT"],
    ),
    "operation": ("sbbf_tool.verbs.probe:Probe.on", ["probe", *ABSENT]),
    "filter": ("sbbf_tool.bloom.spec:mask", ["probe", "--filters-only", *ABSENT]),
    "rendering of several files": (
        "sbbf_tool.cli.page:Page.say",
        ["check", "fixtures/*filters.parquet", "--quick"],
    ),
    "rendering": ("sbbf_tool.cli.tables:Plain.table", ["explain", *ABSENT]),
    "JSON": ("sbbf_tool.cli.output:encodable_json", ["probe", "--format", "json", *ABSENT]),
    "printing": ("click:echo", ["--version"]),
    "flush": ("sbbf_tool.cli.output:PatientOutput.flush", ["probe", *ABSENT]),
    "set-up of the output": ("sbbf_tool.cli:patient_output", ["probe", *ABSENT]),
    "signals": ("signal:signal", ["probe", *ABSENT]),
}


def at_each_stage(folder: Path, numbers: Callable[[int], Iterable[int]]) -> list[Run]:
    """Return the runs of each stage with these errors, with the report in a folder."""
    return [
        (place, [word.replace("REPORT", f"{folder}/report.json") for word in arguments], number)
        for row, (place, arguments) in enumerate(STAGES.values())
        for number in numbers(row)
    ]


def test_errors_of_each_stage(tmp_path):
    """Each stage with two errors, and so each error at two stages or more."""
    assert_70_and_a_line(at_each_stage(tmp_path, lambda row: {(3 * row) % 10, (3 * row + 5) % 10}))


def test_answers_without_an_error():
    for arguments, code in (
        (["probe", *ABSENT], 1),
        (["--version"], 0),
        (["probe", "--help"], 0),
        ([], 2),
        (["lake"], 2),
        (["paimon"], 2),
    ):
        done = subprocess.run([sys.executable, "-m", "sbbf_tool", *arguments], capture_output=True)
        assert done.returncode == code
