"""Install releases of query engines, run the questions in each, and write what they do with filters
into the table of runs. Run by hand.

    python tests/engine_matrix/run.py [--only duckdb spark-4.0.5 ...] [--cache DIR] [--installed]

Each release has an environment of its own, which is deleted after its run; `environments.py` lists
the releases. A run without `--only` takes about an hour and 1 GB of disk. Results are kept in the
cache, so that an interrupted run goes on where it was. `--installed` runs the engines of this
environment only. Then bless the page: `python -m pytest tests/query_engines/test_runs.py --bless`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import sys
import tempfile
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from engine_matrix.environments import PACKAGES, InstallationError, delete, install
from engine_matrix.outcomes import EngineError, judge, put_questions
from engine_matrix.questions import Question, digest_of, make_questions
from engine_matrix.run_file import RUNS, keep_runs, write_runs
from sbbf_tool.query_engines.runs import ReleaseRun

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sbbf-engine-matrix"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="ENGINE[-RELEASE]",
        help="run these engines or releases of them only",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=CACHE,
        metavar="DIR",
        help="folder of results and environments [default: %(default)s]",
    )
    parser.add_argument(
        "--installed", action="store_true", help="run the installed engines, and install none"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=RUNS,
        metavar="FILE",
        help="table of runs to update [default: %(default)s]",
    )
    options = parser.parse_args(arguments)
    releases = list_releases(options.only, installed=options.installed)
    if not releases:
        parser.error("no engine or release has one of these names")
    options.cache.mkdir(parents=True, exist_ok=True)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="sbbf-matrix-") as folder:
        questions = make_questions(Path(folder))
        digest = digest_of(questions)
        runs = keep_runs(options.output, digest)
        for engine, release in releases:
            try:
                run = run_release(
                    engine, release, questions, digest, options.cache, installed=options.installed
                )
            except (InstallationError, EngineError) as error:
                print(f"{engine} {release}: {error}", flush=True)
                failures += 1
                continue
            print(f"{engine} {release}: {run.version}, {run.date}", flush=True)
            runs = [
                *(
                    earlier
                    for earlier in runs
                    if (earlier.engine, earlier.package) != (engine, run.package)
                ),
                run,
            ]
            write_runs(options.output, digest, runs)
    return 1 if failures else 0


def list_releases(names: list[str] | None, *, installed: bool) -> list[tuple[str, str]]:
    """Return pairs of engine and release: all, or those named `engine` or `engine-release`; or
    those that are installed here."""
    pairs = []
    for engine, package in PACKAGES.items():
        if not installed:
            pairs += [(engine, release) for release in package.releases.split()]
        elif package.registry == "pypi":
            try:
                pairs.append((engine, version(package.name)))
            except PackageNotFoundError:
                continue
    return [pair for pair in pairs if not names or pair[0] in names or "-".join(pair) in names]


def run_release(
    engine: str,
    release: str,
    questions: list[Question],
    digest: str,
    cache: Path,
    *,
    installed: bool,
) -> ReleaseRun:
    """Run the questions in a release, or return the result of an earlier run of the same
    questions."""
    result = cache / f"{engine}-{release}-{digest}.json"
    if result.exists():
        return ReleaseRun(**json.loads(result.read_text()))
    with tempfile.TemporaryDirectory(
        prefix=f"{engine}-{release}-", dir=cache, ignore_cleanup_errors=True
    ) as folder:
        environment = Path(folder) / "environment"
        package = PACKAGES[engine]
        python = Path(sys.executable) if installed else install(package, release, environment)
        work = environment if package.registry == "npm" else Path(folder)
        engine_version, answers = put_questions(engine, python, questions, work)
        delete(environment)
    today = dt.date.today().isoformat()
    run = ReleaseRun(
        engine, engine_version, f"{package.name} {release}", today, judge(questions, answers)
    )
    result.write_text(json.dumps(asdict(run)))
    result.with_suffix(".answers").write_text(
        "".join(f"{json.dumps([*q.key, a])}\n" for q, a in zip(questions, answers, strict=True))
    )
    return run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
