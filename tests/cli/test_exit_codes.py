"""Exit code 1 is an answer ("certainly absent", "findings"): whatever fails, wherever, ends with another code.

Python itself ends with 1 after an error that nothing handles, so errors are planted at every stage of a command line, in fresh processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable

import pytest

from sbbf_tool.cli import COMMANDS
from sbbf_tool.errors import describe_unexpected
from sbbf_tool.extensions.paimon.commands import COMMANDS as PAIMON_COMMANDS

pytestmark = pytest.mark.slow

# Plants an error at the import of a module, or in a function ("module:function"), and runs the command line once for each error, in a
# process of its own. Each prints: number of the error, whether the error was reached, exit code, what was printed on standard error.
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

    place, numbers, *arguments = sys.argv[1:]
    module, _, function = place.partition(":")
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

    for number in map(int, numbers.split()):
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
        print(json.dumps([number, "reached" in seen, os.waitstatus_to_exitcode(status), err.read().decode()]))
"""


EVERY_ERROR = range(10)
ERRORS_OF_IMPORTS = (0, 2, 5)


def outcomes(place: str, arguments: list[str], numbers: Iterable[int]) -> list[tuple[int, bool, int, str]]:
    """Of each error: its number, whether it was reached, the exit code, and what was printed on standard error."""
    command = [sys.executable, "-c", PROGRAM, place, " ".join(map(str, numbers)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == list(numbers), done.stderr
    return lines


def assert_70_and_a_line(place: str, arguments: list[str], numbers: Iterable[int]) -> None:
    for number, call, code, err in outcomes(place, arguments, numbers):
        assert call, f"error {number} was not planted where the command line comes by"
        assert code == 70, f"error {number}: {err}"
        # An output that fails in the middle fails again at the end.
        assert err.count("\n") == 1 or "flush" in place
        assert all(line.startswith("sbbf: ") for line in err.splitlines()), f"error {number}: {err}"


# An absent value: were the error not noticed, the exit code would be 1.
ABSENT = ["fixtures/pyarrow-filters.parquet", "id", "-5"]

IMPORTS = [
    *(pytest.param(entry.module, [name, "--help"], id=name) for name, entry in COMMANDS.items()),
    *(pytest.param(entry.module, ["paimon", name, "--help"], id=f"paimon {name}") for name, entry in PAIMON_COMMANDS.items()),
    *(
        pytest.param(module, ["probe", *ABSENT], id=f"probe: {module}")
        for module in (
            "sbbf_tool.cli",
            "sbbf_tool.cli.output",
            "click",
            "sbbf_tool.operations.probe",
            "sbbf_tool.storage.local",
            "sbbf_tool.parquet.structs",
            "thrift",
            "thrift.protocol.TCompactProtocol",
            "xxhash",
        )
    ),
    pytest.param("numpy", ["verify", "fixtures/pyarrow-filters.parquet"], id="verify: numpy"),
    pytest.param("pyarrow", ["verify", "fixtures/pyarrow-filters.parquet"], id="verify: pyarrow"),
    pytest.param("pyarrow", ["check", "fixtures/pyarrow-filters.parquet"], id="check: pyarrow"),
    pytest.param("sbbf_tool.runner.fill", ["add-filter", "fixtures/events.parquet", "-c", "user_id", "-n"], id="add-filter: operation"),
]


@pytest.mark.parametrize(("module", "arguments"), IMPORTS)
def test_errors_of_imports(module, arguments):
    assert_70_and_a_line(module, arguments, ERRORS_OF_IMPORTS)


STAGES = {
    "parsing": ("click:Group.make_context", ["probe", *ABSENT]),
    "parsing of a command": ("click:Command.parse_args", ["probe", *ABSENT]),
    "the one file": ("sbbf_tool.storage.places:find_single_file", ["probe", *ABSENT]),
    "files": ("sbbf_tool.storage.places:entries", ["probe", "fixtures/*filters.parquet", "id", "-5"]),
    "report of several files": ("sbbf_tool.storage.whole:write_whole", ["resize", "fixtures", "--fpp", "0.1", "-n", "--report", "REPORT"]),
    "operation": ("sbbf_tool.operations.probe:probe", ["probe", *ABSENT]),
    "filter": ("sbbf_tool.bloom.spec:mask", ["probe", *ABSENT]),
    "rendering of several files": ("sbbf_tool.cli.page:TextPage.say", ["check", "fixtures/*filters.parquet", "--quick"]),
    "rendering": ("sbbf_tool.cli.tables:format_table", ["probe", *ABSENT]),
    "JSON": ("sbbf_tool.cli.output:encodable_json", ["probe", "--format", "json", *ABSENT]),
    "printing": ("click:echo", ["--version"]),
    "flush": ("sbbf_tool.cli.output:PatientOutput.flush", ["probe", *ABSENT]),
    "set-up of the output": ("sbbf_tool.cli:patient_output", ["probe", *ABSENT]),
    "signals": ("signal:signal", ["probe", *ABSENT]),
}


def place_report(stage, folder):
    """Return the module and arguments of a stage, with the report in a folder."""
    module, arguments = stage
    return module, [str(folder / "report.json") if argument == "REPORT" else argument for argument in arguments]


@pytest.mark.parametrize("stage", STAGES)
def test_errors_of_each_stage(stage, tmp_path):
    """Each stage with four errors, and so each error at five stages or more."""
    row = list(STAGES).index(stage)
    assert_70_and_a_line(*place_report(STAGES[stage], tmp_path), sorted((3 * row + column) % len(EVERY_ERROR) for column in range(4)))


@pytest.mark.nightly(minutes=1)
@pytest.mark.parametrize("stage", STAGES)
def test_every_error_of_each_stage(stage, tmp_path):
    assert_70_and_a_line(*place_report(STAGES[stage], tmp_path), EVERY_ERROR)


def test_answers_without_an_error():
    for arguments, code in ((["probe", *ABSENT], 1), (["--version"], 0), (["probe", "--help"], 0), ([], 2), (["lake"], 2), (["paimon"], 2)):
        done = subprocess.run([sys.executable, "-m", "sbbf_tool", *arguments], capture_output=True)
        assert done.returncode == code


def test_a_missing_package_is_named():
    ((_, _, code, err),) = outcomes("xxhash", ["probe", *ABSENT], [0])
    assert (code, err) == (
        70,
        "sbbf: the Python package planted is not installed (No module named 'planted'); install sbbf-tool and its dependencies again\n",
    )
    assert describe_unexpected(ImportError("no _lib", name="numpy._core")).startswith(
        "the Python package numpy cannot be imported (no _lib)"
    )


@pytest.mark.parametrize("moment", ["sbbf_tool.cli.output:PatientOutput.flush", "sbbf_tool.operations.probe:probe", "sys:exit"])
def test_a_termination_at_any_moment(moment):
    program = """if True:
        import importlib, os, signal, sys
        from sbbf_tool import cli
        def terminated(*args, **settings):
            setattr(at, parts[-1], before)
            os.kill(os.getpid(), signal.SIGTERM)
            return before(*args, **settings)
        module, _, name = sys.argv.pop(1).partition(":")
        at = importlib.import_module(module)
        parts = name.split(".")
        for parent in parts[:-1]:
            at = getattr(at, parent)
        before = getattr(at, parts[-1])
        setattr(at, parts[-1], terminated)
        from sbbf_tool.__main__ import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", program, moment, "probe", *ABSENT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")
