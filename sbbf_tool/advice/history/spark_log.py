"""Scans in an event log of Spark: one JSON object per line (org.apache.spark.util.JsonProtocol).

SparkListenerSQLExecutionStart has the plan with the scans, each with its location and pushed filters, and
SparkListenerSQLAdaptiveExecutionUpdate a plan that replaces it. SparkListenerJobStart says which stages belong to an execution,
SparkListenerTaskEnd how many bytes a task read and which metrics of which scan it changed, and SparkListenerDriverAccumUpdates the size of
the files of a scan. A scan that does not run, as its rows are cached or a stage is reused, changes none of its metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sbbf_tool.advice.history.scans import Scan, condition_of
from sbbf_tool.advice.queries import Condition
from sbbf_tool.parquet.columns import unquote

_HEAD_BYTES = 200
_EVENTS = (
    b"SparkListenerLogStart",
    b"SparkListenerEnvironmentUpdate",
    b"SQLExecutionStart",
    b"SQLAdaptiveExecutionUpdate",
    b"SQLExecutionEnd",
    b"DriverAccumUpdates",
    b"SparkListenerJobStart",
    b"SparkListenerTaskEnd",
)
_EXECUTION = "spark.sql.execution.id"
_MOST_OPEN = 10_000
_MOST_SIZES = 1_000_000
_FILES_SIZE = "size of files read"
_VECTORED = "spark.hadoop.parquet.hadoop.vectored.io.enabled"
_VECTORED_SINCE = (4, 1)
"""The first release whose parquet-java reads several ranges at once by default."""
_FILTERS = "IsNotNull|IsNull|EqualTo|EqualNullSafe|In|GreaterThan|GreaterThanOrEqual|LessThan|LessThanOrEqual|And|Or|Not|StringStartsWith"
_SEPARATOR = re.compile(rf", (?=(?:{_FILTERS}|StringEndsWith|StringContains|AlwaysTrue|AlwaysFalse)\()")
_EQUAL = re.compile(r"(?:EqualTo|EqualNullSafe)\((?P<column>[^,]+),(?P<value>.*)\)", re.DOTALL)
_IN = re.compile(r"In\((?P<column>[^,]+), ?\[(?P<values>.*)\]\)", re.DOTALL)
_SUBQUERY = re.compile(r"ScalarSubquery#\d+.*", re.DOTALL)


@dataclass
class _Scan:
    """A scan of a plan; one of files that are not Parquet, or of cached rows, has no filters and is not reported."""

    locations: tuple[str, ...]
    conditions: tuple[Condition, ...]
    is_of_files: bool
    is_parquet: bool
    metrics: tuple[int, ...]
    """Accumulators of its metrics."""
    size_metric: int | None
    """The one with the size of its files."""
    has_run: bool = False
    bytes_read: int = 0
    has_rows: bool = False
    """Whether tasks read rows of it."""


@dataclass
class _Execution:
    scans: dict[int, _Scan] = field(default_factory=dict)
    """By the first of their accumulators: a plan lists a scan again where its rows are reused."""
    by_metric: dict[int, _Scan] = field(default_factory=dict)
    other_bytes: int = 0
    """Bytes of tasks that changed no metric of a scan."""
    finished_tasks: set[tuple[int, int]] = field(default_factory=set)
    """Stage and partition."""

    def add_plan(self, plan: object) -> None:
        """Add the scans of a plan, and drop those of earlier plans that have not run."""
        self.scans = {number: scan for number, scan in self.scans.items() if scan.has_run}
        for scan in _list_scans(plan):
            number = scan.metrics[0] if scan.metrics else -1 - len(self.scans)
            if number not in self.scans:
                self.scans[number] = scan
        self.by_metric = {metric: scan for scan in self.scans.values() for metric in scan.metrics}


class SparkLog:
    """Reads events, and keeps what it needs of executions that have not ended."""

    def __init__(self) -> None:
        self.skipped_lines = 0
        self._executions: dict[int, _Execution] = {}
        self._stages: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        """Sizes of the files of scans, by accumulator: an execution that runs a plan again does not state them again."""
        self._counts_local_reads = True
        """Whether tasks count the bytes that they read of local files: Hadoop does not if several ranges are read at once."""

    def scans(self, lines: Iterable[bytes | None]) -> Iterator[Scan]:
        """Yield the scans of the executions that end in these lines."""
        for line in lines:
            if line is None:
                self.skipped_lines += 1
            elif any(name in line[:_HEAD_BYTES] for name in _EVENTS):
                event = parse_event(line)
                if event is None:
                    self.skipped_lines += 1
                else:
                    yield from self._handle(event)

    def remaining_scans(self) -> Iterator[Scan]:
        """Yield the scans of executions without an end, as in the log of an application that still runs or crashed."""
        for number in list(self._executions):
            yield from self._end(number)

    def _handle(self, event: dict[str, Any]) -> Iterator[Scan]:
        name = str(event["Event"]).rpartition(".")[2]
        number = event.get("executionId")
        execution = self._executions.get(number) if isinstance(number, int) else None
        if name == "SparkListenerSQLExecutionStart" and isinstance(number, int):
            if len(self._executions) >= _MOST_OPEN:
                yield from self._end(next(iter(self._executions)))
            self._executions[number] = execution = _Execution()
            execution.add_plan(event.get("sparkPlanInfo"))
        elif name == "SparkListenerSQLAdaptiveExecutionUpdate" and execution is not None:
            execution.add_plan(event.get("sparkPlanInfo"))
        elif name == "SparkListenerSQLExecutionEnd" and isinstance(number, int):
            yield from self._end(number)
        elif name == "SparkListenerDriverAccumUpdates" and execution is not None:
            self._add_sizes(execution, event)
        elif name == "SparkListenerJobStart":
            properties = event.get("Properties")
            owner = properties.get(_EXECUTION) if isinstance(properties, dict) else None
            if isinstance(owner, str) and owner.isdecimal() and int(owner) in self._executions:
                self._stages.update({_int(stage): int(owner) for stage in _items(event.get("Stage IDs"))})
        elif name == "SparkListenerTaskEnd":
            owning = self._executions.get(self._stages.get(_int(event.get("Stage ID")), -1))
            if owning is not None:
                _add_task(owning, event, self._sizes)
        elif name == "SparkListenerLogStart":
            self._counts_local_reads = _parse_version(event.get("Spark Version")) < _VECTORED_SINCE
        elif name == "SparkListenerEnvironmentUpdate":
            properties = event.get("Spark Properties")
            value = properties.get(_VECTORED) if isinstance(properties, dict) else None
            if isinstance(value, str):
                self._counts_local_reads = value.strip().lower() != "true"

    def _add_sizes(self, execution: _Execution, event: dict[str, Any]) -> None:
        """Note the sizes of files, which Spark states when it starts a scan."""
        for update in _items(event.get("accumUpdates")):
            if not (isinstance(update, list) and len(update) == 2):
                continue
            scan = execution.by_metric.get(_int(update[0]))
            if scan is not None:
                scan.has_run = True
                if scan.size_metric == _int(update[0]) and len(self._sizes) < _MOST_SIZES:
                    self._sizes[scan.size_metric] = _int(update[1])

    def _end(self, number: int) -> Iterator[Scan]:
        """Yield the scans of an execution that have run."""
        execution = self._executions.pop(number, None)
        if execution is None:
            return
        self._stages = {stage: owner for stage, owner in self._stages.items() if owner != number}
        scans = [scan for scan in execution.scans.values() if scan.has_run]
        # A task without rows changes no metric, and old logs do not say which metrics a task changed.
        silent = [scan for scan in scans if not scan.bytes_read]
        _divide(execution.other_bytes, silent, self._sizes)
        for scan in scans:
            if not scan.is_parquet:
                continue
            size = self._sizes.get(-1 if scan.size_metric is None else scan.size_metric)
            is_uncounted = not self._counts_local_reads and all(map(_is_local, scan.locations))
            if scan.bytes_read and not (scan.has_rows and is_uncounted):
                yield Scan(scan.locations, scan.conditions, scan.bytes_read)
            elif scan.has_rows and size:
                yield Scan(scan.locations, scan.conditions, size, is_file_size=True)
            else:
                yield Scan(scan.locations, scan.conditions, None)


def _add_task(execution: _Execution, event: dict[str, Any], sizes: dict[int, int]) -> None:
    """Add the bytes that a task read to the scan whose metrics it changed.

    Of several attempts for a partition, as of a task that failed or that Spark started twice, the first that succeeded counts.
    """
    reason, info = event.get("Task End Reason"), event.get("Task Info")
    if isinstance(reason, dict) and reason.get("Reason", "Success") != "Success":
        return
    info = info if isinstance(info, dict) else {}
    partition = info.get("Partition ID", info.get("Index"))
    if isinstance(partition, int):
        key = (_int(event.get("Stage ID")), partition)
        if key in execution.finished_tasks:
            return
        execution.finished_tasks.add(key)
    metrics = [item.get("ID") for item in _items(info.get("Accumulables")) if isinstance(item, dict)]
    scans = {id(scan): scan for metric in metrics if isinstance(metric, int) and (scan := execution.by_metric.get(metric))}
    # A task that fills a cache and reads the rows from there reads the bytes of the files.
    scans = {number: scan for number, scan in scans.items() if scan.is_of_files} or scans
    num_bytes, num_rows = _inputs_of_task(event)
    for scan in scans.values():
        scan.has_run, scan.has_rows = True, scan.has_rows or num_rows > 0
    if scans:
        _divide(num_bytes, list(scans.values()), sizes)
    else:
        execution.other_bytes += num_bytes


def _divide(num_bytes: int, scans: list[_Scan], sizes: dict[int, int]) -> None:
    """Divide bytes among scans by the sizes of their files, or equally if one of the sizes is unknown."""
    weights = [sizes.get(-1 if scan.size_metric is None else scan.size_metric, 0) for scan in scans]
    if not all(weights):
        weights = [1] * len(scans)
    for scan, weight in zip(scans, weights, strict=True):
        scan.bytes_read += num_bytes * weight // sum(weights)


def _is_local(location: str) -> bool:
    return location.startswith(("file:", "/"))


def _parse_version(version: object) -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)", version) if isinstance(version, str) else None
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Return the event of a line; None if it has none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("Event"), str) else None


def _list_scans(plan: object) -> Iterator[_Scan]:
    """Yield the scans of a plan: those of files, and those of cached rows."""
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, dict):
            continue
        nodes += _items(node.get("children"))
        metadata = node.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        metrics = {str(item.get("name")): item.get("accumulatorId") for item in _items(node.get("metrics")) if isinstance(item, dict)}
        numbers = {name: number for name, number in metrics.items() if isinstance(number, int)}
        if "Format" in metadata or re.match("(Batch|InMemoryTable)?Scan", str(node.get("nodeName"))):
            yield _Scan(
                locations=parse_location(str(metadata.get("Location", ""))),
                conditions=tuple(parse_pushed_filters(str(metadata.get("PushedFilters", "")))),
                is_of_files="Format" in metadata,
                is_parquet=str(metadata.get("Format", "")).lower() == "parquet",
                metrics=tuple(numbers.values()),
                size_metric=numbers.get(_FILES_SIZE),
            )


def parse_pushed_filters(text: str) -> Iterator[Condition]:
    """Yield the conditions by = and IN in text such as `[IsNotNull(id), EqualTo(id,77)]`.

    Spark writes values without quotes, so a comma within a value of IN looks like the end of the value. The value of a subquery is not in
    the text.
    """
    inner = text.strip().removeprefix("[").removesuffix("]")
    for part in _SEPARATOR.split(inner):
        if match := _EQUAL.fullmatch(part):
            values = [match["value"]]
        elif match := _IN.fullmatch(part):
            values = match["values"].split(",")
        else:
            continue
        path = unquote(match["column"].strip())
        if path and values != ["null"] and not _SUBQUERY.fullmatch(values[0]):
            yield condition_of(path, values)


def parse_location(text: str) -> tuple[str, ...]:
    """Return the paths in text such as `InMemoryFileIndex(1 paths)[file:/lake/events]`; Spark cuts off long lists with `...`."""
    start = text.find("[")
    if start < 0:
        return ()
    paths = text[start + 1 :].removesuffix("]").split(", ")
    return tuple(path for path in paths if path and not path.endswith("..."))


def _inputs_of_task(event: dict[str, Any]) -> tuple[int, int]:
    """Return the bytes and the rows that a task read."""
    metrics = event.get("Task Metrics")
    inputs = metrics.get("Input Metrics") if isinstance(metrics, dict) else None
    inputs = inputs if isinstance(inputs, dict) else {}
    return max(0, _int(inputs.get("Bytes Read"))), max(0, _int(inputs.get("Records Read")))


def _int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else -1 if value is None else 0


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
