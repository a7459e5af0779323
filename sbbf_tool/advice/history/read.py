"""Read the history of queries from logs, whose content is untrusted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain

from sbbf_tool.advice.history.duckdb_profile import list_scans, parse_profile
from sbbf_tool.advice.history.log_file import MOST_LINE_BYTES, find_logs, read_lines
from sbbf_tool.advice.history.scans import History, Scan, places_of
from sbbf_tool.advice.history.spark_log import SparkLog, parse_event
from sbbf_tool.errors import UnreadableError


def read_history(logs: Iterable[str], names: Iterable[str]) -> History:
    """Read all logs; the history has the scans that read the files of `names`. Logs in a folder that cannot be read are listed.

    Raises UnreadableError: a log is missing or no log, or no scan reads the files.
    """
    history, places = History(), places_of(names)
    for log in map(os.fspath, logs):
        log_files = find_logs(log)
        for files in log_files:
            try:
                for scan in _read_log(files, history):
                    history.add(scan, places)
                history.logs += 1
            except UnreadableError as error:
                if files == [log] or len(log_files) == 1:
                    raise
                history.unreadable_logs.append(str(error))
    if not history.scans:
        if history.scans_without:
            raise UnreadableError("no scan of these files queries by = or IN")
        places_read = ", ".join(sorted(history.locations)) or "none"
        problem = f"; {history.unreadable_logs[0]}" if history.unreadable_logs else ""
        raise UnreadableError("the logs have no scan of these files", hint=f"scans of other files: {places_read}{problem}")
    return history


def _read_log(files: list[str], history: History) -> Iterator[Scan]:
    lines = chain.from_iterable(map(read_lines, files))
    first = next(lines, b"")
    if first is not None and parse_event(first) is not None:
        log = SparkLog()
        yield from log.scans(chain([first], lines))
        yield from log.remaining_scans()
        history.skipped_lines += log.skipped_lines
        return
    text = bytearray()
    for line in chain([first], lines):
        text += (line or b"") + b"\n"
        if line is None or len(text) > MOST_LINE_BYTES or not text.lstrip().startswith(b"{"):
            break
    profile = parse_profile(bytes(text))
    if profile is None:
        raise UnreadableError("this is neither an event log of Spark nor a JSON profile of DuckDB", file=files[0])
    yield from list_scans(profile)
