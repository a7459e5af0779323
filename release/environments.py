"""Install wheel and source distribution in clean environments and run the fast tests: python release/environments.py DIST PYTHON...

DIST has what release/build.py wrote; each PYTHON is an interpreter from 3.11 on with `venv`. For each of them:

    wheel                            without a compiler
    source distribution              without a compiler: no extension is built, and the numpy kernel does the work
    source distribution, compiled    with a compiler: both extensions are built

Only the package itself is installed without a compiler: what the tests need may have to be compiled. For a new Python, some of it may
not exist yet: it is listed, and its tests are skipped. Exit code 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from build import FAST, TEST_TOOLS, run, unpack

CASES = {"wheel": ("*.whl", False), "source distribution": ("*.tar.gz", False), "source distribution, compiled": ("*.tar.gz", True)}
COMPILER = re.compile(r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+|tcc|c89|c99)(-[\d.]+)?")
MODULES = ("sbbf_tool.bloom._kernel", "sbbf_tool.parquet._compact")


def hide_compilers(folder: Path) -> str:
    """Return a search path for programs with links in a new folder to all of them but compilers."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if not COMPILER.fullmatch(program.name) and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return str(folder)


def test_needs(source: Path) -> list[str]:
    """Return what the fast tests need beside the package."""
    extras = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return [*extras["unit"], *extras["docs"], *TEST_TOOLS]


def install_needs(pip: list[str], needs: list[str], folder: Path) -> list[str]:
    """Install what the tests need; return what cannot be installed."""
    try:
        run(*pip, *needs, cwd=folder)
    except SystemExit:
        return [need for need in needs if not can_run(*pip, need, cwd=folder)]
    return []


def can_run(*command: str, cwd: Path) -> bool:
    return subprocess.run(command, cwd=cwd, capture_output=True).returncode == 0


def test(python: str, package: Path, sdist: Path, path: str, extensions: int, places: list[str], folder: Path) -> str:
    """Install a package, count its extensions, and run the fast tests. Returns the last line of pytest, or raises SystemExit."""
    environment = folder / "environment"
    installed = environment / "bin" / "python"
    run(python, "-m", "venv", str(environment), cwd=folder)
    pip = [str(installed), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    run(*pip, str(package), cwd=folder, PATH=path)
    count = f"from importlib.util import find_spec; print(sum(find_spec(name) is not None for name in {MODULES}))"
    found = int(run(str(installed), "-c", count, cwd=folder))
    if found != extensions:
        raise SystemExit(f"{found} extensions instead of {extensions}")
    run(str(environment / "bin" / "sbbf-tool"), "--version", cwd=folder)
    source = unpack(sdist, folder / "source")
    missing = install_needs(pip, test_needs(source), folder)
    names = "|".join(re.split(r"[^\w-]", need)[0] for need in missing) or "$"
    ignored = [path for path in (source / "tests").rglob("test_*.py") if re.search(rf"^import ({names})$", path.read_text("utf-8"), re.M)]
    command = [str(installed), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", FAST, f"--basetemp={folder / 'tests'}"]
    lines = run(*command, *(f"--ignore={each}" for each in ignored), *places, cwd=source, PATH=path).splitlines()
    absent = f"; without {', '.join(missing)} and {len(ignored)} modules of tests" if missing else ""
    return lines[-1] + absent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="the folder with the files of the release")
    parser.add_argument("python", nargs="+", help="interpreters, by name or path")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="run the fast tests of these folders only")
    parser.add_argument("--only", choices=CASES, help="run this case only")
    arguments = parser.parse_args()
    (sdist,) = (path.resolve() for path in arguments.dist.glob("*.tar.gz"))
    # The package is the installed one, also in processes that tests start, not the folder beside the tests, which they read as text.
    os.environ["PYTHONSAFEPATH"] = "1"
    for variable in ("CC", "CXX"):  # they would lead to a compiler that is not on the path
        os.environ.pop(variable, None)
    failures = 0
    with tempfile.TemporaryDirectory() as work:
        without_compiler = hide_compilers(Path(work) / "programs")
        for python in arguments.python:
            version = run(python, "-c", "import platform; print(platform.python_version())", cwd=Path(work)).strip()
            for name, (pattern, has_compiler) in CASES.items():
                if arguments.only not in (None, name):
                    continue
                (package, *_) = sorted(path.resolve() for path in arguments.dist.glob(pattern))
                path = os.environ["PATH"] if has_compiler else without_compiler
                extensions = len(MODULES) if has_compiler or name == "wheel" else 0
                start = time.monotonic()
                with tempfile.TemporaryDirectory(dir=work) as folder:
                    try:
                        outcome = test(python, package, sdist, path, extensions, arguments.tests, Path(folder))
                    except SystemExit as error:
                        failures += 1
                        outcome = f"FAILED: {str(error)[-6000:]}"
                print(f"{version}, {name}: {outcome} ({time.monotonic() - start:.0f} s)", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
