"""Program that runs one query engine: `python -m sbbf_tool.extensions.engine_runs.program
DESCRIPTOR`.

Standard input has the request, one line of JSON, and stays open as long as the parent lives. The
answers are lines of JSON, written to the file descriptor, because engines may print to standard
output: first the version of the engine, then one line per job.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from sbbf_tool.extension import load
from sbbf_tool.extensions.engine_runs.measure import Driver, Job, QueryCondition, measure


def main(descriptor: str) -> None:
    request = json.loads(sys.stdin.readline())
    # At the end: a module in the folder of a user's script, such as types.py, must not hide one of
    # the standard library.
    sys.path += [entry for entry in request["path"] if entry and entry not in sys.path]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with open(int(descriptor), "w", buffering=1) as answers:
        try:
            driver_class = load(request["driver"])
            driver: Driver = driver_class(QueryCondition(**request["request"]))
        except Exception as error:
            _write(answers, {"error": describe(error)})
            os._exit(1)
        _write(answers, {"version": driver.version})
        for fields in request["jobs"]:
            job = Job(**fields)
            answer: dict[str, Any] = {"job": job.name}
            try:
                answer["measurement"] = measure(driver, job)
            except Exception as error:
                answer["error"] = describe(error)
            _write(answers, answer)
    # Some engines crash or wait when they end in order.
    os._exit(0)


def _write(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(f"{json.dumps(answer)}\n")
    answers.flush()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def describe(error: BaseException) -> str:
    """Return the first lines of an error as one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) > _MOST_LETTERS:
        return f"{text[:_MOST_LETTERS]}..."
    return text


_MOST_LETTERS = 300

if __name__ == "__main__":
    main(sys.argv[1])
