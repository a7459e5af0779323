"""Scans in an event log of Spark: one JSON object per line (org.apache.spark.util.JsonProtocol).

SparkListenerSQLExecutionStart has the plan with the scans, each with its location and pushed filters; SparkListenerJobStart says which
stages belong to an execution, SparkListenerTaskEnd how many bytes a task of a stage read, and SparkListenerDriverAccumUpdates the size of
the files of a scan.
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
_EVENTS = (b"SQLExecutionStart", b"SQLExecutionEnd", b"DriverAccumUpdates", b"SparkListenerJobStart", b"SparkListenerTaskEnd")
_EXECUTION = "spark.sql.execution.id"
_MOST_OPEN = 10_000
_FILTERS = "IsNotNull|IsNull|EqualTo|EqualNullSafe|In|GreaterThan|GreaterThanOrEqual|LessThan|LessThanOrEqual|And|Or|Not|StringStartsWith"
_SEPARATOR = re.compile(rf", (?=(?:{_FILTERS}|StringEndsWith|StringContains|AlwaysTrue|AlwaysFalse)\()")
_EQUAL = re.compile(r"(?:EqualTo|EqualNullSafe)\((?P<column>[^,]+),(?P<value>.*)\)", re.DOTALL)
_IN = re.compile(r"In\((?P<column>[^,]+), ?\[(?P<values>.*)\]\)", re.DOTALL)


@dataclass
class _Scan:
    locations: tuple[str, ...]
    conditions: tuple[Condition, ...]
    size_metric: int | None
    """Accumulator of the size of the files."""


@dataclass
class _Execution:
    scans: list[_Scan] = field(default_factory=list)
    bytes_read: int = 0
    file_sizes: dict[int, int] = field(default_factory=dict)
    """Values of accumulators."""


class SparkLog:
    """Reads events, and keeps what it needs of executions that have not ended."""

    def __init__(self) -> None:
        self.skipped_lines = 0
        self._executions: dict[int, _Execution] = {}
        self._stages: dict[int, int] = {}

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
        if name == "SparkListenerSQLExecutionStart" and isinstance(number, int):
            if len(self._executions) >= _MOST_OPEN:
                yield from self._end(next(iter(self._executions)))
            self._executions[number] = _Execution(list(_list_scans(event.get("sparkPlanInfo"))))
        elif name == "SparkListenerSQLExecutionEnd" and isinstance(number, int):
            yield from self._end(number)
        elif name == "SparkListenerDriverAccumUpdates" and (execution := self._executions.get(_int(number))):
            for update in _items(event.get("accumUpdates")):
                if isinstance(update, list) and len(update) == 2:
                    execution.file_sizes[_int(update[0])] = _int(update[1])
        elif name == "SparkListenerJobStart":
            properties = event.get("Properties")
            owner = properties.get(_EXECUTION) if isinstance(properties, dict) else None
            if isinstance(owner, str) and owner.isdecimal() and int(owner) in self._executions:
                self._stages.update({_int(stage): int(owner) for stage in _items(event.get("Stage IDs"))})
        elif name == "SparkListenerTaskEnd":
            execution = self._executions.get(self._stages.get(_int(event.get("Stage ID")), -1))
            if execution is not None:
                execution.bytes_read += _bytes_of_task(event)

    def _end(self, number: int) -> Iterator[Scan]:
        """Yield the scans of an execution. Bytes that tasks read are divided among several scans by the sizes of their files."""
        execution = self._executions.pop(number, None)
        if execution is None:
            return
        self._stages = {stage: owner for stage, owner in self._stages.items() if owner != number}
        sizes = [execution.file_sizes.get(-1 if scan.size_metric is None else scan.size_metric) for scan in execution.scans]
        total = sum(size or 0 for size in sizes)
        for scan, size in zip(execution.scans, sizes, strict=True):
            bytes_read = size
            if execution.bytes_read and len(sizes) == 1:
                bytes_read = execution.bytes_read
            elif execution.bytes_read and size is not None and total:
                bytes_read = execution.bytes_read * size // total
            yield Scan(scan.locations, scan.conditions, bytes_read)


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Return the event of a line; None if it has none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("Event"), str) else None


def _list_scans(plan: object) -> Iterator[_Scan]:
    """Yield the scans of Parquet files in a plan."""
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, dict):
            continue
        nodes += _items(node.get("children"))
        metadata = node.get("metadata")
        if isinstance(metadata, dict) and str(metadata.get("Format", "")).lower() == "parquet":
            metrics = [metric for metric in _items(node.get("metrics")) if isinstance(metric, dict)]
            size = next((metric.get("accumulatorId") for metric in metrics if metric.get("name") == "size of files read"), None)
            filters = tuple(parse_pushed_filters(str(metadata.get("PushedFilters", ""))))
            yield _Scan(parse_location(str(metadata.get("Location", ""))), filters, size if isinstance(size, int) else None)


def parse_pushed_filters(text: str) -> Iterator[Condition]:
    """Yield the conditions by = and IN in text such as `[IsNotNull(id), EqualTo(id,77)]`.

    Spark writes values without quotes, so a comma within a value of IN looks like the end of the value.
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
        if path and values != ["null"]:
            yield condition_of(path, values)


def parse_location(text: str) -> tuple[str, ...]:
    """Return the paths in text such as `InMemoryFileIndex(1 paths)[file:/lake/events]`; Spark cuts off long lists with `...`."""
    start = text.find("[")
    if start < 0:
        return ()
    paths = text[start + 1 :].removesuffix("]").split(", ")
    return tuple(path for path in paths if path and not path.endswith("..."))


def _bytes_of_task(event: dict[str, Any]) -> int:
    metrics = event.get("Task Metrics")
    inputs = metrics.get("Input Metrics") if isinstance(metrics, dict) else None
    return _int(inputs.get("Bytes Read")) if isinstance(inputs, dict) else 0


def _int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else -1 if value is None else 0


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
